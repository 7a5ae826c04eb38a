package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/bench/internal/proxy"
)

func main() {
	serve := flag.String("serve", "", "be a process of the bench: mock, rp or lean")
	upstream := flag.String("upstream", "", "the model server, for -serve")
	rounds := flag.Int("rounds", 5, "rounds of each contender")
	span := flag.Duration("span", 2*time.Second, "time of one round under load")
	streams := flag.Int("streams", 0, "streams at once, of the one load on lathe alone")
	length := flag.Duration("for", 10*time.Minute, "how long that load takes")
	starts := flag.Bool("ready", false, "measure the time until lathe listens, without tools and with 100 of each kind, and nothing else")
	conversations := flag.Bool("long", false, "measure long histories, runs on SQLite, and a conversation that grows, and nothing else")
	shared := flag.Bool("shared", false, "with -long: all processes on the same cores")
	only := flag.String("only", "", "make only the tables whose title has this `text`")
	lathe := flag.String("lathe", "", "`path` of the binary of lathe to measure; without it the one of this source is built")
	against := flag.String("against", "", "`path` of another binary of lathe, such as one of before a change, measured beside this one")
	flag.Parse()
	var err error
	switch {
	case *serve != "":
		err = be(*serve, *upstream)
	case *streams > 0:
		err = withRig(*lathe, "", func(r *rig) error { return r.soak(*streams, *length) })
	case *starts:
		err = withBinary(*lathe, func(dir, path string) error { return ready(dir, *rounds, path, *against) })
	case *conversations:
		err = withBinary(*lathe, func(dir, path string) error {
			return longTables(dir, path, *against, *only, *rounds, *span, !*shared)
		})
	default:
		err = withRig(*lathe, *against, func(r *rig) error { return r.tables(*only, *rounds, *span) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// be serves as one of the processes.
func be(what, upstream string) (err error) {
	var h http.Handler
	switch what {
	case "mock":
		h = http.HandlerFunc(modelServer)
	case "rp":
		h, err = proxy.Reverse(upstream)
	case "lean":
		h = &proxy.Lean{Upstream: upstream, Client: proxy.Transport()}
	default:
		err = fmt.Errorf("there is no %s", what)
	}
	if err != nil {
		return err
	}
	return proc.Serve(h)
}

// A rig is all processes. Gateways are on core 0, everything else on core 1.
type rig struct {
	dir, lathe string
	mock       *proc.Process
	gateways   []*proc.Process // direct, rp, lean, lathe, lathe with a tool, and those two of another binary
	size       int64           // of lathe's binary
}

// withRig starts all processes for f. It builds lathe from this source unless path names a binary. With against, a
// binary of lathe, that one is measured too.
func withRig(path, against string, f func(*rig) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return withBinary(path, func(dir, path string) error { return withProcesses(dir, path, against, self, f) })
}

// withBinary calls f with a folder that is removed afterwards, and the path of a binary of lathe: it builds one from this source unless path names
// it.
func withBinary(path string, f func(dir, path string) error) error {
	dir, err := os.MkdirTemp("", "bench-gateway-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if path == "" {
		path = filepath.Join(dir, "lathe")
		if err := proc.BuildLathe(context.Background(), path); err != nil {
			return err
		}
	}
	return f(dir, path)
}

// withProcesses starts the processes of a rig for f.
func withProcesses(dir, path, against, self string, f func(*rig) error) (err error) {
	r := &rig{dir: dir, lathe: path}
	if info, err := os.Stat(r.lathe); err == nil {
		r.size = info.Size()
	}
	var all []*proc.Process
	defer func() {
		for _, p := range all {
			p.Stop()
		}
	}()
	add := func(name string, core int, path string, args ...string) (*proc.Process, error) {
		p, err := proc.Start(name, core, path, args...)
		if err == nil {
			all = append(all, p)
		}
		return p, err
	}
	other := min(1, runtime.NumCPU()-1)
	if r.mock, err = add("direct", other, self, "-serve", "mock"); err != nil {
		return err
	}
	r.gateways = append(r.gateways, r.mock)
	for _, name := range []string{"rp", "lean"} {
		p, err := add(name, 0, self, "-serve", name, "-upstream", r.mock.Base)
		if err != nil {
			return err
		}
		r.gateways = append(r.gateways, p)
	}
	lathes := []struct{ name, path string }{{"lathe", r.lathe}, {"the other lathe", against}}
	for _, l := range lathes {
		for _, tools := range []bool{false, true} {
			if l.path == "" {
				continue
			}
			cfg, err := config(dir, r.mock.Base, tools)
			if err != nil {
				return err
			}
			name := l.name + map[bool]string{true: ", with a tool run"}[tools]
			p, err := add(name, 0, l.path, "serve", "--config", cfg, "--addr", "127.0.0.1:0")
			if err != nil {
				return err
			}
			r.gateways = append(r.gateways, p)
		}
	}
	if err := proc.Pin(os.Getpid(), other); err != nil {
		return err
	}
	return f(r)
}
