package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// connections is how many the database server accepts: 13 for each of 16 nodes, and those of this command.
const connections = 220

// A rig is all that one measurement needs: the database server, the world, and the nodes.
type rig struct {
	opts   *options
	dir    string
	lathe  string // the binary
	db     *pgtest.Server
	world  *world
	outer  *http.Server
	base   string // of the world
	conn   *pgx.Conn
	limits string // how the database is limited, for the heading
	unbind func()
	nodes  []*node
	store  string // URL of the database in use
	made   int    // databases
}

// withRig starts the database server and the world for f, and stops them.
func withRig(ctx context.Context, o *options, f func(*rig) error) (err error) {
	dir, err := os.MkdirTemp(o.dir, "bench-cluster-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	r := &rig{opts: o, dir: dir, lathe: o.lathe, world: newWorld(), limits: "none", unbind: func() {}}
	if r.lathe == "" {
		r.lathe = filepath.Join(dir, "lathe")
		if err := proc.BuildLathe(ctx, r.lathe); err != nil {
			return err
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.base, r.outer = "http://"+ln.Addr().String(), &http.Server{Handler: r.world, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = r.outer.Serve(ln) // it ends with Close
	}()
	defer func() {
		_ = r.outer.Close()
		<-served
	}()
	settings := []string{fmt.Sprintf("max_connections=%d", connections), "shared_buffers=512MB", "max_wal_size=4GB", "checkpoint_timeout=5min", "log_min_messages=fatal", "track_io_timing=on"}
	if o.statements {
		settings = append(settings, "shared_preload_libraries=pg_stat_statements")
	}
	r.db, err = pgtest.Open(ctx, o.dir, settings...)
	if err != nil {
		return err
	}
	defer func() {
		r.db.Close()
		r.unbind()
	}()
	if o.databaseCPU > 0 {
		if r.limits, r.unbind, err = limitCPU(r.db.PID(), o.databaseCPU); err != nil {
			return fmt.Errorf("limiting the database: %w", err)
		}
	}
	if r.conn, err = pgx.Connect(ctx, r.db.URL("postgres")); err != nil {
		return err
	}
	defer func() { _ = r.conn.Close(context.WithoutCancel(ctx)) }() // the server ends, too
	if o.bouncer > 0 {
		stop, err := r.bounce(ctx, o.bouncer)
		if err != nil {
			return err
		}
		defer stop()
	}
	defer r.stopNodes()
	return f(r)
}

// fresh makes an empty database and connects to it. Nodes that are started later use it.
func (r *rig) fresh(ctx context.Context) error {
	r.made++
	name := fmt.Sprintf("bench%d", r.made)
	if _, err := r.conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	if err := r.conn.Close(ctx); err != nil {
		return err
	}
	r.store = r.db.URL(name)
	var err error
	r.conn, err = pgx.Connect(ctx, r.store)
	if err == nil && r.opts.statements {
		_, err = r.conn.Exec(ctx, "CREATE EXTENSION pg_stat_statements")
	}
	return err
}

// startNodes starts n nodes with a binary on the database in use.
func (r *rig) startNodes(ctx context.Context, n int, binary string) error {
	store := r.store
	if r.opts.through != nil {
		store = r.opts.through(store)
	}
	key := filepath.Join(r.dir, "cluster.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		return err
	}
	for i := range n {
		addr := net.JoinHostPort(ownHost(), fmt.Sprint(18700+i))
		nd := &node{base: "http://" + addr, dir: filepath.Join(r.dir, fmt.Sprintf("node%d", i)), binary: binary}
		if err := os.MkdirAll(nd.dir, 0o700); err != nil {
			return err
		}
		cfg := configuration(r.base, fmt.Sprintf("serve: {addr: %q, advertise: %q, store: %q, max_concurrent: 20000, max_watchers: 20000, drain_timeout: %v%s}", addr, nd.base, store, r.opts.drain, r.opts.serve),
			fmt.Sprintf("cluster: {key: \"${file:%s}\", lease: %v}", key, r.opts.lease))
		if err := os.WriteFile(filepath.Join(nd.dir, "lathe.yaml"), []byte(cfg), 0o600); err != nil {
			return err
		}
		if err := nd.start(ctx); err != nil {
			return err
		}
		r.nodes = append(r.nodes, nd)
	}
	return nil
}

// stopNodes kills all nodes.
func (r *rig) stopNodes() {
	for _, n := range r.nodes {
		n.stop(syscall.SIGKILL)
	}
	r.nodes = nil
}
