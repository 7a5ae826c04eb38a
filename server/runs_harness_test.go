package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A promptModel is a model that does what the prompt says: the n-th paragraph is its n-th turn, and has a
// call on each line, `tool {…}`. After the last it answers with what the tools said. It needs no
// memory, so a run can go on with another one.
type promptModel struct {
	step chan struct{} // when set, each turn waits for it
	size int           // bytes of text in each turn
}

func (*promptModel) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *promptModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		var prompt string
		var results []string
		turn := 0
		for i := range req.Messages {
			switch msg := &req.Messages[i]; msg.Role {
			case lathe.RoleUser:
				prompt = msg.Text()
			case lathe.RoleAssistant:
				turn++
			case lathe.RoleTool:
				results = append(results, msg.Parts[0].(lathe.ToolResult).Content)
			default: // system text
			}
		}
		if m.step != nil {
			select {
			case <-m.step:
			case <-ctx.Done():
				yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeCancelled, Op: "promptModel", Err: ctx.Err()})
				return
			}
		}
		f := &lathe.Finish{Reason: lathe.FinishStop, Model: "promptModel", Usage: lathe.Usage{InputTokens: 2, OutputTokens: 3, TotalTokens: 5}}
		f.Message.Role = lathe.RoleAssistant
		text := fmt.Sprintf("Turn %d. ", turn+1) + strings.Repeat("x", m.size)
		if paragraphs := strings.Split(prompt, "\n\n"); turn < len(paragraphs) && strings.Contains(paragraphs[turn], "{") {
			f.Reason = lathe.FinishToolCalls
			for i, line := range strings.Split(paragraphs[turn], "\n") {
				name, args, _ := strings.Cut(line, " ")
				f.Message.Parts = append(f.Message.Parts, lathe.ToolCall{ID: fmt.Sprintf("call_%d_%d", turn+1, i), Name: name, Arguments: args})
			}
		} else {
			text = "The tools said: " + strings.Join(results, " ")
		}
		for rest := text; rest != ""; {
			n := min(len(rest), max(7, len(text)/20))
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: rest[:n]}, nil) {
				return
			}
			rest = rest[n:]
		}
		f.Message.Parts = append([]lathe.Part{lathe.Text{Text: text}}, f.Message.Parts...)
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil)
	}
}

// A toolLog is what the tools of these tests have done.
type toolLog struct {
	wrote atomic.Int64
	held  chan struct{} // tells that hold was called
}

type numbered struct {
	N int `json:"n"`
}

func (w *toolLog) tools() []lathe.Tool {
	return []lathe.Tool{
		tool.Func("look", "Looks.", func(_ context.Context, in numbered) (numbered, error) { return in, nil },
			&tool.FuncOptions{Show: []string{"*"}, Effect: lathe.ReadOnly}),
		tool.Func("write", "Writes.", func(_ context.Context, in numbered) (numbered, error) {
			w.wrote.Add(1)
			return in, nil
		}, &tool.FuncOptions{Show: []string{"*"}, Effect: lathe.Writes}),
		tool.Func("hold", "Waits for its end.", func(ctx context.Context, in numbered) (numbered, error) {
			w.held <- struct{}{}
			<-ctx.Done()
			return in, ctx.Err()
		}, &tool.FuncOptions{Show: []string{"*"}, Effect: lathe.Writes}),
	}
}

// A runFixture is a fixture whose runs can be watched, asked and answered: a person is asked about write.
type runFixture struct {
	*fixture
	log       *toolLog
	model     *promptModel
	clock     *handClock
	approvals *approval.Queue
}

func (h *runFixture) setting(change func(*setting)) *setting {
	h.log, h.model, h.clock = &toolLog{held: make(chan struct{}, 1)}, &promptModel{}, newHandClock()
	h.approvals = approval.NewQueue(&approval.QueueOptions{Now: h.clock.now})
	s := &setting{tools: h.log.tools(), model: h.model, approvals: h.approvals, now: h.clock.now, limits: lathe.Limits{MaxIterations: 100, MaxToolCalls: 300, MaxRepeatedCalls: 1000},
		policy: policy.Tools{Ask: []string{"write"}, Else: policy.AllowAll()}}
	if change != nil {
		change(s)
	}
	return s
}

func open(t testing.TB, change func(*setting)) *runFixture {
	t.Helper()
	h := &runFixture{}
	h.fixture = serve(t, h.setting(change))
	return h
}

// A run is what clients see of it.
type run struct {
	ID        string            `json:"run_id"`
	Status    string            `json:"status"`
	Reason    string            `json:"reason"`
	Principal string            `json:"principal"`
	Last      int64             `json:"last_event_id"`
	Labels    map[string]string `json:"labels"`
	Answer    string            `json:"answer"`
	Replays   string            `json:"replays"`
	Open      []struct {
		ID        string            `json:"tool_call_id"`
		Tool      string            `json:"tool"`
		Arguments string            `json:"arguments"`
		State     string            `json:"state"`
		Digest    string            `json:"args_digest"`
		MayDecide bool              `json:"may_decide"`
		Facts     []approval.Detail `json:"facts"`
	} `json:"open_calls"`
	Decisions []struct {
		ID       string `json:"tool_call_id"`
		Digest   string `json:"args_digest"`
		Decision string `json:"decision"`
		By       string `json:"by"`
		Stored   bool   `json:"stored"`
	} `json:"decisions"`
}

// trouble is the body of an error response.
type trouble struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Param     string `json:"param"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	RequestID string `json:"request_id"`
	Newest    int64  `json:"newest_event_id"`
}

func parse[T any](t testing.TB, text string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// begin begins a run with a prompt, and members more of the request.
func (h *runFixture) begin(prompt string, more ...string) *run {
	h.t.Helper()
	raw, _ := json.Marshal(prompt) // a text
	resp, body := h.do("POST", "/api/runs", `{"model":"sim/any","prompt":`+string(raw)+strings.Join(append([]string{""}, more...), ",")+`}`)
	if resp.StatusCode != http.StatusCreated {
		h.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	r := parse[run](h.t, body)
	if got := resp.Header.Get("Location"); got != "/api/runs/"+r.ID {
		h.t.Errorf("the run is at %q", got)
	}
	return r
}

func (h *runFixture) show(id string) *run {
	h.t.Helper()
	resp, body := h.do("GET", "/api/runs/"+id, "")
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return parse[run](h.t, body)
}

// rest waits until the run waits or has ended, and shows it.
func (h *runFixture) rest(id string) *run {
	h.t.Helper()
	h.watchUntil(id, h.show(id).Last-1, func(e *told) bool { return e.Type == "RunPaused" || e.Type == "RunFinished" })
	_, _, _ = h.crew.Wait(h.t.Context(), id)
	return h.show(id)
}

// ask makes a request and wants it refused.
func (h *runFixture) refused(method, path, body string, status int, code string, header ...string) *trouble {
	h.t.Helper()
	resp, text := h.do(method, path, body, header...)
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode >= 400 && ct != "application/problem+json" {
		h.t.Errorf("%s %s: an error of type %s", method, path, ct)
	}
	got := &trouble{Status: resp.StatusCode}
	if resp.StatusCode >= 400 {
		got = parse[trouble](h.t, text)
	}
	if resp.StatusCode != status || got.Status != status || got.Code != code {
		h.t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, resp.StatusCode, text, status, code)
	}
	if page, anchor, _ := strings.Cut(got.Type, "#"); resp.StatusCode >= 400 && (page != errorsPage || anchor != code || !strings.Contains(errorsDoc(h.t), `<a id="`+anchor+`"></a>`)) {
		h.t.Errorf("%s %s: the type of the problem is %q, want the row of %s in %s", method, path, got.Type, code, errorsPage)
	}
	return got
}

// approve answers the only call that waits for an approval.
func (h *runFixture) answer(r *run, verb string, more ...string) (int, string) {
	h.t.Helper()
	for _, o := range r.Open {
		if o.State == "awaiting_approval" {
			resp, body := h.do("POST", "/api/runs/"+r.ID+"/approvals/"+o.ID,
				`{"decision":"`+verb+`","digest":"`+o.Digest+`"`+strings.Join(append([]string{""}, more...), ",")+`}`)
			return resp.StatusCode, body
		}
	}
	h.t.Fatalf("no call waits: %+v", r)
	return 0, ""
}

// A told event is one of a stream.
type told struct {
	ID   string // of the frame
	Line string
	Type string `json:"type"`
	Num  int64  `json:"event_id"`
	// After and N are of deltas.
	After   int64 `json:"after"`
	N       int64 `json:"n"`
	Content struct {
		Text    string `json:"text"`
		Message struct {
			Parts []struct{ Type, Text string }
		}
		Answer string
	}
	Data json.RawMessage
}

// A tail is an open stream of events.
type tail struct {
	t      testing.TB
	sc     *bufio.Scanner
	close  func()
	resp   *http.Response
	pauses int // comments
}

func (f *fixture) tail(id string, after int64, query string) *tail {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/api/runs/"+id+"/events"+query, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	if f.key != "" {
		req.Header.Set("Authorization", "Bearer "+f.key)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body) // it is shown
		f.t.Fatalf("%d %s", resp.StatusCode, b)
	}
	sc := bufio.NewScanner(resp.Body)
	sc.Buffer(nil, 16<<20)
	return &tail{t: f.t, sc: sc, resp: resp, close: func() {
		cancel()
		_ = resp.Body.Close()
	}}
}

// next returns the next event; nil at the end of the stream.
func (x *tail) next() *told {
	x.t.Helper()
	var id, typ string
	for x.sc.Scan() {
		line := x.sc.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			id = value
		case "event":
			typ = value
		case "data":
			e := parse[told](x.t, value)
			e.ID, e.Line = id, value
			if e.Type != typ {
				x.t.Errorf("a %s in a frame of type %q", e.Type, typ)
			}
			if want := strconv.FormatInt(e.Num, 10); e.Num > 0 && id != want || e.Num == 0 && id != "" {
				x.t.Errorf("event %d under id %q", e.Num, id)
			}
			return e
		case "":
			if strings.HasPrefix(line, ":") {
				x.pauses++
			}
		}
	}
	return nil
}

// watchUntil returns the events after one, up to the first that enough says yes to.
func (h *runFixture) watchUntil(id string, after int64, enough func(*told) bool) (all []*told) {
	h.t.Helper()
	x := h.tail(id, after, "")
	defer x.close()
	for {
		e := x.next()
		if e == nil {
			return all
		}
		all = append(all, e)
		if enough(e) {
			return all
		}
	}
}

// export returns the lines of a run's log.
func (h *runFixture) export(id string) []string {
	h.t.Helper()
	resp, body := h.do("GET", "/api/runs/"+id+"/export", "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/jsonl" {
		h.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return strings.Split(strings.TrimSuffix(body, "\n"), "\n")
}
