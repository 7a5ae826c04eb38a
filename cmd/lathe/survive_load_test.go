//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// A trial has clients make runs at a `lathe serve` that is killed again and again. Its model and its tools
// are outside, and remember what they were asked and what they did.
type trial struct {
	t        *testing.T
	ctx      context.Context
	dir      string
	stirs    chan struct{} // something has happened at the model or at a tool
	settling chan struct{} // closed when no process is killed any more
	clients  sync.WaitGroup

	mu    sync.Mutex
	bases []string      // of the processes that serve
	next  int           // where the next request goes
	up    chan struct{} // closed when bases changes
	asked map[string]int
	deeds []enginetest.Deed // whose RunID is the tag of the run, and whose CallID is still to be found
	runs  []*tagged
}

// A tagged run is one that a client has made. The tag is its prompt.
type tagged struct {
	tag, id string
	tail    enginetest.Tail
}

// trialTurns are what the model of a trial says in each run.
var trialTurns = [][]string{{"look", "put", "pay"}, {"pay", "ask_pay"}}

var trialTools = map[string]enginetest.Tool{"look": {Effect: lathe.ReadOnly}, "put": {Effect: lathe.Idempotent}, "pay": {Effect: lathe.Writes},
	"ask_pay": {Effect: lathe.Writes, Asks: true}}

// newTrial makes a trial whose configuration has these lines, too.
func newTrial(t *testing.T, more ...string) *trial {
	t.Helper()
	testdata.NeedLong(t)
	const patience = 10 * time.Minute // for the cycles of ./test --all; with LATHE_SOAK_CYCLES the deadline of the tests counts
	end := time.Now().Add(patience)
	if last, ok := t.Deadline(); ok && os.Getenv("LATHE_SOAK_CYCLES") != "" {
		end = last.Add(-time.Minute) // so that a trial that stands still says so
	}
	ctx, cancel := context.WithDeadline(t.Context(), end)
	x := &trial{t: t, ctx: ctx, dir: t.TempDir(), stirs: make(chan struct{}), settling: make(chan struct{}), up: make(chan struct{}), asked: map[string]int{}}
	srv := httptest.NewServer(x)
	t.Cleanup(func() {
		cancel()
		x.clients.Wait()
		srv.Close()
	})
	var b strings.Builder
	fmt.Fprintf(&b, "models: {main: {base_url: %q, model: scripted}}\nserve: {max_concurrent: 64}\n", srv.URL+"/v1")
	b.WriteString(strings.Join(more, ""))
	fmt.Fprint(&b, "policy: {tools: {look: allow, put: allow, pay: allow, ask_pay: ask}}\ntools:\n  egress: {private: [127.0.0.1]}\n  http:\n")
	for name, tool := range trialTools {
		method := "POST"
		if tool.Effect == lathe.ReadOnly {
			method = "GET"
		}
		fmt.Fprintf(&b, "    %s: {description: Does it., url: %q, method: %s, effect: %s, allowlist: [\"*\"], max_attempts: 1, parameters: {run: {in: query}, n: {in: query}}}\n",
			name, srv.URL+"/do/"+name, method, tool.Effect)
	}
	if err := os.WriteFile(filepath.Join(x.dir, "lathe.yaml"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return x
}

// stir publishes on stirs that something has happened, and blocks until a receiver takes it or the kills are over.
func (x *trial) stir() {
	select {
	case x.stirs <- struct{}{}:
	case <-x.settling:
	case <-x.ctx.Done():
	}
}

// ServeHTTP is the model server, and the tools.
func (x *trial) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/do/"); ok {
		run, n := r.URL.Query().Get("run"), r.URL.Query().Get("n")
		x.mu.Lock()
		x.deeds = append(x.deeds, enginetest.Deed{RunID: run, Tool: name, Key: r.Header.Get("Idempotency-Key"), Args: trialArgs(run, n)})
		x.mu.Unlock()
		x.stir()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"did":%q}`, n)
		return
	}
	var req struct {
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	tag, turn := fmt.Sprint(req.Messages[0].Content), 0
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			turn++
		}
	}
	x.mu.Lock()
	x.asked[tag]++
	x.mu.Unlock()
	x.stir()
	w.Header().Set("Content-Type", "text/event-stream")
	delta, finish := `{"role":"assistant","content":"done"}`, "stop"
	if turn < len(trialTurns) {
		var calls []string
		for i, name := range trialTurns[turn] {
			args, _ := json.Marshal(string(trialArgs(tag, fmt.Sprint(turn*10+i)))) // a text
			calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d_%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, turn, i, name, args))
		}
		delta, finish = `{"role":"assistant","tool_calls":[`+strings.Join(calls, ",")+`]}`, "tool_calls"
	}
	const chunk = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"scripted\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n"
	fmt.Fprintf(w, chunk, delta, "null")
	fmt.Fprintf(w, chunk, "{}", strconv.Quote(finish))
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func trialArgs(run, n string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"run":%q,"n":%q}`, run, n))
}

// serves starts a process and tells the clients where it is.
func (x *trial) serves(store string) *proc {
	p := startProc(x.t, x.dir, "serve", "--addr", "127.0.0.1:0", "--store", store, "--log", "error")
	x.change(nil, []string{strings.TrimSuffix(p.awaitLine(`http://\S+/v1`), "/v1")})
	return p
}

// kills ends a process. The clients find out.
func (x *trial) kills(p *proc) {
	base := strings.TrimSuffix(p.awaitLine(`http://\S+/v1`), "/v1")
	p.kill()
	x.change([]string{base}, nil)
}

func (x *trial) change(gone, come []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bases = append(slices.DeleteFunc(x.bases, func(b string) bool { return slices.Contains(gone, b) }), come...)
	close(x.up)
	x.up = make(chan struct{})
}

// address returns the base URL for the next request, or "" while no process serves. up is closed when that changes.
func (x *trial) address() (base string, up <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.bases) > 0 {
		x.next++
		base = x.bases[x.next%len(x.bases)]
	}
	return base, x.up
}

// do repeats a request until a process answers it.
func (x *trial) do(method, path, body string, header ...string) (status int, answer string) {
	for x.ctx.Err() == nil {
		base, up := x.address()
		if base != "" {
			if resp, err := x.send(x.ctx, method, base+path, body, header...); err == nil {
				b, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close() // it is read
				if err == nil && resp.StatusCode < 500 {
					return resp.StatusCode, string(b)
				}
			}
		}
		x.pause(up)
	}
	return 0, ""
}

// try makes one request.
func (x *trial) try(method, path, body string, header ...string) (status int, answer string) {
	x.t.Helper()
	base, _ := x.address()
	resp, err := x.send(x.ctx, method, base+path, body, header...)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// pause waits for another process, or a little.
func (x *trial) pause(up <-chan struct{}) {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-up:
	case <-timer.C:
	case <-x.ctx.Done():
	}
}

func (x *trial) send(ctx context.Context, method, url, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return http.DefaultClient.Do(req)
}

// client makes runs, one after the other, and sees each to its end.
func (x *trial) client(name string) {
	for n := 0; x.ctx.Err() == nil; n++ {
		select {
		case <-x.settling:
			return
		default: // one more
		}
		r := &tagged{tag: fmt.Sprintf("%s-%d", name, n)}
		status, answer := x.do("POST", "/api/runs", `{"model":"main","prompt":"`+r.tag+`"}`, "Idempotency-Key", r.tag)
		var made struct {
			ID string `json:"run_id"`
		}
		if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusCreated {
			x.t.Errorf("%s: %d %s", r.tag, status, answer)
			return
		}
		r.id, r.tail.RunID = made.ID, made.ID
		x.mu.Lock()
		x.runs = append(x.runs, r)
		x.mu.Unlock()
		for !x.follow(r) && x.ctx.Err() == nil {
			_, up := x.address()
			x.pause(up)
		}
	}
}

// follow watches a run over one connection, and reports whether it has seen its end.
func (x *trial) follow(r *tagged) (over bool) {
	x.approve(r.id)
	base, _ := x.address()
	last := "0"
	if n := len(r.tail.IDs); n > 0 {
		last = fmt.Sprint(r.tail.IDs[n-1])
	}
	resp, err := x.send(x.ctx, "GET", base+"/api/runs/"+r.id+"/events", "", "Last-Event-ID", last)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	lines := bufio.NewReader(resp.Body)
	var id, kind string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if id == "" {
				continue // live only
			}
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				x.t.Errorf("the id of an event is %q", id)
			}
			r.tail.IDs, r.tail.Lines = append(r.tail.IDs, n), append(r.tail.Lines, value)
		case "":
			switch {
			case kind == "RunFinished" && id != "":
				r.tail.Whole = true
				return true
			case kind == "RunPaused":
				x.approve(r.id)
			}
			id, kind = "", ""
		}
	}
}

// approve answers what a run waits for.
func (x *trial) approve(id string) {
	_, answer := x.do("GET", "/api/runs/"+id, "")
	var r struct {
		Open []struct {
			ID     string `json:"tool_call_id"`
			Tool   string `json:"tool"`
			Digest string `json:"args_digest"`
		} `json:"open_calls"`
	}
	if json.Unmarshal([]byte(answer), &r) != nil {
		return
	}
	for _, c := range r.Open {
		if c.Digest != "" {
			x.do("POST", "/api/runs/"+id+"/approvals/"+c.ID, fmt.Sprintf(`{"decision":"approve","digest":%q}`, c.Digest))
		}
	}
}

// history is what the trial has left.
func (x *trial) history(s store.RunIndex, kills int) *enginetest.History {
	x.t.Helper()
	h := &enginetest.History{Tools: trialTools, Kills: kills}
	for _, r := range x.runs {
		l := enginetest.RunLog{ID: r.id, Acked: true, Asked: x.asked[r.tag]}
		for e, err := range s.Read(x.t.Context(), r.id, 0) {
			if err != nil {
				x.t.Fatal(err)
			}
			l.Events = append(l.Events, e)
		}
		rows, _, err := s.Runs(x.t.Context(), &store.RunFilter{RunID: r.id})
		if err != nil || len(rows) != 1 {
			x.t.Fatalf("%s: %d rows, %v", r.id, len(rows), err)
		}
		l.Row = &rows[0]
		calls := map[string]string{} // by arguments
		for i := range l.Events {
			if d, ok := l.Events[i].Data.(*event.ModelCallFinished); ok && d.Message != nil {
				for _, p := range d.Message.Parts {
					if c, ok := p.(lathe.ToolCall); ok {
						calls[c.Arguments] = c.ID
					}
				}
			}
		}
		for _, d := range x.deeds {
			if d.RunID == r.tag {
				d.RunID, d.CallID = r.id, calls[string(d.Args)]
				h.Deeds = append(h.Deeds, d)
			}
		}
		h.Runs, h.Tails = append(h.Runs, l), append(h.Tails, r.tail)
	}
	return h
}

// cycles is how often a process is killed: 25 times if every test runs, else 8; LATHE_SOAK_CYCLES sets another number.
func cycles(t *testing.T) int {
	t.Helper()
	s := os.Getenv("LATHE_SOAK_CYCLES")
	switch {
	case s == "" && testdata.All():
		return 25
	case s == "":
		return 8
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// F1: a `lathe serve` that is killed in the middle of its work, again and again, loses nothing and does nothing twice.
// Every client gets all events of its run, once.
func TestF1_ServeKilledUnderLoad(t *testing.T) {
	t.Parallel()
	x := newTrial(t)
	store := "sqlite:" + filepath.Join(x.dir, "runs.db")
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	n := cycles(t)
	for range n {
		p := x.serves(store)
		for range 1 + rng.IntN(20) {
			select {
			case <-x.stirs:
			case <-x.ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		x.kills(p)
	}
	close(x.settling)
	x.serves(store)
	x.clients.Wait()
	x.judge(kept(t, x.dir), n)
}

// judge holds what the trial has left to the promises, and prints the table.
func (x *trial) judge(s store.RunIndex, kills int) {
	x.t.Helper()
	h := x.history(s, kills)
	bad := h.Check()
	table := &enginetest.Table{}
	table.Add(h, bad)
	x.t.Logf("%d cycles\n%s", kills, table)
	for _, v := range bad {
		x.t.Error(v)
	}
	for i := range h.Runs {
		if state, err := loop.Fold(h.Runs[i].Events); err != nil || state.Finished == nil || state.Finished.Reason != lathe.ReasonAnswered {
			x.t.Errorf("%s: %v, %+v", h.Runs[i].ID, err, state.Finished)
		}
	}
	if x.ctx.Err() != nil || len(h.Runs) == 0 || table.Resumed == 0 {
		x.t.Errorf("%d runs, resumed %d times: %v", len(h.Runs), table.Resumed, x.ctx.Err())
	}
}
