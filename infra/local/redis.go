package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/config"
	"sunhwa/shared/jobstore"
)

// reach asks the Redis at rc's addresses whether it answers and is of the kind
// that REDIS_MODE says. A cluster's node would answer a standalone client until
// the first key of another node; the embedded stand-in cannot say what it is.
func reach(ctx context.Context, rdb redis.UniversalClient, store *jobstore.Store, rc config.Redis, embedded bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := store.Ping(ctx); err != nil {
		addrs := strings.Join(rc.RedisAddrs, ",")
		if rc.RedisMode == config.Cluster && strings.Contains(err.Error(), noCluster) {
			return fmt.Errorf("REDIS_ADDR %s: it is no cluster; set REDIS_MODE=standalone", addrs)
		}
		return fmt.Errorf("REDIS_ADDR %s does not answer: %w", addrs, err)
	}
	if embedded || rc.RedisMode == config.Cluster {
		return nil
	}
	// A managed server or an ACL may refuse INFO, which says nothing of the kind.
	if info, err := rdb.Info(ctx, "cluster").Result(); err == nil && strings.Contains(info, "cluster_enabled:1") {
		return errors.New("REDIS_ADDR is a cluster's node; set REDIS_MODE=cluster")
	}
	return nil
}

// noCluster is in the answer of a standalone Redis or Valkey to CLUSTER commands:
// https://github.com/redis/redis/blob/7.0/src/cluster.c
const noCluster = "cluster support disabled"
