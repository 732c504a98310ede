package local_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sunhwa/infra/local"
	"sunhwa/infra/testkit"
)

// A REDIS_MODE that does not fit the server is said at the start, and how to mend it.
func TestStart_redisOfAnotherKind(t *testing.T) {
	m := newModel(t)
	single, cluster := testkit.New(t, testkit.Options{}), testkit.New(t, testkit.Options{Cluster: true})
	try := func(addr, mode, says string) {
		t.Helper()
		cfg := settings(t, m, map[string]string{"REDIS_ADDR": addr, "REDIS_MODE": mode})
		s, err := local.Start(t.Context(), local.Options{Config: cfg, Logger: slog.New(slog.DiscardHandler)})
		if says == "" {
			require.NoError(t, err)
			require.NoError(t, s.Close(t.Context()))
			return
		}
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "does not answer")
	}
	try(cluster.Addrs[0], "standalone", "REDIS_ADDR is a cluster's node; set REDIS_MODE=cluster")
	try(single.Addrs[0], "cluster", "REDIS_ADDR "+single.Addrs[0]+": it is no cluster; set REDIS_MODE=standalone")
	try(single.Addrs[0], "standalone", "")
	try(strings.Join(cluster.Addrs, ","), "cluster", "")
}
