package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/store"
)

// An upstreamFault is a failure of a model server, with the error that the client of the gateway gets before the first
// byte was sent and after it.
type upstreamFault struct {
	name   string
	status int // 0: no answer at all
	want   int
	code   string
	inBand string // the code that the client gets if the failure happens in the middle of a stream
}

var upstreamFaults = []upstreamFault{
	{"400", 400, 400, "context_length_exceeded", "context_length_exceeded"},
	{"401", 401, 400, "upstream_4xx", "upstream_4xx"},
	{"429", 429, 429, "rate_limited", "rate_limited"},
	{"500", 500, 502, "upstream_5xx", "upstream_5xx"},
	{"timeout", 0, 504, "timeout", "timeout"},
	{"reset", 0, 502, "aborted", "aborted"},
}

const canary = "canary-of-the-operator"

func (u *upstreamFault) response(r *http.Request) (*http.Response, error) {
	if u.status == 0 {
		return nil, u.breaks(r.Context())
	}
	return &http.Response{StatusCode: u.status, Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"7"}},
		Body: io.NopCloser(strings.NewReader(u.body())), Request: r}, nil
}

func (u *upstreamFault) body() string {
	if u.status == 400 {
		return `{"error":{"message":"The prompt is too long.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
	}
	return fmt.Sprintf(`{"error":{"message":"%s","type":"x","param":null,"code":%d}}`, canary, u.status)
}

// silence is for how long the model server may be silent; 0: as in other tests.
func (u *upstreamFault) silence() time.Duration {
	if u.name == "timeout" {
		return time.Second
	}
	return 0
}

// breaks says nothing until the reader gives up, or breaks the connection off.
func (u *upstreamFault) breaks(ctx context.Context) error {
	if u.name == "timeout" {
		<-ctx.Done()
		return ctx.Err()
	}
	return &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
}

// middle is an answer that begins well.
func (u *upstreamFault) middle(r *http.Request) (*http.Response, error) {
	pr, pw := io.Pipe()
	go func() {
		_, _ = io.WriteString(pw, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Well, "}}]}`+"\n\n")
		if u.status == 0 {
			_ = pw.CloseWithError(u.breaks(r.Context()))
			return
		}
		_, _ = io.WriteString(pw, "data: "+u.body()+"\n\n")
		_ = pw.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr, Request: r}, nil
}

// Each way in which a model server fails, at each place of a run, streamed and not: a real status
// before the first byte, an error within the stream after it, and then its end.
func TestUpstreamErrorMatrix(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for _, u := range upstreamFaults {
		for _, place := range []string{"before", "middle", "between rounds"} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprint(u.name, " ", place, " stream ", stream), func(t *testing.T) {
					t.Parallel()
					f := serve(t, &setting{silence: u.silence(), instead: func(n int, r *http.Request) (*http.Response, error) {
						switch {
						case place == "before" && n == 1, place == "between rounds" && n == 2:
							return u.response(r)
						case place == "middle" && n == 1:
							return u.middle(r)
						}
						return nil, nil
					}})
					resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "What is 7 + 35?", fmt.Sprintf(`,"stream":%v`, stream)))
					if strings.Contains(body, canary) {
						t.Errorf("the client is told what the model server said to its operator: %s", body)
					}
					if stream && place != "before" {
						if resp.StatusCode != 200 {
							t.Fatalf("status %d: %s", resp.StatusCode, body)
						}
						s := readStream(t, body)
						if s.err == "" || s.errCode != u.inBand || s.done || s.finish != "" || s.Content == "" {
							t.Errorf("got %+v, want text, then an error of code %s, and no more", s, u.inBand)
						}
						return
					}
					code := u.code
					if place == "middle" {
						code = u.inBand
					}
					checkError(t, u.name, resp, body, u.want, code, "")
					if u.want == 429 && place != "middle" && resp.Header.Get("Retry-After") != "7" {
						t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
					}
					if retry := resp.Header.Get("X-Should-Retry"); (retry == "false") != (place == "between rounds" || u.want == 400) {
						t.Errorf("X-Should-Retry %q: tools that ran must not run again unasked, and what cannot succeed not at all", retry)
					}
				})
			}
		}
	}
}

// A client that leaves takes its run along, unless it said that the run goes on.
func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	for _, detach := range []bool{false, true} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint("detach ", detach, " stream ", stream), func(t *testing.T) {
				t.Parallel()
				began, goOn := make(chan struct{}), make(chan struct{})
				model := &fake{turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "the whole answer"}) }, wait: func(ctx context.Context) {
					close(began)
					select {
					case <-goOn:
					case <-ctx.Done():
					}
				}}
				f := serve(t, &setting{model: model})
				ctx, leave := context.WithCancel(t.Context())
				body := ask("sim/x", "x", fmt.Sprintf(`,"stream":%v,"lathe":{"detach":%v}`, stream, detach))
				req, _ := http.NewRequestWithContext(ctx, "POST", f.url+"/v1/chat/completions", strings.NewReader(body))
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					if resp, err := f.client.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}()
				<-began
				leave()
				<-gone
				if detach {
					close(goOn)
				}
				f.crew.Drain(context.Background())
				f.gateway.Drain(context.Background())
				rows := f.stored(&store.RunFilter{})
				want := lathe.ReasonCancelled
				if detach {
					want = lathe.ReasonAnswered
				}
				if len(rows) != 1 || rows[0].Reason != want {
					t.Errorf("runs %+v, want one that ended %s", rows, want)
				}
			})
		}
	}
}

// A stream is kept alive while nothing is said: before the first token and while tools run.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	model := &fake{turn: func(int, *lathe.Request) lathe.Message {
		<-goOn
		return says(lathe.Text{Text: "ok"})
	}}
	f := serve(t, &setting{model: model, opts: quickKeepAlive})
	resp, err := f.client.Post(f.url+"/v1/chat/completions", "application/json", strings.NewReader(ask("sim/x", "x", `,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	r := bufio.NewReader(resp.Body)
	for range 3 {
		line, err := r.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, ":") {
			t.Fatalf("got %q (%v), want a comment", line, err)
		}
		_, _ = r.ReadString('\n')
	}
	close(goOn)
	rest, err := io.ReadAll(r)
	if s := readStream(t, string(rest)); err != nil || s.Content != "ok" || !s.done {
		t.Errorf("got %+v (%v)", s, err)
	}
}

// What a model server said about its failure is in the view of the run for its owner, and in the content of the event,
// not in its data.
func TestServersWordsAreInTheRunsView(t *testing.T) {
	t.Parallel()
	u := &upstreamFaults[slices.IndexFunc(upstreamFaults, func(u upstreamFault) bool { return u.name == "500" })]
	for _, place := range []string{"before", "middle"} {
		f := serve(t, &setting{instead: func(_ int, r *http.Request) (*http.Response, error) {
			if place == "middle" {
				return u.middle(r)
			}
			return u.response(r)
		}})
		resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "What is 7 + 35?", ""))
		if resp.StatusCode != 502 {
			t.Fatalf("%s: status %d: %s", place, resp.StatusCode, body)
		}
		id := resp.Header.Get("X-Lathe-Run-Id")
		_, view := f.do("GET", "/api/runs/"+id, "")
		if !strings.Contains(view, `"error_message":"`+canary+`"`) {
			t.Errorf("%s: the view of the run is %s", place, view)
		}
		words := 0
		for line := range strings.Lines(f.export(id)) {
			var e event.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if d, err := e.MarshalData(); err != nil || strings.Contains(string(d), canary) {
				t.Errorf("%s: %v, data %s", place, err, d)
			}
			if d, ok := e.Data.(*event.ModelCallFinished); ok && d.ErrorMessage == canary && d.UpstreamStatus == 500 && d.ProviderCode != "" {
				words++
			}
		}
		if words == 0 {
			t.Errorf("%s: no event holds the words", place)
		}
	}
}
