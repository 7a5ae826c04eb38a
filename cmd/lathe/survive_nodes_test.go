//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/postgres/pgtest"
)

// F3: two `lathe serve` on one database. Either is killed, or stopped for longer than its lease and then
// goes on, again and again: every run ends once, nothing that writes is done twice, and a watcher at either
// misses nothing.
func TestF3_NodesStoppedUnderLoad(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	x := newTrial(t)
	const lease = time.Second
	config := filepath.Join(x.dir, "lathe.yaml")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, fmt.Appendf(text, "cluster: {lease: %v}\n", lease), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
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
	close(x.settling)
	x.clients.Wait()
	s, err := postgres.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	x.judge(s, n)
}

// sleeps stops a process for a while. What it has begun goes on elsewhere; its clients wait or turn away.
func (x *trial) sleeps(p *proc, d time.Duration) {
	x.t.Helper()
	base := strings.TrimSuffix(p.says(`http://\S+/v1`), "/v1")
	signal := func(s syscall.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			x.t.Fatal(err)
		}
	}
	x.change([]string{base}, nil)
	signal(syscall.SIGSTOP)
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-x.stirs: // the other one works
			continue
		case <-over.C:
		case <-x.ctx.Done():
		}
		break
	}
	signal(syscall.SIGCONT)
	x.change(nil, []string{base})
}
