package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/provider"
)

const goodCall = `<tool name="add_numbers" args>{"a":7,"b":35}</tool>`

// A call that cannot be parsed is reported, stays in the model's history, is answered, and the model corrects itself.
func TestUnreadableCallIsToldAndCorrected(t *testing.T) {
	t.Parallel()
	bad := map[string]struct {
		text   string
		limits lathe.Limits
		code   lathe.Code
		key    string
	}{
		"malformed": {`<tool name="add_numbers" args>{"a":7,</tool>`, lathe.Limits{}, lathe.CodePayloadParseError, ""},
		"too large": {`<tool name="add_numbers" args>{"a":7,"b":` + strings.Repeat("1", 100) + `}</tool>`,
			lathe.Limits{MaxPayloadBytes: 100}, lathe.CodePayloadTooLarge, "max_payload_bytes"},
	}
	for name, c := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := "-- turn --\ntext: Let me see. " + c.text + "\n-- turn --\nexpect: " + string(c.code) + "\ntext: " + goodCall +
				"\n-- turn --\nexpect: 42\ntext: It is 42.\n"
			m := simulated(t, "sim/script", "tags", &provider.DialectOptions{MaxPayloadBytes: c.limits.MaxPayloadBytes}, script)
			s := play(t, m, "Add 7 and 35.", lathe.Settings{}, c.limits)
			if s.result.Reason != lathe.ReasonAnswered || s.result.Answer != "It is 42." {
				t.Fatalf("ended %s with %q: %v", s.result.Reason, s.result.Answer, s.result.Err)
			}
			want := []string{"RunStarted", "ModelCallStarted", "ToolCallParseError", "ModelCallFinished", "ToolCallPlanned", "ToolCallResult",
				"ModelCallStarted", "ModelCallFinished", "ToolCallProposed", "ToolCallPlanned", "ToolCallExecuted", "ToolCallResult",
				"ModelCallStarted", "ModelCallFinished", "RunFinished"}
			if diff := cmp.Diff(want, s.kinds()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			e := all[*event.ToolCallParseError](s)[0]
			if e.Dialect != "tags" || e.Error != c.code || e.ExcerptBytes < 8 || !strings.HasPrefix(c.text, e.RawExcerpt[:8]) && !strings.Contains(c.text, e.RawExcerpt[:8]) {
				t.Errorf("parse error %+v", e)
			}
			if r := all[*event.ToolCallResult](s)[0]; r.ErrorType != c.code || r.Limit != c.key {
				t.Errorf("the call was answered %s with the limit %q, want %s and %q", r.ErrorType, r.Limit, c.code, c.key)
			}
			if want := "Let me see.It is 42."; s.shown != want {
				t.Errorf("shown %q, want %q", s.shown, want)
			}
		})
	}
}

// The same on harmony's `tool` channel: neither the payload nor its channel's marks are shown.
func TestUnreadableHarmonyPayload(t *testing.T) {
	t.Parallel()
	for payload, code := range map[string]lathe.Code{
		`{"tool":"add_numbers","arguments":{"a":7,,}}`:                                    lathe.CodePayloadParseError,
		`{"tool":"add_numbers","arguments":{"a":7,"b":` + strings.Repeat("1", 100) + `}}`: lathe.CodePayloadTooLarge,
	} {
		start := "<|channel|>tool<|message|>"
		script := "-- turn --\ntext: " + start + payload + "<|end|>\n-- turn --\nexpect: " + string(code) + "\ntext: " + start +
			`{"tool":"add_numbers","arguments":{"a":7,"b":35}}` + "<|end|>\n-- turn --\nexpect: 42\ntext: It is 42.\n"
		m := simulated(t, "sim/script+harmony", "harmony", &provider.DialectOptions{MaxPayloadBytes: 100}, script)
		s := play(t, m, "Add 7 and 35.", lathe.Settings{}, lathe.Limits{MaxPayloadBytes: 100})
		if s.result.Reason != lathe.ReasonAnswered || s.result.Answer != "It is 42." {
			t.Fatalf("%s: ended %s with %q: %v", code, s.result.Reason, s.result.Answer, s.result.Err)
		}
		if e := all[*event.ToolCallParseError](s); len(e) != 1 || e[0].Error != code || e[0].Dialect != "harmony" {
			t.Errorf("%s: parse errors %+v", code, e)
		}
		if s.shown != "It is 42." {
			t.Errorf("%s: shown %q", code, s.shown)
		}
	}
}

func TestParseErrorRetriesWithoutTools(t *testing.T) {
	t.Parallel()
	m := simulated(t, "sim/script", "tags", nil, "-- turn --\ntext: <tool name=\"add_numbers\" args>{</tool>\n")
	s := play(t, m, "Add 7 and 35.", lathe.Settings{OnParseError: lathe.ParseErrorRetryWithout}, lathe.Limits{})
	if n := len(all[*event.ModelCallStarted](s)); n != 2 || s.result.Reason != lathe.ReasonEmptyAnswer || len(all[*event.ToolCallPlanned](s)) != 0 {
		t.Errorf("%d model calls, ended %s, events %q", n, s.result.Reason, s.kinds())
	}
}

// Text that ends inside a call gives a call that is never executed.
func TestCutCallIsIncomplete(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"harmony", "tags", "hermes", "mistral", "deepseek-v3.1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, simulated(t, "sim/fault-length+"+name, name, nil, ""), "Add 7 and 35.", lathe.Settings{}, lathe.Limits{})
			if s.result.Reason != lathe.ReasonLength {
				t.Errorf("ended %s, want length", s.result.Reason)
			}
			results := all[*event.ToolCallResult](s)
			if len(results) != 1 || results[0].ErrorType != lathe.CodeIncompleteCall || len(all[*event.ToolCallExecuted](s)) != 0 {
				t.Errorf("events %q", s.kinds())
			}
		})
	}
}

// A server that says stop after half a call does not get it executed either.
func TestCutCallAfterStopIsIncomplete(t *testing.T) {
	t.Parallel()
	m := simulated(t, "sim/script", "hermes", nil, "-- turn --\ntext: <tool_call>{\"name\":\"add_numbers\",\"arguments\":{\"a\":7,\n-- turn --\nexpect: incomplete_call\ntext: Sorry.\n")
	s := play(t, m, "Add 7 and 35.", lathe.Settings{}, lathe.Limits{})
	if s.result.Reason != lathe.ReasonAnswered || len(all[*event.ToolCallExecuted](s)) != 0 {
		t.Errorf("ended %s (%v), events %q", s.result.Reason, s.result.Err, s.kinds())
	}
	if p := all[*event.ToolCallProposed](s); len(p) != 1 || p[0].RawArgs != `{"a":7,` {
		t.Errorf("proposed %+v", p)
	}
}

func TestDeprecatedSyntaxIsMarkedAndCounted(t *testing.T) {
	t.Parallel()
	script := "-- turn --\ntext: <tool:add_numbers>{\"a\":7,\"b\":35}\n-- turn --\ntext: It is 42.\n"
	s := play(t, simulated(t, "sim/script", "tags", &provider.DialectOptions{AllowDeprecatedSyntax: true}, script), "Add.", lathe.Settings{}, lathe.Limits{})
	p := all[*event.ToolCallProposed](s)
	if len(p) != 1 || !p[0].DeprecatedSyntax || len(all[*event.ToolCallExecuted](s)) != 1 {
		t.Fatalf("proposed %+v, events %q", p, s.kinds())
	}
	if f := all[*event.ModelCallFinished](s)[0].Faults; !slices.Contains(f, lathe.Fault{Kind: "deprecated_syntax", Count: 1}) {
		t.Errorf("faults %v", f)
	}
	s = play(t, simulated(t, "sim/script", "tags", nil, script), "Add.", lathe.Settings{}, lathe.Limits{})
	if len(all[*event.ToolCallProposed](s)) != 0 || s.shown != `<tool:add_numbers>{"a":7,"b":35}` {
		t.Errorf("without leave, it is text: shown %q, events %q", s.shown, s.kinds())
	}
}

func TestHarmonyAnomaliesAreFaults(t *testing.T) {
	t.Parallel()
	script := "-- turn --\ntext: <|channel|>final<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>Two.<|end|>\n"
	s := play(t, simulated(t, "sim/script", "harmony", nil, script), "Hello.", lathe.Settings{}, lathe.Limits{})
	if f := all[*event.ModelCallFinished](s)[0].Faults; !slices.Contains(f, lathe.Fault{Kind: "harmony_unexpected_order.extra_final", Count: 1}) {
		t.Errorf("faults %v", f)
	}
}

func TestAutoChoosesByNameThenByMark(t *testing.T) {
	t.Parallel()
	s := play(t, simulated(t, "sim/demo+harmony", "auto", nil, ""), "Add 7 and 35.", lathe.Settings{}, lathe.Limits{})
	if p := all[*event.ToolCallProposed](s); len(p) != 1 || p[0].Dialect != "harmony" || s.events[0].Data.(*event.RunStarted).Dialect != "auto" {
		t.Errorf("by mark: %+v", p)
	}
	m, err := provider.OpenAI("openai/gpt-oss-20b", nil)
	if err != nil {
		t.Fatal(err)
	}
	named, err := provider.WithDialect(m, "auto", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := named.Describe().Dialect; got != "harmony" {
		t.Errorf("by name: %q, want harmony", got)
	}
}

func TestUnknownDialectNamesTheRightOnes(t *testing.T) {
	t.Parallel()
	m, err := provider.OpenAI("m", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = provider.WithDialect(m, "hermez", nil)
	if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), "hermes") || !strings.Contains(err.Error(), "native") {
		t.Errorf("error %v", err)
	}
	if _, err := provider.WithDialect(nil, "tags", nil); err == nil {
		t.Error("no model is no error")
	}
	s := play(t, simulated(t, "sim/demo+hermez", "tags", nil, ""), "Hello.", lathe.Settings{}, lathe.Limits{})
	if s.result.Reason != lathe.ReasonUpstreamError {
		t.Errorf("a simulated model of no dialect ended %s", s.result.Reason)
	}
}
