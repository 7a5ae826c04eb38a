package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/provider"
)

// thinker is a server whose first answer is reasoning alone, and whose second is a text. With the member in the text, the reasoning stands
// between marks there.
func thinker(t testing.TB, member, reasoning, finish string) *provider.Chat {
	t.Helper()
	n := 0
	m, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://models.example/v1", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		n++
		delta, reason := fmt.Sprintf(`{%q:%q}`, member, reasoning), finish
		if n > 1 {
			delta, reason = `{"content":"It is 42."}`, "stop"
		}
		body := fmt.Sprintf("data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, reason)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	hermesCall = `<tool_call>{"name":"add_numbers","arguments":{"a":7,"b":35}}</tool_call>`
	kimiCall   = `<|tool_calls_section_begin|><|tool_call_begin|>functions.add_numbers:0<|tool_call_argument_begin|>{"a":7,"b":35}<|tool_call_end|><|tool_calls_section_end|>`
	qwenCall   = "<tool_call>\n<function=add_numbers>\n<parameter=a>\n7\n</parameter>\n<parameter=b>\n35\n</parameter>\n</function>\n</tool_call>"
)

// An answer that ends within a block of thinking has the complete calls at the end of that block, whether the parser or the server
// separates the thinking from the text. An answer without such a call is empty.
func TestAnswerWithinItsThoughtMakesTheCallsAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dialect, member, text, finish string
		opts                          provider.DialectOptions
		settings                      lathe.Settings
		reason                        lathe.Reason
		wrote                         string // the dialect of the call; "": none
	}{
		"native, hermes":      {member: "reasoning_content", text: "I add.\n" + hermesCall, wrote: "hermes"},
		"native, qwen":        {member: "reasoning", text: "I add.\n" + qwenCall, wrote: "qwen3-coder"},
		"native, ignored":     {member: "reasoning_content", text: hermesCall, settings: lathe.Settings{CallsInOpenThought: "ignore"}, reason: lathe.ReasonEmptyAnswer},
		"native, considered":  {member: "reasoning_content", text: "I could write " + hermesCall + " but I know it.", reason: lathe.ReasonEmptyAnswer},
		"native, of two":      {member: "reasoning_content", text: "Say " + strings.Replace(hermesCall, "35", "36", 1) + " no.\n" + hermesCall, wrote: "hermes"},
		"recovered, thought":  {member: "content", text: "<think>I could write " + hermesCall + " but I know it.", opts: provider.DialectOptions{RecoverLeakedCalls: true}, reason: lathe.ReasonEmptyAnswer},
		"kimi, considered":    {dialect: "kimi-k2", member: "content", text: "<think>Or " + kimiCall + " rather not.</think>", reason: lathe.ReasonEmptyAnswer},
		"kimi, open":          {dialect: "kimi-k2", member: "content", text: "<think>So " + kimiCall, wrote: "kimi-k2"},
		"native, quoted":      {member: "reasoning_content", text: "Such as `" + hermesCall + "` or so.", reason: lathe.ReasonEmptyAnswer},
		"native, cut":         {member: "reasoning_content", text: hermesCall, finish: "length", reason: lathe.ReasonLength},
		"native, unknown":     {member: "reasoning_content", text: strings.Replace(hermesCall, "add_numbers", "multiply", 1), reason: lathe.ReasonEmptyAnswer},
		"native, filtered":    {member: "reasoning_content", text: hermesCall, finish: "content_filter", reason: lathe.ReasonContentFilter},
		"recovered, in text":  {member: "content", text: "<think>\nI add.\n" + hermesCall, opts: provider.DialectOptions{RecoverLeakedCalls: true}, wrote: "hermes"},
		"recovered, apart":    {member: "reasoning_content", text: "I add.\n" + hermesCall, opts: provider.DialectOptions{RecoverLeakedCalls: true}, wrote: "hermes"},
		"dialect, in text":    {dialect: "qwen3-coder", member: "content", text: "<think>\nI add.\n" + qwenCall, wrote: "qwen3-coder"},
		"dialect, apart":      {dialect: "qwen3-coder", member: "reasoning_content", text: "I add.\n" + qwenCall, wrote: "qwen3-coder"},
		"dialect, closed":     {dialect: "hermes", member: "content", text: "<think>\n" + hermesCall + "\n</think>\n", reason: lathe.ReasonEmptyAnswer},
		"dialect, cut":        {dialect: "hermes", member: "content", text: "<think>\n" + hermesCall, finish: "length", reason: lathe.ReasonLength},
		"dialect, turned off": {dialect: "hermes", member: "content", text: "<think>\n" + hermesCall, settings: lathe.Settings{CallsInOpenThought: "ignore"}, reason: lathe.ReasonEmptyAnswer},
		"auto, in text":       {dialect: "auto", member: "content", text: "<think>\n" + qwenCall, wrote: "qwen3-coder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finish := c.finish
			if finish == "" {
				finish = "stop"
			}
			m, err := provider.WithDialect(thinker(t, c.member, c.text, finish), c.dialect, &c.opts)
			if err != nil {
				t.Fatal(err)
			}
			s := play(t, m, "What is 7 + 35?", c.settings, lathe.Limits{})
			calls := all[*event.ToolCallProposed](s)
			if c.wrote == "" {
				if len(calls) > 0 && c.reason != lathe.ReasonLength || len(all[*event.ToolCallExecuted](s)) > 0 || s.result.Reason != c.reason {
					t.Fatalf("%s, %+v", s.result.Reason, calls)
				}
				if s.result.Blank == "" && c.reason == lathe.ReasonEmptyAnswer {
					t.Error("the result does not say why the answer is blank")
				}
				return
			}
			if len(calls) != 1 || calls[0].ToolName != "add_numbers" || calls[0].Dialect != c.wrote || len(all[*event.ToolCallExecuted](s)) != 1 ||
				s.result.Reason != lathe.ReasonAnswered || s.result.Answer != "It is 42." {
				t.Fatalf("%s %q, %+v", s.result.Reason, s.result.Answer, calls)
			}
			faults := all[*event.ModelCallFinished](s)[0].Faults
			if !slices.Contains(faults, lathe.Fault{Kind: "call_in_thought", Count: 1}) {
				t.Errorf("the faults are %+v", faults)
			}
			if strings.Contains(s.shown, "add_numbers") {
				t.Errorf("shown: %q", s.shown)
			}
		})
	}
}

// An answer that has a call outside of its open thought makes that one only, whether it streams or not.
func TestCallOutsideOfAThoughtIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	const native = `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add_numbers","arguments":"{\"a\":1}"}}]`
	content := func(text string) string { return fmt.Sprintf(`{"content":%q}`, text) }
	for name, c := range map[string]struct {
		dialect string
		deltas  []string
	}{
		"native":        {deltas: []string{content("<think>Or " + hermesCall), "{" + native + "}"}},
		"native, whole": {deltas: []string{strings.TrimSuffix(content("<think>Or "+hermesCall), "}") + "," + native + "}"}},
		"apart":         {deltas: []string{fmt.Sprintf(`{"reasoning_content":%q}`, "Or "+hermesCall), "{" + native + "}"}},
		"in text":       {dialect: "hermes", deltas: []string{content(strings.Replace(hermesCall, `{"a":7,"b":35}`, `{"a":1}`, 1) + "\n<think>Or " + hermesCall)}},
	} {
		m, err := provider.WithDialect(answering(t, strings.Contains(name, "whole"), c.deltas...), c.dialect, &provider.DialectOptions{RecoverLeakedCalls: c.dialect == ""})
		if err != nil {
			t.Fatal(err)
		}
		_, f := generate(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool})
		if calls := f.Message.Calls(); len(calls) != 1 || calls[0].Arguments != `{"a":1}` {
			t.Errorf("%s: %+v", name, calls)
		}
	}
}

// Names with residue of a format run the tool, natively and in a dialect; the events say so.
func TestNamesWithResidueRunTheTool(t *testing.T) {
	t.Parallel()
	for _, written := range []string{"add_numbers<|channel|>commentary", "functions.add_numbers", "default_api:add_numbers", "add_numbersjson"} {
		n := 0
		m, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://models.example/v1", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			n++
			message := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":%q,"arguments":"{\"a\":%d,\"b\":35}"}}]}`, n, written, n)
			if n > 3 {
				message = `{"role":"assistant","content":"It is 42."}`
			}
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), written) {
				t.Errorf("the history has the name %s", written)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
				Body: io.NopCloser(strings.NewReader(`{"id":"1","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`))}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		s := play(t, m, "Add.", lathe.Settings{}, lathe.Limits{})
		calls := all[*event.ToolCallProposed](s)
		if s.result.Reason != lathe.ReasonAnswered || len(calls) != 3 || calls[0].ToolName != "add_numbers" || calls[0].RawName != written {
			t.Errorf("%s: %s, %+v", written, s.result.Reason, calls)
			continue
		}
		if faults := all[*event.ModelCallFinished](s)[0].Faults; !slices.Contains(faults, lathe.Fault{Kind: "name_repaired", Count: 1}) {
			t.Errorf("%s: the faults are %+v", written, faults)
		}
	}
	text := strings.Replace(hermesCall, "add_numbers", "functions.add_numbers", 1)
	s, _ := playScript(t, "hermes", nil, lathe.Settings{}, text, "It is 42.")
	if faults := all[*event.ModelCallFinished](s)[0].Faults; s.result.ToolCalls != 1 || len(all[*event.ToolCallExecuted](s)) != 1 || !slices.Contains(faults, lathe.Fault{Kind: "name_repaired", Count: 1}) {
		t.Errorf("%+v", faults)
	}
}
