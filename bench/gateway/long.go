package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/lathe-run/lathe/bench/internal/load"
	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/bench/internal/proxy"
	"github.com/lathe-run/lathe/internal/report"
)

// A gateway is one process to measure, in one configuration.
type gateway struct {
	name          string
	path          string // of the binary of lathe; "": the lean proxy
	tools, sqlite bool
}

// A long measures what grows with a conversation and with the store. Every table has processes of its own, so that the memory of one is not that
// of another.
type long struct {
	dir, self string
	gateways  []gateway
	rounds    int
	span      time.Duration
	core      int // of the gateways; negative: all processes share all cores
	mock      *proc.Process
}

// longTables measures histories, runs on SQLite, and the growth of a conversation. pinned puts the gateways on core 0 and everything else on core 1.
func longTables(dir, path, against, only string, rounds int, span time.Duration, pinned bool) (err error) {
	l := &long{dir: dir, rounds: rounds, span: span, core: -1, gateways: []gateway{{name: "lean"}}}
	if l.self, err = os.Executable(); err != nil {
		return err
	}
	for _, b := range []struct{ name, path string }{{"lathe", path}, {"the other lathe", against}} {
		if b.path != "" {
			l.gateways = append(l.gateways, gateway{b.name + ", relayed", b.path, false, false}, gateway{b.name + ", with tools", b.path, true, false}, gateway{b.name + ", with tools and SQLite", b.path, true, true})
		}
	}
	where, others := "all processes on the same cores", -1
	if pinned {
		where, l.core, others = "gateways on core 0, model server and clients on core 1", 0, min(1, runtime.NumCPU()-1)
		if err := proc.Pin(os.Getpid(), others); err != nil {
			return err
		}
	}
	if l.mock, err = proc.Start("direct", others, l.self, "-serve", "mock"); err != nil {
		return err
	}
	defer l.mock.Stop()
	fmt.Printf("%s %s/%s, %d CPUs, %s, %d rounds, medians\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), where, rounds)
	for _, t := range []struct {
		what    string
		measure func(what string) error
	}{
		{"a history of 1 MB, 4 connections", l.histories},
		{"a run with one call of a tool, 64 connections", l.toolRuns},
		{"100 turns of 20 KB", l.turns},
	} {
		if strings.Contains(t.what, only) {
			if err := t.measure(t.what); err != nil {
				return fmt.Errorf("%s: %w", t.what, err)
			}
		}
	}
	return nil
}

// start starts the gateway with an empty store, which is in the folder store.
func (l *long) start(g gateway) (p *proc.Process, store string, err error) {
	if g.path == "" {
		p, err = proc.Start(g.name, l.core, l.self, "-serve", "lean", "-upstream", l.mock.Base)
		return p, "", err
	}
	if store, err = os.MkdirTemp(l.dir, "store-"); err != nil {
		return nil, "", err
	}
	cfg, err := config(store, l.mock.Base, g.tools)
	if err != nil {
		return nil, "", err
	}
	args := []string{"serve", "--config", cfg, "--addr", "127.0.0.1:0"}
	if g.sqlite {
		args = append(args, "--store", "sqlite:"+filepath.Join(store, "runs.db"))
	}
	p, err = proc.Start(g.name, l.core, g.path, args...)
	return p, store, err
}

// load measures the gateways in alternation and prints a table. per is what the CPU time of a request is divided by.
func (l *long) load(what string, gateways []gateway, body string, connections int, unit string, per time.Duration) error {
	var processes []*proc.Process
	defer func() {
		for _, p := range processes {
			p.Stop()
		}
	}()
	for _, g := range gateways {
		p, _, err := l.start(g)
		if err != nil {
			return err
		}
		processes = append(processes, p)
	}
	rows, idle := make([]row, len(processes)), make([]int, len(processes))
	time.Sleep(time.Second) // nothing is at work: the memory is that of a process that waits
	for i, p := range processes {
		idle[i] = p.Memory()
	}
	for range l.rounds {
		for i, p := range processes {
			c := &load.Client{HTTP: &http.Client{Transport: proxy.Transport()}, URL: p.Base + "/v1/chat/completions", Stream: true, End: "[DONE]", Body: body}
			s := load.Run(p, c, connections, 0, l.span)
			if s.Failed > 0 || len(s.Answers) == 0 {
				return fmt.Errorf("%s: %d of %d requests failed: %w", p.Name, s.Failed, s.Failed+len(s.Answers), s.First)
			}
			x := &rows[i]
			x.rss = max(x.rss, s.RSS)
			x.p50, x.p99 = append(x.p50, s.At(0.5, load.Whole)), append(x.p99, s.At(0.99, load.Whole))
			x.request, x.rate = append(x.request, float64(s.CPU)/float64(per)/float64(len(s.Answers))), append(x.rate, float64(len(s.Answers))/s.Took.Seconds())
		}
	}
	var t report.Table
	t.Row("gateway", "CPU "+unit+" a request", "requests/s", "p50 ms", "p99 ms", "RSS idle MiB", "most MiB")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }
	for i, p := range processes {
		x := &rows[i]
		t.Row(p.Name, fmt.Sprintf("%.2f", load.Median(x.request)), fmt.Sprintf("%.0f", load.Median(x.rate)), ms(load.Median(x.p50)), ms(load.Median(x.p99)),
			fmt.Sprintf("%.1f", float64(idle[i])/1024), fmt.Sprintf("%.1f", float64(x.rss)/1024))
	}
	fmt.Printf("\n**%s**\n\n", what)
	return t.WriteMarkdown(os.Stdout, "lrrrrrr")
}

// histories measures a request with a conversation of 1 MB in messages of half a kilobyte, whose model calls no tool.
func (l *long) histories(what string) error {
	const text = `All work and no play \"makes\" Jack a dull boy.\n`
	var b strings.Builder
	b.WriteString(`{"model":"n50","stream":true,"messages":[{"role":"system","content":"Be brief."}`)
	for i := 0; b.Len() < 1_000_000; i++ {
		fmt.Fprintf(&b, `,{"role":"user","content":"%d %s"},{"role":"assistant","content":"%s"}`, i, strings.Repeat(text, 10), strings.Repeat(text, 10))
	}
	b.WriteString(`,{"role":"user","content":"And now?"}]}`)
	return l.load(what, l.gateways, b.String(), 4, "ms", time.Millisecond)
}

// toolRuns measures runs with two model calls and a call of the calculator between them. It also prints how often a second the disk can flush as many
// bytes as such a run adds to the store.
func (l *long) toolRuns(what string) error {
	var gateways []gateway
	for _, g := range l.gateways {
		if g.tools {
			gateways = append(gateways, g)
		}
	}
	const body = `{"model":"t50","stream":true,"messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"What is 6 * 7?"}]}`
	if err := l.load(what, gateways, body, 64, "µs", time.Microsecond); err != nil {
		return err
	}
	n, err := flushes(filepath.Join(l.dir, "flushes"), 6<<10, l.span)
	if err == nil {
		fmt.Printf("\nThe disk flushed appends of 6 KiB, one after another, %.0f times a second.\n", n)
	}
	return err
}

// flushes returns how many appends of size bytes, each followed by a flush, a file accepts in a second.
func flushes(path string, size int, span time.Duration) (perSecond float64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	b, n, began := make([]byte, size), 0, time.Now()
	for ; time.Since(began) < span; n++ {
		if _, err := f.Write(b); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// turns sends a conversation that grows by 10 KB of the user and 10 KB of the assistant in each turn, whole each time, as agents do.
func (l *long) turns(what string) error {
	var t report.Table
	t.Row("gateway", "turns", "conversation KB", "files of the store MB", "RSS MiB", "CPU s")
	for _, g := range l.gateways {
		if !g.tools {
			continue
		}
		if err := l.grow(g, &t); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	fmt.Printf("\n**%s**\n\n", what)
	return t.WriteMarkdown(os.Stdout, "lrrrrr")
}

func (l *long) grow(g gateway, t *report.Table) error {
	p, store, err := l.start(g)
	if err != nil {
		return err
	}
	defer p.Stop()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, 10_000)
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz     "[random.IntN(31)]
		}
		return string(b)
	}
	request := struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
	}{Model: "n50"}
	for turn := 1; turn <= 100; turn++ {
		request.Messages = append(request.Messages, message{"user", text()})
		body, err := json.Marshal(&request)
		if err != nil {
			return err
		}
		resp, err := http.Post(p.Base+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("turn %d: status %d: %.200s: %w", turn, resp.StatusCode, answer, err)
		}
		request.Messages = append(request.Messages, message{"assistant", text()})
		if turn == 10 || turn == 20 || turn == 50 || turn == 100 {
			files := "–"
			if g.sqlite {
				size, err := sizeOf(store)
				if err != nil {
					return err
				}
				files = fmt.Sprintf("%.1f", float64(size)/1e6)
			}
			t.Row(g.name, turn, len(body)/1000, files, fmt.Sprintf("%.1f", float64(p.Memory())/1024), fmt.Sprintf("%.2f", p.CPU().Seconds()))
		}
	}
	return nil
}

// sizeOf returns the size of all files below a folder.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
