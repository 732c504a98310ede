package relay

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRelay_passesBothWaysUntilClosed(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	r, err := Open("127.0.0.1:0", server.Addr().String())
	require.NoError(t, err)
	c, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err)
	_, err = c.Write([]byte("hello"))
	require.NoError(t, err)
	got := make([]byte, 5)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
	require.NoError(t, r.Close())
	_, err = c.Read(got)
	require.Error(t, err, "its connections end with it")
	_, err = net.Dial("tcp", r.Addr())
	require.Error(t, err)
}
