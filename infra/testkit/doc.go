// Package testkit starts the real servers that tests run on, on free loopback
// ports, and ends exactly the processes it started: redis-server, valkey-server
// and Redis Clusters of three or six nodes.
//
// It is imported by tests and by programs that verify, never by what is deployed.
// A server whose program is not installed fails the test with the reason and the
// command that installs it; nothing is ever skipped, so a suite that passes has
// run on everything it names.
//
// Redis, Valkey and Cluster give one instance a test process, started at the
// first call: tests sharing one use keys of their own. New gives a test an
// instance for itself, to fill, freeze or kill. A package that uses the shared
// ones ends them with
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
// On Linux every server also dies with the test process, however that ends.
package testkit
