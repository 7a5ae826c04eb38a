package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
)

// A bodyKeeper keeps the bodies of the requests that pass through it.
type bodyKeeper struct {
	http.RoundTripper
	mu     sync.Mutex
	bodies [][]byte
}

func (l *bodyKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	l.mu.Lock()
	l.bodies = append(l.bodies, body)
	l.mu.Unlock()
	next := r.Clone(r.Context())
	next.Body = io.NopCloser(bytes.NewReader(body))
	return l.RoundTripper.RoundTrip(next)
}

// playScript runs a script of texts against the strict server, in a dialect.
func playScript(t *testing.T, dialectName string, opts *provider.DialectOptions, settings lathe.Settings, turns ...string) (*story, *bodyKeeper) {
	t.Helper()
	text := ""
	for _, turn := range turns {
		text += "-- turn --\ntext: " + strings.ReplaceAll(turn, "\n", "\n  ") + "\n"
	}
	script, err := sim.ParseScript(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	l := &bodyKeeper{RoundTripper: sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": script}}).Transport()}
	inner, err := provider.OpenAI("sim/script", &provider.Options{Name: "sim", BaseURL: "http://sim.invalid/v1", Transport: l})
	if err != nil {
		t.Fatal(err)
	}
	m, err := provider.WithDialect(inner, dialectName, opts)
	if err != nil {
		t.Fatal(err)
	}
	return play(t, m, "go", settings, lathe.Limits{}), l
}

// After a call that cannot be read, in whatever dialect and wherever it stands, the next request is one that a
// strict server accepts, and nothing of the call is shown.
func TestUnreadableCallsAreSentAgainAndNotShown(t *testing.T) {
	t.Parallel()
	const secret = "zzsecretzz"
	for _, name := range dialect.Names() {
		if name == "auto" {
			continue
		}
		d, _ := dialect.Lookup(name)
		lead := ""
		write := func(args string) string {
			call := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "add_numbers", Arguments: args}))
			if name == "harmony" {
				return lead + strings.TrimPrefix(call, "assistant")
			}
			return call
		}
		whole := write(`{"a":7,"b":"` + secret + `"}`)
		broken := breakOff(whole, secret)
		good := write(`{"a":7,"b":35}`)
		say := func(text string) string {
			if name == "harmony" {
				return "<|channel|>commentary<|message|>" + text + "<|end|><|start|>assistant"
			}
			return text + "\n"
		}
		between := "\n"
		if name == "harmony" {
			between = "<|start|>assistant"
		}
		for place, text := range map[string]string{
			"first":        broken,
			"after text":   say("Let me see.") + broken,
			"after a call": good + between + broken,
			"oversized":    write(`{"a":7,"b":"` + secret + strings.Repeat("y", 9000) + `"}`),
			"cut":          whole[:strings.Index(whole, secret)+len(secret)],
		} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				answer := "recovered"
				if name == "harmony" {
					answer = "<|channel|>final<|message|>recovered<|return|>"
				}
				s, l := playScript(t, name, &provider.DialectOptions{MaxPayloadBytes: 1024}, lathe.Settings{FailurePolicy: lathe.FailureTolerated}, text, answer)
				if s.result.Reason != lathe.ReasonAnswered {
					t.Fatalf("ended %s: %v\n%s", s.result.Reason, s.result.Err, text)
				}
				if s.result.Answer != "recovered" {
					t.Errorf("answered %q", s.result.Answer)
				}
				if strings.Contains(s.shown, secret) {
					t.Errorf("shown %q", s.shown)
				}
				for _, body := range l.bodies {
					var req struct {
						Messages []struct {
							Role      string
							ToolCalls json.RawMessage `json:"tool_calls"`
						}
					}
					if err := json.Unmarshal(body, &req); err != nil {
						t.Fatal(err)
					}
					for _, m := range req.Messages {
						if name != "harmony" && (m.Role == "tool" || m.ToolCalls != nil) {
							t.Errorf("sent a native call: %s", body)
						}
					}
				}
			})
		}
	}
}

// breakOff makes the text of a call one that cannot be read, right behind the value.
func breakOff(call, value string) string {
	at := strings.Index(call, value) + len(value)
	end := at
	for end < len(call) && strings.ContainsRune("\"'”", rune(call[end])) {
		end++
	}
	return call[:end] + " * " + call[end:]
}

func TestEndlessUnreadableCallsAreNoAnswer(t *testing.T) {
	t.Parallel()
	const bad = `a <tool name="add_numbers" args>{"a":</tool>`
	turns := make([]string, 20)
	for i := range turns {
		turns[i] = bad
	}
	for _, onLimit := range []lathe.OnLimit{lathe.OnLimitFinish, lathe.OnLimitStop} {
		s, _ := playScript(t, "tags", nil, lathe.Settings{OnLimit: onLimit, FailurePolicy: lathe.FailureTolerated}, turns...)
		if s.result.Answer != "a" && s.result.Answer != "" || strings.Contains(s.shown, "<tool") {
			t.Errorf("on_limit %s: ended %s with %q, shown %q", onLimit, s.result.Reason, s.result.Answer, s.shown)
		}
	}
}

func TestShowUnreadableCalls(t *testing.T) {
	t.Parallel()
	const bad = `Let me see. <tool name="add_numbers" args>{"a":</tool>`
	s, _ := playScript(t, "tags", &provider.DialectOptions{ShowUnreadableCalls: true}, lathe.Settings{}, bad, "done")
	if s.shown != bad+"done" || s.result.History[1].Text() != bad {
		t.Errorf("shown %q, history %q", s.shown, s.result.History[1].Text())
	}
}

// With on_parse_error retry_without_tools nothing of the attempt that is dropped is shown, so that a stream says
// what the whole answer says.
func TestDroppedAttemptIsNotShown(t *testing.T) {
	t.Parallel()
	script, err := sim.ParseScript(strings.NewReader("-- turn --\ntext: Let me see. <tool name=\"add_numbers\" args>{\"a\":</tool>\n"))
	if err != nil {
		t.Fatal(err)
	}
	fine, err := sim.ParseScript(strings.NewReader("-- turn --\ntext: It is 42.\n"))
	if err != nil {
		t.Fatal(err)
	}
	bad := sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": script}}).Transport()
	good := sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": fine}}).Transport()
	inner, err := provider.OpenAI("sim/script", &provider.Options{Name: "sim", BaseURL: "http://sim.invalid/v1", Transport: &inTurn{list: []http.RoundTripper{bad, good}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := provider.WithDialect(inner, "tags", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := play(t, m, "go", lathe.Settings{OnParseError: lathe.ParseErrorRetryWithout}, lathe.Limits{})
	if s.result.Answer != "It is 42." || s.shown != s.result.Answer {
		t.Errorf("answered %q, shown %q", s.result.Answer, s.shown)
	}
}

// inTurn sends each request through the next of its list.
type inTurn struct {
	list []http.RoundTripper
	n    int
}

func (x *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	x.n++
	return x.list[min(x.n, len(x.list))-1].RoundTrip(r)
}

// The request for a final answer reaches servers whose templates want user and assistant in turn, natively and as
// text, and the history keeps the result as the tool gave it.
func TestFinalAnswerOfStrictTemplates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"native", "tags", "hermes", "mistral", "harmony", "qwen3-coder"} {
		for _, limits := range []lathe.Limits{{}, {MaxIterations: 1}} {
			m := simulated(t, "sim/fault-strict-roles+"+name, name, nil, "")
			s := play(t, m, "Add 7 and 35.", lathe.Settings{}, limits)
			if !strings.Contains(s.result.Answer, "42") || s.result.Err != nil {
				t.Errorf("%s, max_iterations %d: ended %s with %q: %v", name, limits.MaxIterations, s.result.Reason, s.result.Answer, s.result.Err)
			}
			for _, msg := range s.result.History {
				for _, p := range msg.Parts {
					if r, ok := p.(lathe.ToolResult); ok && strings.Contains(r.Content, lathe.DefaultFixEmptyFinalText) {
						t.Errorf("%s: the history has the result %q", name, r.Content)
					}
				}
			}
		}
	}
}

// Deprecated syntax that is not allowed is text, and counted.
func TestDeprecatedSyntaxIsCountedWhereItIsNotAllowed(t *testing.T) {
	t.Parallel()
	const text = `<tool:add_numbers>{"a":7,"b":35}`
	for _, allow := range []bool{false, true} {
		m := inTags(t, &recital{finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant(text)}}, &provider.DialectOptions{AllowDeprecatedSyntax: allow})
		deltas, f := generate(t, m, &lathe.Request{Tools: addTool, Messages: []lathe.Message{lathe.User("x")}})
		if len(f.Faults) != 1 || f.Faults[0] != (lathe.Fault{Kind: "deprecated_syntax", Count: 1}) {
			t.Errorf("allowed %v: faults %v", allow, f.Faults)
		}
		if !allow && textOf(deltas) != text {
			t.Errorf("shown %q", textOf(deltas))
		}
	}
}
