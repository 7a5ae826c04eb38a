package transform

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// sent returns the messages and tools of a request as they go over the wire, through the chain.
func sent(t *testing.T, list List, body string, opts *openai.EncodeOptions) string {
	t.Helper()
	req, err := openai.ParseRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	c := &changed{chain: mustChain(t, list)}
	once, _ := c.request(&req.Request)
	first := string(requestOf(once, opts))
	twice, _ := c.request(once)
	if second := string(requestOf(twice, opts)); second != first {
		t.Errorf("applied twice it gives\n%s\nand once\n%s", second, first)
	}
	if plain := string(requestOf(&req.Request, opts)); plain != string(requestOf(mustParse(t, body), opts)) {
		t.Error("the request that was given has changed")
	}
	return first
}

func requestOf(req *lathe.Request, opts *openai.EncodeOptions) []byte {
	body, _ := openai.Upstream{}.AppendRequest(nil, req, opts)
	return body
}

func mustParse(t *testing.T, body string) *lathe.Request {
	t.Helper()
	req, err := openai.ParseRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return &req.Request
}

// Each transform of requests, as JSON before and after. The first of a pair holds what changes,
// the second what must stay.
func TestRequestTransforms(t *testing.T) {
	t.Parallel()
	const question = `{"role":"user","content":"?"}`
	call := func(extra string) string {
		return `{"id":"c1","type":"function","function":{"name":"clock","arguments":"{}"}` + extra + `}`
	}
	assistant := func(content, extra, calls string) string {
		return `{"role":"assistant","content":` + content + extra + `,"tool_calls":[` + calls + `]}`
	}
	result := func(content string) string {
		return `{"role":"tool","tool_call_id":"c1","content":` + string(rawjson.AppendQuote(nil, content)) + `}`
	}
	for _, c := range []struct {
		kind          Kind
		name          string
		before, after string // a message after the question
	}{
		{Message, "assistant_tool_calls_content_null_if_blank", assistant(`" \n"`, "", call("")), assistant(`null`, "", call(""))},
		{Message, "assistant_tool_calls_content_null_if_blank", assistant(`"Hm."`, "", call("")), assistant(`"Hm."`, "", call(""))},
		{Message, "assistant_tool_calls_content_null_if_blank", `{"role":"assistant","content":" "}`, `{"role":"assistant","content":" "}`},
		{Message, "assistant_tool_calls_reasoning_content_empty_if_missing", assistant(`null`, "", call("")),
			`{"role":"assistant","content":null,"tool_calls":[` + call("") + `],"reasoning_content":""}`},
		{Message, "assistant_tool_calls_reasoning_content_empty_if_missing", assistant(`null`, `,"reasoning_content":"so"`, call("")),
			assistant(`null`, `,"reasoning_content":"so"`, call(""))},
		{Message, "assistant_tool_calls_reasoning_content_empty_if_missing", `{"role":"assistant","content":"Hi."}`, `{"role":"assistant","content":"Hi."}`},
		{Message, "assistant_tool_calls_signature_skip_validator_if_missing", assistant(`null`, "", call("")+","+call(`,"signature":"own"`)),
			assistant(`null`, "", call(`,"signature":"skip_thought_signature_validator"`)+","+call(`,"signature":"own"`))},
		{Message, "assistant_tool_calls_extra_content_skip_validator_if_missing", assistant(`null`, "", call("")+","+call("")),
			assistant(`null`, "", call(`,"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}`)+","+call(""))},
		{Message, "assistant_tool_calls_extra_content_skip_validator_if_missing", assistant(`null`, "", call(`,"extra_content":{"google":{"thought_signature":"x"}}`)+","+call("")),
			assistant(`null`, "", call(`,"extra_content":{"google":{"thought_signature":"x"}}`)+","+call(""))},
		{ToolResult, "tool_result_compact_envelope", result(`{"ok":true,"tool_name":"clock","data":{},"warnings":[ ],"errors":[]}`), result(`{"ok":true,"tool_name":"clock"}`)},
		{ToolResult, "tool_result_compact_envelope", result(`{"ok":false,"data":null,"errors":[{"code":"X"}], "n": 1.0}`), result(`{"ok":false,"errors":[{"code":"X"}],"n":1.0}`)},
		{ToolResult, "tool_result_compact_envelope", result(`{"ok": true, "data":{"a":[]}}`), result(`{"ok": true, "data":{"a":[]}}`)},
		{ToolResult, "tool_result_compact_envelope", result(`{"ok":"yes","data":{}}`), result(`{"ok":"yes","data":{}}`)},
		{ToolResult, "tool_result_compact_envelope", result(`{"ok":true,"data":{}`), result(`{"ok":true,"data":{}`)},
		{ToolResult, "tool_result_compact_envelope", result(`data: {}`), result(`data: {}`)},
		{ToolCall, blankArgs, assistant(`null`, "", strings.Replace(call(""), `"{}"`, `" \n"`, 1)), assistant(`null`, "", call(""))},
		{ToolCall, nineLetter, assistant(`null`, "", strings.Replace(call(""), "c1", "Ab3Ab3Ab3", 1)), assistant(`null`, "", strings.Replace(call(""), "c1", "Ab3Ab3Ab3", 1))},
	} {
		list := List{}
		switch c.kind {
		case Message:
			list.Message = []string{c.name}
		case ToolCall:
			list.ToolCall = []string{c.name}
		case ToolResult:
			list.ToolResult = []string{c.name}
		}
		got := sent(t, list, `{"model":"m","messages":[`+question+`,`+c.before+`]}`, &openai.EncodeOptions{ReasoningField: "reasoning_content"})
		if want := `{"model":"m","messages":[` + question + `,` + c.after + `]}`; got != want {
			t.Errorf("%s of\n%s\ngot  %s\nwant %s", c.name, c.before, got, want)
		}
	}
}

func TestToolDescriptionsAreStripped(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","tools":[{"type":"function","function":{"name":"f"%s,"parameters":{"type":"object","properties":{"a":{"description":"stays"}}}}}],"messages":[{"role":"user","content":"?"}]}`
	got := sent(t, List{Tool: []string{"openai-tools-strip-function-descriptions"}}, strings.Replace(body, "%s", `,"description":"goes"`, 1), nil)
	if diff := cmp.Diff(strings.Replace(body, "%s", "", 1), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the codec does always, by the names of the transforms that ask for it: the answer read is
// the same with the name and without, and a chain of these names is no chain.
func TestTransformsThatReadingDoesAlways(t *testing.T) {
	t.Parallel()
	const plain = `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"clock","arguments":"{\"a\": 1}"}}]}}]}`
	answers := map[string]string{
		"assistant_function_call_to_tool_calls":              `{"choices":[{"index":0,"finish_reason":"function_call","message":{"role":"assistant","content":null,"function_call":{"name":"clock","arguments":"{\"a\": 1}"}}}]}`,
		"assistant_tool_calls_object_to_array":               `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":{"id":"call_1","type":"function","function":{"name":"clock","arguments":"{\"a\": 1}"}}}}]}`,
		"assistant_tool_calls_arguments_json_string_if_hash": `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"clock","arguments":{"a": 1}}}]}}]}`,
	}
	want := read(t, plain)
	for _, info := range All() {
		if !info.Always {
			continue
		}
		body, ok := answers[info.Name]
		if !ok {
			t.Errorf("%s has no answer in this test", info.Name)
			continue
		}
		delete(answers, info.Name)
		if !mustChain(t, List{Response: []string{info.Name}}).Empty() {
			t.Errorf("%s costs something", info.Name)
		}
		if diff := cmp.Diff(want, read(t, body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", info.Name, diff)
		}
		// The same as a stream.
		a := openai.NewAssembler(nil)
		for _, line := range []string{strings.Replace(body, `"message"`, `"delta"`, 1), "[DONE]"} {
			if _, err := a.Append(nil, []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		f, err := a.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, written(f)); diff != "" {
			t.Errorf("%s streamed (-want +got):\n%s", info.Name, diff)
		}
	}
	for name := range answers {
		t.Errorf("no transform %s", name)
	}
}

// read reads an answer and returns its message as it is sent again.
func read(t *testing.T, body string) string {
	t.Helper()
	f, err := openai.ParseCompletion([]byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return written(f)
}

func written(f *lathe.Finish) string {
	return string(openai.AppendMessages(nil, []lathe.Message{f.Message}, nil)) + string(f.Reason)
}

func TestBlankArgumentsOfAnAnswer(t *testing.T) {
	t.Parallel()
	list := List{ToolCall: []string{blankArgs}}
	for _, c := range []struct {
		name string
		args []string
		cut  bool
		want string
	}{
		{"none", nil, false, "{}"},
		{"white space", []string{" ", "\n\t"}, false, "{}"},
		{"white space first", []string{" ", "\n", `{"a":1}`, " "}, false, " \n{\"a\":1} "},
		{"cut off", []string{" "}, true, " "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			deltas := []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "a", Name: "clock"}}
			for _, s := range c.args {
				deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: s})
			}
			given := lathe.ToolCall{ID: "a", Name: "clock", Arguments: strings.Join(c.args, ""), Incomplete: c.cut}
			deltas = append(deltas, lathe.Delta{Kind: lathe.DeltaCallEnd, Incomplete: c.cut}, lathe.Delta{Kind: lathe.DeltaFinish,
				Finish: &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{given}}}})
			emitted, f := answer(t, list, deltas...)
			got := ""
			for _, d := range emitted {
				if d.Kind == lathe.DeltaCallArgs {
					got += d.Text
				}
			}
			if got != c.want || f.Message.Calls()[0].Arguments != c.want {
				t.Errorf("got %q in deltas and %q in the message, want %q", got, f.Message.Calls()[0].Arguments, c.want)
			}
			if given.Arguments != strings.Join(c.args, "") {
				t.Error("the model's own message has changed")
			}
		})
	}
}
