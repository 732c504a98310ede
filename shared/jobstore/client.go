package jobstore

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ClientOptions says where Redis is. Every timeout is fixed here, so that a
// silent server holds no command longer than about 4 s.
type ClientOptions struct {
	Addrs    []string    // host:port, at least one
	Cluster  bool        // Redis Cluster protocol, whatever the number of addresses
	TLS      *tls.Config // nil: no TLS
	Username string      // empty: the default user
	Password string      // empty: no authentication
	// Credentials is asked for each new connection (IAM tokens live 15 minutes).
	// When set it replaces Username and Password.
	Credentials func(ctx context.Context) (username, password string, err error)
}

// NewClient returns a client that dials on first use. Closing it is the caller's.
func NewClient(o ClientOptions) redis.UniversalClient {
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, IsClusterMode: o.Cluster, TLSConfig: o.TLS,
		Username: o.Username, Password: o.Password, CredentialsProviderContext: o.Credentials,

		DialTimeout: time.Second, DialerRetries: 1,
		ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second, PoolTimeout: 2 * time.Second,
		ContextTimeoutEnabled: true, // else a context's deadline does not bound socket I/O

		PoolSize: 5, MinIdleConns: 0,
		ConnMaxIdleTime: 45 * time.Second, // a thawed Lambda wakes with dead TLS connections
		ConnMaxLifetime: 11 * time.Hour,   // IAM ends connections after 12 h

		// Handshake noise that older and managed servers refuse.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if !o.Cluster {
		s := u.Simple()
		s.MaxRetries = 1
		return redis.NewClient(s)
	}
	c := u.Cluster()
	c.MaxRedirects, c.MaxRetries = 1, -1 // the defaults let a silent server hold a call for 10 s
	c.ClusterStateReloadInterval = time.Second
	return redis.NewClusterClient(c)
}
