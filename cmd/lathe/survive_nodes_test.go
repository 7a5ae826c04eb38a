//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store/postgres"
)

// F3: two `lathe serve` on one database. Either is killed, or stopped for longer than its lease and then
// goes on, again and again: every run ends once, nothing that writes is done twice, and a watcher at either
// misses nothing.
func TestF3_NodesStoppedUnderLoad(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	url := pgtest.URL(t)
	const lease = time.Second
	x := newTrial(t, fmt.Sprintf("cluster: {lease: %v}\n", lease))
	rng := rand.New(rand.NewPCG(2, 2))
	nodes := []*proc{x.serves(url), x.serves(url)}
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	n := cycles(t) / 3
	for k := range n {
		for range 1 + rng.IntN(20) {
			select {
			case <-x.stirs:
			case <-x.ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		i := rng.IntN(len(nodes))
		if k%2 == 0 { // a zombie: it is woken when others have gone on with its runs
			x.sleeps(nodes[i], 2*lease)
			continue
		}
		x.kills(nodes[i])
		nodes[i] = x.serves(url)
	}
	x.ends(url, n)
}

// sleeps stops a process for a while. What it has begun goes on elsewhere; its clients wait or turn away.
func (x *trial) sleeps(p *proc, d time.Duration) {
	x.t.Helper()
	base := strings.TrimSuffix(p.awaitLine(`http://\S+/v1`), "/v1")
	signal := func(s syscall.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			x.t.Fatal(err)
		}
	}
	x.change([]string{base}, nil)
	signal(syscall.SIGSTOP)
	x.passes(d)
	signal(syscall.SIGCONT)
	x.change(nil, []string{base})
}

// passes lets time pass in which others work.
func (x *trial) passes(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-x.stirs:
		case <-over.C:
			return
		case <-x.ctx.Done():
			return
		}
	}
}

// F9: two `lathe serve` of which one or the other cannot reach the database for longer than its lease, while it can
// reach its clients and its tools. It writes nothing; the other resumes its runs.
func TestF9_NodesCutOffUnderLoad(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	url := pgtest.URL(t)
	const lease = time.Second
	x := newTrial(t, fmt.Sprintf("cluster: {lease: %v}\n", lease))
	rng := rand.New(rand.NewPCG(9, 9))
	var proxies []*pgtest.Proxy
	for range 2 {
		p := pgtest.NewProxy(t, url)
		x.serves(p.URL)
		proxies = append(proxies, p)
	}
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	n := cycles(t) / 6
	for range n {
		for range 1 + rng.IntN(20) {
			select {
			case <-x.stirs:
			case <-x.ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		p := proxies[rng.IntN(len(proxies))]
		p.Down()
		x.passes(2 * lease)
		p.Up()
	}
	x.ends(url, n)
}

// ends has the clients of a trial on PostgreSQL see their runs to the end, and judges what is left.
func (x *trial) ends(url string, n int) {
	x.t.Helper()
	close(x.settling)
	x.clients.Wait()
	s, err := postgres.Open(x.t.Context(), url, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = s.Close() })
	x.judge(s, n)
}
