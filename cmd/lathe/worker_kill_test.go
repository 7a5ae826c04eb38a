//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const poolToken = "a-token-of-workers-0123456789"

// A proc is a lathe of its own, with what it has said.
type proc struct {
	t      *testing.T
	cmd    *exec.Cmd
	output *outputBuffer
	over   chan struct{}
}

func startProc(t *testing.T, dir string, args ...string) *proc {
	t.Helper()
	path, err := exec.LookPath("lathe")
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{t: t, cmd: exec.Command(path, args...), output: &outputBuffer{more: make(chan struct{})}, over: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), "LATHE_WORKER_TOKEN="+poolToken)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.over)
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			p.output.add(line, err != nil)
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// awaitLine waits until the process has said what the pattern finds.
func (p *proc) awaitLine(pattern string) string {
	p.t.Helper()
	found := p.output.wait(regexp.MustCompile(pattern))
	if found == "" {
		p.t.Fatalf("%v does not say %s, but %s", p.cmd.Args[1:], pattern, p.output.text.String())
	}
	return found
}

func (p *proc) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may be gone
	_ = p.cmd.Process.Kill()
	<-p.over
	_ = p.cmd.Wait() // it was killed, or waited for before
}

// A bridge leads connections to a server that may change, and breaks them.
type bridge struct {
	ln    net.Listener
	mu    sync.Mutex
	to    string // "": nowhere
	conns map[net.Conn]bool
	over  sync.WaitGroup
}

func newBridge(t *testing.T) *bridge {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bridge{ln: ln, conns: map[net.Conn]bool{}}
	b.over.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b.over.Go(func() { b.forward(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		b.lead("")
		b.over.Wait()
	})
	return b
}

func (b *bridge) forward(c net.Conn) {
	defer c.Close()
	b.mu.Lock()
	to := b.to
	b.mu.Unlock()
	d, err := net.Dial("tcp", to)
	if to == "" || err != nil {
		return
	}
	defer d.Close()
	b.mu.Lock()
	gone := b.to != to
	b.conns[c], b.conns[d] = true, true
	b.mu.Unlock()
	if gone {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = c.Close()
			_ = d.Close()
		})
	}
	both.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
	delete(b.conns, d)
}

// lead has new connections go to an address, and cuts those that there are.
func (b *bridge) lead(to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = to
	for c := range b.conns {
		_ = c.Close()
	}
}

func (b *bridge) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
}

func (b *bridge) url() string { return "http://" + b.ln.Addr().String() }

// workshopFiles writes what a gateway and its workers read, and returns the folder.
func workshopFiles(t *testing.T, world, lease string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"gateway.yaml": fmt.Sprintf(`workers:
  lab: {token: %q, tools: ["*"], effects: [read_only, idempotent]}
serve: {worker_lease: %s, drain_timeout: 1s}
tools: {builtin: []}
policy: {tools: {put: allow}}
tool_calling: {tool_timeout: 10m}
`, "${LATHE_WORKER_TOKEN}", lease),
		"worker.yaml": fmt.Sprintf(`tools:
  builtin: []
  egress: {private: [127.0.0.1]}
  http:
    put: {description: Writes., url: "%[1]s/put/{n}", method: POST, effect: writes, allowlist: ["*"], max_attempts: 1, parameters: {n: {in: path, description: Which.}}}
    look: {description: Reads., url: "%[1]s/look/{n}", method: GET, effect: read_only, allowlist: ["*"], max_attempts: 1, parameters: {n: {in: path, description: Which.}}}
policy: {tools: {put: allow}}
tool_calling: {tool_timeout: 10m}
`, world),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func startGateway(t *testing.T, dir string, more ...string) (p *proc, addr string) {
	t.Helper()
	p = startProc(t, dir, append([]string{"serve", "--config", "gateway.yaml", "--addr", "127.0.0.1:0", "--store", "sqlite:" + filepath.Join(dir, "runs.db"), "--log", "error"}, more...)...)
	return p, strings.TrimPrefix(strings.TrimSuffix(p.awaitLine(`http://[0-9.:]+/v1`), "/v1"), "http://")
}

func startLabWorker(t *testing.T, dir, url, name string) *proc {
	t.Helper()
	return startProc(t, dir, "worker", "--config", "worker.yaml", "--connect", url, "--name", name, "--concurrency", "4")
}

// counting is a world that counts what is done to it.
type counting struct {
	mu    sync.Mutex
	times map[string]int
	hold  time.Duration
}

func (w *counting) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.times[r.URL.Path]++
	w.mu.Unlock()
	select {
	case <-time.After(w.hold):
	case <-r.Context().Done():
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprint(rw, `{"done":true}`)
}

func (w *counting) count(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times[path]
}

// callTool has the gateway call a tool, and returns the code of the result, "" where it went well.
func callRemote(t *testing.T, addr, tool string, n int) string {
	res, err := http.Post("http://"+addr+"/api/tools/"+tool+"/call", "application/json", strings.NewReader(fmt.Sprintf(`{"arguments":{"n":"%d"}}`, n)))
	if err != nil {
		t.Error(err)
		return "?"
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(string(b), `"done":true`) || strings.Contains(string(b), `\"done\":true`) {
		return ""
	}
	if code := regexp.MustCompile(`"(?:code|error_type)":\s*"([a-z_]+)"`).FindSubmatch(b); code != nil {
		return string(code[1])
	}
	return string(b)
}

// waitForTool waits until the gateway has the tool.
func waitForTool(t *testing.T, addr, tool string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + addr + "/api/tools")
		if err == nil {
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if strings.Contains(string(b), `"name":"`+tool+`"`) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the gateway does not get the tool %s: %v", tool, err)
		}
	}
}

// Workers are killed and stopped, and connections are cut, while they are at work. What writes is done once, or not
// known; what reads is done again.
func TestWorkersKilledAtWork(t *testing.T) {
	t.Parallel()
	w := &counting{times: map[string]int{}, hold: 100 * time.Millisecond}
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	dir := workshopFiles(t, srv.URL, "3s")
	_, addr := startGateway(t, dir)
	lines := newBridge(t)
	lines.lead(addr)
	workers := []*proc{startLabWorker(t, dir, lines.url(), "a"), startLabWorker(t, dir, lines.url(), "b")}
	for _, p := range workers {
		p.awaitLine("connected to")
	}
	waitForTool(t, addr, "put")

	const calls = 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]map[string]int{"put": {}, "look": {}}
	slots := make(chan struct{}, 12)
	done := make(chan struct{}, 2*calls)
	for i := range calls {
		for _, tool := range []string{"put", "look"} {
			wg.Go(func() {
				slots <- struct{}{}
				code := callRemote(t, addr, tool, i)
				<-slots
				done <- struct{}{}
				mu.Lock()
				defer mu.Unlock()
				codes[tool][code]++
				n := w.count(fmt.Sprintf("/%s/%d", tool, i))
				switch {
				case tool == "look" && code != "" && code != "unavailable": // on a machine so slow that it lost five workers
					t.Errorf("look %d: %s", i, code)
				case code == "" && n == 0:
					t.Errorf("%s %d: a result, and nothing was done", tool, i)
				case tool == "put" && code != "" && code != "interrupted":
					t.Errorf("put %d: %s", i, code)
				}
			})
		}
	}
	after := func(n int) {
		for range n {
			<-done
		}
	}
	after(10)
	workers[0].kill()
	workers[0] = startLabWorker(t, dir, lines.url(), "a2")
	after(10)
	if err := workers[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	after(10) // the other one goes on, and the calls of this one are given up
	lines.cut()
	if err := workers[1].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	after(10)
	lines.cut()
	wg.Wait()
	t.Logf("results %v", codes)
	for i := range calls {
		if n := w.count(fmt.Sprintf("/put/%d", i)); n > 1 {
			t.Errorf("put %d was done %d times", i, n)
		}
	}
	if codes["put"][""] == 0 || codes["look"][""] == 0 {
		t.Errorf("nothing was done: %v", codes)
	}
}

// The gateway is killed, or gets SIGTERM, while a worker executes a call of one of its runs. The next process waits for
// the same call, which the worker finishes: the run gets the result of the tool, and the tool was called once.
func TestGatewayEndsWhileAWorkerWorks(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gatewayEnds(t, end)
		})
	}
}

func gatewayEnds(t *testing.T, end syscall.Signal) {
	w := &world{keys: map[string][]string{}, called: make(chan string, 9), freed: make(chan struct{})}
	var answer sync.Once
	free := func() { answer.Do(func() { close(w.freed) }) }
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.ServeHTTP(rw, r)
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{"done":true}`)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(free)
	dir := workshopFiles(t, srv.URL, "1m")
	if err := os.WriteFile(filepath.Join(dir, "turns.txt"), []byte("-- turn --\ncall: put {\"n\":\"1\"}\n-- turn --\ntext: Done.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, addr := startGateway(t, dir, "--script", "turns.txt")
	lines := newBridge(t)
	lines.lead(addr)
	startLabWorker(t, dir, lines.url(), "a").awaitLine("connected to")
	waitForTool(t, addr, "put")
	res, err := http.Post("http://"+addr+"/api/runs", "application/json", strings.NewReader(`{"model":"sim/script","prompt":"Act."}`))
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%v %v", res, err)
	}
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&run); err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	<-w.called
	if err := first.cmd.Process.Signal(end); err != nil {
		t.Fatal(err)
	}
	<-first.over
	lines.lead("")
	_, addr = startGateway(t, dir, "--script", "turns.txt")
	lines.lead(addr)
	waitForTool(t, addr, "put") // it is known to the store
	free()
	var seen string
	for deadline := time.Now().Add(time.Minute); !strings.Contains(seen, `"type":"RunFinished"`); time.Sleep(50 * time.Millisecond) {
		res, err := http.Get("http://" + addr + "/api/runs/" + run.ID + "/events?follow=false")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if seen = string(b); time.Now().After(deadline) {
			t.Fatalf("the run does not end: %s", seen)
		}
	}
	if !strings.Contains(seen, `\"done\":true`) || strings.Contains(seen, `"error_type"`) || !strings.Contains(seen, "Done.") {
		t.Errorf("the run: %s", seen)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.keys["/put/1"]); n != 1 {
		t.Errorf("the tool was called %d times", n)
	}
}
