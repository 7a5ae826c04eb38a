package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
)

// recorder answers with an answer of one word and keeps the bodies it got.
type recorder struct {
	mu     sync.Mutex
	bodies [][]byte
	keep   func(*http.Request) // nil: the body is read and closed
}

func (c *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if c.keep != nil {
		c.keep(r)
	} else {
		r.Body.Close()
	}
	if int64(len(body)) != r.ContentLength {
		return nil, fmt.Errorf("content length is %d, the body has %d bytes", r.ContentLength, len(body))
	}
	if !json.Valid(body) {
		return nil, fmt.Errorf("not JSON: %s", body)
	}
	c.mu.Lock()
	c.bodies = append(c.bodies, body)
	c.mu.Unlock()
	return respond(io.NopCloser(strings.NewReader(data(text("ok"), finished("stop"), done)))), nil
}

func (c *recorder) last() []byte { return c.bodies[len(c.bodies)-1] }

func result(id, content string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: content}}}
}

func call(id, name, args string) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: id, Name: name, Arguments: args}}}
}

// Whatever the requests of a conversation are, each is sent as by a model that has sent none before.
func TestRequestDoesNotDependOnThoseBefore(t *testing.T) {
	t.Parallel()
	temp := 0.5
	tools := []*lathe.ToolSpec{{Name: "add", Description: "adds", Schema: json.RawMessage(`{"type":"object"}`)}}
	history := []lathe.Message{lathe.System("s"), lathe.User("1 + 1?")}
	req := func(change func(*lathe.Request)) *lathe.Request {
		r := &lathe.Request{Messages: history, Tools: tools}
		if change != nil {
			change(r)
		}
		return r
	}
	var steps []*lathe.Request
	step := func(r *lathe.Request) { steps = append(steps, r) }
	step(req(nil))
	for i := range 5 {
		history = append(history[:len(history):len(history)], call(fmt.Sprint("c", i), "add", `{"a":1}`), result(fmt.Sprint("c", i), strings.Repeat("x", i*1000)))
		step(req(nil))
	}
	step(req(func(r *lathe.Request) { r.ToolChoice.Mode = lathe.ChoiceRequired }))
	step(req(func(r *lathe.Request) { r.Tools = nil; r.Sampling.Temperature = &temp }))
	step(req(func(r *lathe.Request) {
		r.Messages = append(history[:len(history):len(history)], lathe.User("Please provide your final answer."))
	}))
	step(req(nil))                                                 // without that message again
	step(req(func(r *lathe.Request) { r.Messages = history[:1] })) // shorter
	step(req(func(r *lathe.Request) { r.Messages = nil }))         // nothing
	step(req(func(r *lathe.Request) { r.Model = "another" }))      // everything again
	step(req(func(r *lathe.Request) { r.Overrides = []lathe.Member{{Name: "k", Value: json.RawMessage("1")}} }))
	var many []*lathe.ToolSpec // so many that requests share their definitions
	for i := range 50 {
		many = append(many, &lathe.ToolSpec{Name: fmt.Sprint("many", i), Description: strings.Repeat("x", 1000)})
	}
	hosted := []json.RawMessage{json.RawMessage(`{"type":"h1"}`), json.RawMessage(`{"type":"h2"}`)}
	for i := range 3 {
		step(req(func(r *lathe.Request) { r.Tools = many }))
		step(req(func(r *lathe.Request) { r.Tools = many; r.Messages = history[:len(history)-1+i%2] }))
		step(req(func(r *lathe.Request) { r.Tools = many; r.HostedTools = hosted }))
		step(req(func(r *lathe.Request) { r.Tools = many[:45]; r.ToolChoice.Mode = lathe.ChoiceRequired }))
		step(req(func(r *lathe.Request) {
			r.Tools = append(many[:45:45], &lathe.ToolSpec{Name: "c", Owner: lathe.OwnerClient})
		}))
		step(req(func(r *lathe.Request) { r.HostedTools = hosted; r.Tools = nil }))
	}
	for name, keep := range map[string]func(*http.Request){
		"bodies are closed":      nil,
		"bodies are left open":   func(*http.Request) {},
		"bodies are asked again": func(r *http.Request) { _, _ = r.GetBody() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh, opened := &recorder{}, &recorder{keep: keep}
			m := open(t, opened, nil)
			for i, r := range steps {
				for _, err := range m.Generate(t.Context(), r) {
					if err != nil {
						t.Fatal(err)
					}
				}
				for _, err := range open(t, fresh, nil).Generate(t.Context(), r) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(opened.last(), fresh.last()) {
					t.Fatalf("step %d sends\n%s\nwant\n%s", i, opened.last(), fresh.last())
				}
			}
		})
	}
}

// A second request, while the first is under way, does not change the first one's answer.
func TestRequestWithinARequest(t *testing.T) {
	t.Parallel()
	rt := &recorder{}
	c := open(t, rt, nil)
	n := 0
	for d, err := range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("first")}}) {
		if err != nil {
			t.Fatal(err)
		}
		if a := ask(t, t.Context(), c, lathe.User("second")); a.err != nil || a.text != "ok" {
			t.Errorf("got %q, %v", a.text, a.err)
		}
		if d.Kind == lathe.DeltaFinish && d.Finish.Message.Text() != "ok" {
			t.Errorf("the first answer is %q", d.Finish.Message.Text())
		}
		n++
	}
	if want := "second"; !bytes.Contains(rt.last(), []byte(want)) || n == 0 {
		t.Errorf("%d deltas; the last body is %s", n, rt.last())
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		stream(w, data(text(in.Messages[len(in.Messages)-1].Content), finished("stop"), done))
	}, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var history []lathe.Message
			for n := range 10 {
				want := fmt.Sprintf("%d/%d", i, n)
				history = append(history, lathe.User(want))
				got := ""
				for d, err := range c.Generate(t.Context(), &lathe.Request{Messages: history}) {
					if err != nil {
						t.Error(err)
						return
					}
					if d.Kind == lathe.DeltaText {
						got += d.Text
					}
					if d.Kind == lathe.DeltaFinish {
						history = append(history, d.Finish.Message)
					}
				}
				if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestSequenceMayBeRunTwice(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	seq := open(t, rec, nil).Generate(context.Background(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}})
	for range 2 {
		for _, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(rec.bodies) != 2 {
		t.Errorf("got %d calls", len(rec.bodies))
	}
}

func TestTransportThatReturnsNothing(t *testing.T) {
	t.Parallel()
	for name, rt := range map[string]trip{
		"nothing":       func(*http.Request) (*http.Response, error) { return nil, nil },
		"no body":       func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		"error and key": func(*http.Request) (*http.Response, error) { return nil, errors.New("proxy says " + key) },
	} {
		a := ask(t, t.Context(), open(t, rt, func(o *provider.Options) { o.Key = secret.New(key); o.Retry.Attempts = 1 }))
		if a.kind() != lathe.UpstreamAborted || strings.Contains(a.upstream(t).Message, "c4n4ry") {
			t.Errorf("%s: got %v (%+v)", name, a.err, a.upstreamOrNil())
		}
	}
}

// A cutBody ends, or breaks off, after its bytes.
type cutBody struct {
	*bytes.Reader
	clean bool
}

func (c *cutBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) && !c.clean {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *cutBody) Close() error { return nil }
