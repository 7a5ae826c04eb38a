package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
)

// answerTimeout is the time within which a request must be answered, repetitions included. One that is not has failed.
const answerTimeout = 60 * time.Second

// A balancer sends each request to the next node. It repeats requests as docs/cluster.md has clients do: at another node if
// the connection breaks, and after 502 to 504.
type balancer struct {
	nodes []*node
	http  *http.Client
	next  atomic.Uint64

	mu       sync.Mutex
	requests int
	repeated map[string]int // by cause
	failed   map[string]int // requests that were not answered as documented, by cause
}

func newBalancer(nodes []*node) *balancer {
	return &balancer{nodes: nodes, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}, repeated: map[string]int{}, failed: map[string]int{}}
}

// address returns the address for the next request.
func (b *balancer) address() string { return b.nodes[b.next.Add(1)%uint64(len(b.nodes))].base }

func (b *balancer) repeat(cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.repeated[cause]++
}

func (b *balancer) fail(cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[cause]++
}

// do sends a request until a node answers it. ok is false if none did in time, or if the status is none of those that want are
// expected; the request has failed then.
func (b *balancer) do(ctx context.Context, method, path, body string, header []string, want ...int) (answer []byte, ok bool) {
	b.mu.Lock()
	b.requests++
	b.mu.Unlock()
	end := time.Now().Add(answerTimeout)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		status, answer, err := b.once(ctx, method, b.address()+path, body, header)
		switch {
		case ctx.Err() != nil:
			return nil, false
		case err == nil && (status < 500 || status == http.StatusInternalServerError):
			for _, w := range want {
				if status == w {
					return answer, true
				}
			}
			b.fail(fmt.Sprintf("%s %s: %d %s", method, shape(path), status, code(answer)))
			return answer, false
		case err != nil:
			b.repeat("no connection")
		default:
			b.repeat(fmt.Sprintf("%d %s", status, code(answer)))
		}
		if time.Now().After(end) {
			b.fail(fmt.Sprintf("%s %s: not answered within %v", method, shape(path), answerTimeout))
			return nil, false
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (b *balancer) once(ctx context.Context, method, url, body string, header []string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := b.send(ctx, method, url, body, header)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it is read
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

func (b *balancer) send(ctx context.Context, method, url, body string, header []string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return b.http.Do(req)
}

// shape returns a path without its ids.
func shape(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "run_") || strings.HasPrefix(p, "c0_") || strings.HasPrefix(p, "c1_") || strings.HasPrefix(p, "call_") {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// code returns the code of a problem document.
func code(answer []byte) string {
	var p struct{ Code string }
	_ = json.Unmarshal(answer, &p) // an answer of another form has no code
	return p.Code
}

// A run is one run that a client has made. Its tag is its prompt.
type run struct {
	tag, id  string
	tail     enginetest.Tail
	took     time.Duration
	approved []string // calls of which an approval was acknowledged
}

// begin starts a run. It returns nil if the request failed.
func (b *balancer) begin(ctx context.Context, model, tag string) *run {
	answer, ok := b.do(ctx, "POST", "/api/runs", fmt.Sprintf(`{"model":%q,"prompt":%q}`, model, tag), []string{"Idempotency-Key", tag}, http.StatusCreated)
	if !ok {
		return nil
	}
	var made struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || made.ID == "" {
		b.fail("POST /api/runs: an answer without a run")
		return nil
	}
	r := &run{tag: tag, id: made.ID}
	r.tail.RunID = made.ID
	return r
}

// see follows a run to its end, approves its calls, and resumes it when it is parked as interrupted. Between two connections it
// waits a little. It reports whether it saw the end: it did not if ctx was done first, or if a request failed.
func (b *balancer) see(ctx context.Context, r *run) bool {
	for ctx.Err() == nil {
		over, ok := b.follow(ctx, r)
		if over || !ok {
			return over
		}
		b.repeat("a stream broke")
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return false
}

// follow watches a run over one connection. over reports whether it has seen the end of the run; ok is false if a request has
// failed, so that the run may wait forever.
func (b *balancer) follow(ctx context.Context, r *run) (over, ok bool) {
	last := "0"
	if n := len(r.tail.IDs); n > 0 {
		last = strconv.FormatInt(r.tail.IDs[n-1], 10)
		if !b.unpause(ctx, r) { // the client may have lost the event of the pause
			return false, false
		}
	}
	resp, err := b.send(ctx, "GET", b.address()+"/api/runs/"+r.id+"/events", "", []string{"Last-Event-ID", last})
	if err != nil {
		return false, true
	}
	defer func() { _ = resp.Body.Close() }() // it is read, or broken
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode < 500 {
			b.fail(fmt.Sprintf("GET /api/runs/…/events: %d", resp.StatusCode))
		}
		return false, resp.StatusCode >= 500
	}
	lines := bufio.NewReader(resp.Body)
	var id, kind string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false, true
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
				b.fail("the id of an event is no number")
				return false, false
			}
			r.tail.IDs, r.tail.Lines = append(r.tail.IDs, n), append(r.tail.Lines, value)
		case "":
			switch {
			case kind == "RunFinished" && id != "":
				r.tail.Whole = true
				return true, true
			// A keep-alive: a node that was killed may have acknowledged a resumption before it stored one.
			case kind == "RunPaused" && id != "", value == "keep-alive":
				if !b.unpause(ctx, r) {
					return false, false
				}
			}
			id, kind = "", ""
		}
	}
}

// unpause answers what a run waits for, except calls of which an approval was acknowledged. A run that is parked as interrupted
// it resumes, as an operator does: on a busy machine nodes may lose their claims on it as often as if it crashed them. ok is false
// if a request failed.
func (b *balancer) unpause(ctx context.Context, r *run) (ok bool) {
	answer, ok := b.do(ctx, "GET", "/api/runs/"+r.id, "", nil, http.StatusOK)
	if !ok {
		return false
	}
	var now struct {
		Status, Reason string
		Open           []struct {
			ID     string `json:"tool_call_id"`
			Digest string `json:"args_digest"`
		} `json:"open_calls"`
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		b.fail("GET /api/runs/…: an answer that cannot be read")
		return false
	}
	for _, c := range now.Open {
		if c.Digest == "" || slices.Contains(r.approved, c.ID) {
			continue
		}
		// 404 and 409: the run went on between the two requests, with an approval that was sent before.
		body := fmt.Sprintf(`{"decision":"approve","digest":%q}`, c.Digest)
		answer, ok := b.do(ctx, "POST", "/api/runs/"+r.id+"/approvals/"+c.ID, body, nil, http.StatusOK, http.StatusAccepted, http.StatusNotFound, http.StatusConflict)
		if !ok {
			return false
		}
		if code(answer) == "" {
			r.approved = append(r.approved, c.ID)
		}
	}
	if now.Status != "parked" || now.Reason != string(lathe.ReasonInterrupted) {
		return true
	}
	b.repeat("an interrupted run was resumed")
	_, ok = b.do(ctx, "POST", "/api/runs/"+r.id+"/resume", "", nil, http.StatusOK, http.StatusAccepted, http.StatusConflict) // 409: it went on between the two requests
	return ok
}

// A load is the runs that clients make, each one after the other.
type load struct {
	b       *balancer
	clients sync.WaitGroup
	quit    chan struct{} // closed when no more runs are begun

	mu   sync.Mutex
	runs []*run
	done int // runs whose end a client has seen
}

// drive has n clients make runs of a model. The tags of the runs begin with name.
func drive(ctx context.Context, b *balancer, name, model string, n int) *load {
	l := &load{b: b, quit: make(chan struct{})}
	for i := range n {
		l.clients.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				select {
				case <-l.quit:
					return
				default: // one more
				}
				began := time.Now()
				r := b.begin(ctx, model, fmt.Sprintf("%s-%d-%d", name, i, k))
				if r == nil {
					continue
				}
				l.mu.Lock()
				l.runs = append(l.runs, r)
				l.mu.Unlock()
				if b.see(ctx, r) {
					r.took = time.Since(began)
					l.mu.Lock()
					l.done++
					l.mu.Unlock()
				}
			}
		})
	}
	return l
}

// finished returns of how many runs a client has seen the end.
func (l *load) finished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// end has the clients see their last runs to the end.
func (l *load) end() []*run {
	close(l.quit)
	l.clients.Wait()
	return l.runs
}
