package jobstore
import ("testing";"github.com/alicebob/miniredis/v2";"context")
func TestDbg(t *testing.T){
	m := miniredis.RunT(t)
	m.RequireUserAuth("u", "right")
	w := bare(t, ClientOptions{Addrs: []string{m.Addr()},Username: "u", Password: "wrong"})
	p := w.rdb.Pipeline()
	c := p.SScan(context.Background(), "a", 0, "", 10)
	_, err := p.Exec(context.Background())
	t.Log(err, c.Err())
	k,cu,e := c.Result()
	t.Log(k,cu,e)
	t.Log(w.rdb.Get(ctx,"x").Err())
}
