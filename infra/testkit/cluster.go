package testkit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slots is how many slots a Redis Cluster has
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
const slots = 16384

// primaries is how many nodes of a cluster own slots when it is created.
const primaries = 3

// join makes the running nodes one cluster: slots to the primaries, every node
// introduced to the first, replicas behind their primaries. It returns once every
// node knows all of that and serves.
func (e *Engine) join(ctx context.Context) error {
	for i, n := range e.nodes {
		var err error
		if n.id, err = n.admin.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
			return fmt.Errorf("testkit: id of a node: %w", err)
		}
		// Epochs of their own from the start spare the nodes a round of settling them.
		commands := [][]any{{"CLUSTER", "SET-CONFIG-EPOCH", i + 1}}
		if i < primaries {
			first, last := i*slots/primaries, (i+1)*slots/primaries-1
			commands = append(commands, []any{"CLUSTER", "ADDSLOTSRANGE", first, last})
		}
		if i > 0 {
			first := e.nodes[0]
			commands = append(commands, []any{"CLUSTER", "MEET", "127.0.0.1", first.port, first.bus})
		}
		for _, c := range commands {
			if err := n.admin.Do(ctx, c...).Err(); err != nil {
				return fmt.Errorf("testkit: %v on %s: %w", c, n.Addr, err)
			}
		}
	}
	for i, n := range e.nodes[primaries:] {
		err := poll(ctx, func(ctx context.Context) error { // refused until it knows the primary
			return n.admin.ClusterReplicate(ctx, e.nodes[i%primaries].id).Err()
		})
		if err != nil {
			return fmt.Errorf("testkit: make %s a replica: %w", n.Addr, err)
		}
	}
	for _, n := range e.nodes {
		if err := poll(ctx, n.settled); err != nil {
			return err
		}
	}
	return nil
}

// settled returns nil once the node sees the whole cluster, with its replicas,
// and serves; a replica, once its data is its primary's.
func (n *Node) settled(ctx context.Context) error {
	text, err := n.admin.ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("testkit: state of %s: %w", n.Addr, err)
	}
	info, all := fields(text), strconv.Itoa(len(n.engine.nodes))
	if info["cluster_state"] != "ok" || info["cluster_slots_ok"] != strconv.Itoa(slots) || info["cluster_known_nodes"] != all {
		return fmt.Errorf("testkit: %s is not ready: %s", n.Addr, text)
	}
	nodes, err := n.admin.ClusterNodes(ctx).Result()
	if err != nil {
		return fmt.Errorf("testkit: nodes of %s: %w", n.Addr, err)
	}
	if got, want := strings.Count(nodes, "slave "), len(n.engine.nodes)-primaries; got != want {
		return fmt.Errorf("testkit: %s sees %d of %d replicas", n.Addr, got, want)
	}
	if strings.Contains(nodes, "handshake") {
		return fmt.Errorf("testkit: %s still greets a node", n.Addr)
	}
	replication, err := n.info(ctx, "replication")
	if err != nil {
		return err
	}
	if replication["role"] == "slave" && replication["master_link_status"] != "up" {
		return fmt.Errorf("testkit: replica %s has no data yet", n.Addr)
	}
	return nil
}

// Slot returns the cluster slot of a key.
func (e *Engine) Slot(t testing.TB, key string) int {
	t.Helper()
	running := slices.IndexFunc(e.nodes, func(n *Node) bool { return !n.proc.ended() })
	if running < 0 {
		t.Fatal("testkit: no node runs")
	}
	slot, err := e.nodes[running].admin.ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatalf("testkit: slot of %q: %v", key, err)
	}
	return int(slot)
}

// Owner returns the node that holds the key: in a cluster the primary of its
// slot, as the first node that still answers sees it. After that primary was
// killed it is named until a replica has taken over.
func (e *Engine) Owner(t testing.TB, key string) *Node {
	t.Helper()
	if !e.Cluster {
		return e.nodes[0]
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var owner *Node
	err := poll(ctx, func(ctx context.Context) (err error) {
		for _, n := range e.nodes {
			if n.proc.ended() {
				continue
			}
			if owner, err = n.ownerOf(ctx, key); owner != nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

// ownerOf returns who owns the key's slot in this node's view.
func (n *Node) ownerOf(ctx context.Context, key string) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	slot, err := n.admin.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return nil, fmt.Errorf("testkit: slot of %q: %w", key, err)
	}
	nodes, err := n.admin.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("testkit: nodes of %s: %w", n.Addr, err)
	}
	for line := range strings.Lines(nodes) {
		id, owned := ownedSlots(line)
		i := slices.IndexFunc(n.engine.nodes, func(m *Node) bool { return m.id == id })
		if i >= 0 && owned(int(slot)) {
			return n.engine.nodes[i], nil
		}
	}
	return nil, fmt.Errorf("testkit: nobody owns slot %d", slot)
}

// ownedSlots reads a line of CLUSTER NODES: the node's id, and whether it owns a
// slot. Its ninth field and those after it are slots, as "7", "0-5460", or in
// brackets for one under way (https://redis.io/docs/latest/commands/cluster-nodes/).
func ownedSlots(line string) (id string, owned func(slot int) bool) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return "", nil
	}
	return f[0], func(slot int) bool {
		return slices.ContainsFunc(f[8:], func(s string) bool {
			from, to, isRange := strings.Cut(s, "-")
			if !isRange {
				to = from
			}
			first, err1 := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			return err1 == nil && err2 == nil && first <= slot && slot <= last
		})
	}
}

// Migration is a slot on its way from one primary to another. While it lasts, a
// script that names an absent key of the slot is refused with TRYAGAIN.
type Migration struct {
	Slot     int
	From, To *Node

	engine *Engine
	over   bool
}

// Migrate begins to move the key's slot to another primary and leaves it half-way:
// no key has moved yet. Finish ends it; the test's end does if nothing else did.
func (e *Engine) Migrate(t testing.TB, key string) *Migration {
	t.Helper()
	m := &Migration{Slot: e.Slot(t, key), From: e.Owner(t, key), engine: e}
	m.To = e.nodes[(slices.Index(e.nodes, m.From)+1)%primaries]
	m.do(t, m.To, "CLUSTER", "SETSLOT", m.Slot, "IMPORTING", m.From.id)
	m.do(t, m.From, "CLUSTER", "SETSLOT", m.Slot, "MIGRATING", m.To.id)
	t.Cleanup(func() {
		if !m.over {
			m.Finish(t)
		}
	})
	return m
}

// Move takes keys of the slot to the new primary, each with its TTL.
func (m *Migration) Move(t testing.TB, keys ...string) {
	t.Helper()
	args := []any{"MIGRATE", "127.0.0.1", m.To.port, "", 0, 5000}
	if m.engine.Password != "" {
		args = append(args, "AUTH", m.engine.Password)
	}
	args = append(args, "KEYS")
	for _, k := range keys {
		args = append(args, k)
	}
	m.do(t, m.From, args...)
}

// Finish moves what is left and gives the slot to the new primary. Clients that
// write meanwhile are served all the time.
func (m *Migration) Finish(t testing.TB) {
	t.Helper()
	m.over = true
	for {
		keys, err := m.From.admin.ClusterGetKeysInSlot(context.Background(), m.Slot, 100).Result()
		if err != nil {
			t.Fatalf("testkit: keys of slot %d: %v", m.Slot, err)
		}
		if len(keys) == 0 {
			break
		}
		m.Move(t, keys...)
	}
	m.do(t, m.To, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.To.id)
	m.do(t, m.From, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.To.id)
}

// do runs on without the test's context, which has ended when clean-ups run.
func (m *Migration) do(t testing.TB, n *Node, args ...any) {
	t.Helper()
	if err := n.admin.Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("testkit: %v on %s: %v", args, n.Addr, err)
	}
}
