package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/lathe-run/lathe/bench/internal/proc"
)

// upgrade replaces nodes of an older version one by one under load: each is sent SIGTERM, and a node of this version is started
// in its place, of which the first migrates the tables. No request may fail.
func (r *rig) upgrade(ctx context.Context, out io.Writer) error {
	o := r.opts
	old, err := r.older(ctx, o.upgrade)
	if err != nil {
		return err
	}
	if err := r.fresh(ctx); err != nil {
		return err
	}
	if err := r.startNodes(ctx, o.nodes[0], old); err != nil {
		return err
	}
	b := newBalancer(r.nodes)
	if o.rows > 0 {
		if _, err := r.makeWaiting(ctx, b, o.rows); err != nil {
			return err
		}
	}
	was, err := r.schema(ctx)
	if err != nil {
		return err
	}
	l := drive(ctx, b, "upgrade", "asks", o.clients)
	if err := wait(ctx, o.span/2); err != nil {
		return err
	}
	for _, n := range r.nodes {
		n.stop(syscall.SIGTERM)
		n.binary = r.lathe
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	if err := wait(ctx, o.span/2); err != nil {
		return err
	}
	runs := l.end()
	is, err := r.schema(ctx)
	if err != nil {
		return err
	}
	for _, run := range runs {
		run.tail.Lines = nil // a node of the older version leaves out the members of events that it does not know
	}
	table, lost, err := r.judge(ctx, runs, 0, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d nodes of %s replaced one by one, %d runs waited meanwhile, schema %d before and %d after\n%s%-30s %8d\n", len(r.nodes), o.upgrade, o.rows, was, is, table, "acknowledged answers lost", lost)
	b.print(out)
	switch {
	case was == is:
		return errors.New("the schema was not changed: name an older version")
	case table.Broken() || lost > 0 || len(b.failed) > 0:
		return errors.New("not all of these are zero")
	}
	return nil
}

// older returns the binary of an older version: the path of one, or a commit, which is built.
func (r *rig) older(ctx context.Context, version string) (string, error) {
	if info, err := os.Stat(version); err == nil && info.Mode().IsRegular() {
		return filepath.Abs(version)
	}
	sources, err := proc.Sources(ctx)
	if err != nil {
		return "", err
	}
	archive, dir, binary := filepath.Join(r.dir, "older.tar"), filepath.Join(r.dir, "older"), filepath.Join(r.dir, "lathe-older")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"git", "-C", sources, "archive", "-o", archive, version}, {"tar", "-x", "-f", archive, "-C", dir}} {
		if text, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("-upgrade %s: neither a binary nor a commit: %s: %w: %s", version, args[0], err, text)
		}
	}
	return binary, proc.Build(ctx, dir, binary)
}

func (r *rig) schema(ctx context.Context) (version int, err error) {
	err = r.conn.QueryRow(ctx, "SELECT max(version) FROM lathe_schema").Scan(&version)
	return version, err
}
