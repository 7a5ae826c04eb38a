package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// chunk wraps a delta object, and what follows it in its choice, into a whole chunk.
func chunk(delta string, more ...string) string {
	return `{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + strings.Join(more, "") + `}]}`
}

// calls wraps elements of tool_calls into a chunk.
func calls(elements ...string) string {
	return chunk(`{"tool_calls":[` + strings.Join(elements, ",") + `]}`)
}

func finish(reason string) string { return chunk(`{}`, `,"finish_reason":"`+reason+`"`) }

const done = "[DONE]"

// assemble feeds lines to an Assembler.
func assemble(lines []string, opts *AssemblerOptions, cleanEOF bool) ([]lathe.Delta, *lathe.Finish, error) {
	a := NewAssembler(opts)
	var ds []lathe.Delta
	var err error
	for _, l := range lines {
		buf := []byte(l)
		if ds, err = a.Append(ds, buf); err != nil {
			return ds, nil, err
		}
		for i := range buf {
			buf[i] = '#' // data may not be kept
		}
	}
	f, err := a.Finish(cleanEOF)
	return ds, f, err
}

// checkDeltas holds the deltas of an answer against its end.
func checkDeltas(t *testing.T, ds []lathe.Delta, f *lathe.Finish) {
	t.Helper()
	var text, reasoning, refusal string
	var got []lathe.ToolCall
	ended := map[int]bool{}
	for _, d := range ds {
		switch d.Kind {
		case lathe.DeltaText:
			text += d.Text
		case lathe.DeltaReasoning:
			reasoning += d.Text
		case lathe.DeltaRefusal:
			refusal += d.Text
		case lathe.DeltaCallStart:
			if d.Index != len(got) {
				t.Fatalf("call %d begins after %d calls", d.Index, len(got))
			}
			got = append(got, lathe.ToolCall{ID: d.ID, Name: d.Name})
		case lathe.DeltaCallArgs:
			if d.Index >= len(got) {
				t.Fatalf("arguments for call %d, which has not begun", d.Index)
			}
			if d.Text == "" {
				t.Error("an empty delta")
			}
			got[d.Index].Arguments += d.Text
		case lathe.DeltaCallEnd:
			if ended[d.Index] {
				t.Errorf("call %d ends twice", d.Index)
			}
			ended[d.Index] = true
			got[d.Index].Incomplete = d.Incomplete
		default:
			t.Fatalf("delta of kind %d", d.Kind)
		}
	}
	want := partsOf(f)
	if text != want.text || reasoning != want.reasoning || refusal != want.refusal {
		t.Errorf("deltas say %q, %q, %q; the answer %q, %q, %q", text, reasoning, refusal, want.text, want.reasoning, want.refusal)
	}
	if len(got) != len(want.calls) || len(ended) != len(got) {
		t.Fatalf("%d calls began, %d ended, the answer has %d", len(got), len(ended), len(want.calls))
	}
	for i, c := range want.calls {
		if got[i].Arguments != c.Arguments || got[i].Incomplete != c.Incomplete {
			t.Errorf("call %d: deltas say %+v, the answer %+v", i, got[i], c)
		}
		if got[i].ID != "" && got[i].ID != c.ID {
			t.Errorf("call %d begins as %q and ends as %q", i, got[i].ID, c.ID)
		}
	}
}

type answerParts struct {
	text, reasoning, refusal string
	calls                    []lathe.ToolCall
}

func partsOf(f *lathe.Finish) answerParts {
	a := answerParts{text: f.Message.Text(), calls: f.Message.Calls()}
	for _, p := range f.Message.Parts {
		switch p := p.(type) {
		case lathe.Reasoning:
			a.reasoning += p.Text
		case lathe.Refusal:
			a.refusal += p.Text
		}
	}
	return a
}

func faultsOf(f *lathe.Finish) map[string]int {
	m := map[string]int{}
	for _, ft := range f.Faults {
		m[ft.Kind] += ft.Count
	}
	return m
}

// A hazard is a stream as some server sends it, and what it has to become.
type hazard struct {
	name   string
	lines  []string
	text   string
	calls  []string // "id name arguments"
	reason lathe.FinishReason
	faults map[string]int
	check  func(*testing.T, *lathe.Finish)
}

type count = map[string]int

const ok = lathe.FinishToolCalls

func begin(index int, id, name string) string {
	return fmt.Sprintf(`{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":""}}`, index, id, name)
}

func args(index int, text string) string {
	return fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, index, text)
}

func hazards() []hazard {
	return []hazard{
		{name: "plain", lines: []string{chunk(`{"role":"assistant","content":null}`), calls(begin(0, "a", "f")), calls(args(0, `{"x":`)), calls(args(0, `1}`)), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok},
		{name: "parallel", lines: []string{calls(begin(0, "a", "f")), calls(args(0, `{"x":1}`)), calls(begin(1, "b", "g")), calls(args(1, `{}`)), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b g {}`}, reason: ok},
		{name: "parallel interleaved", lines: []string{calls(begin(0, "a", "f"), begin(1, "b", "g")), calls(args(1, `{"y":`)), calls(args(0, `{"x":`)), calls(args(1, `2}`), args(0, `1}`)), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b g {"y":2}`}, reason: ok},
		{name: "text only", lines: []string{chunk(`{"role":"assistant","content":"Hel"}`), chunk(`{"content":"lo"}`), finish("stop"), done},
			text: "Hello", reason: lathe.FinishStop},

		{name: "index missing", lines: []string{calls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"function":{"arguments":"1}"}}`), calls(`{"id":"b","function":{"name":"g","arguments":"{}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b g {}`}, reason: ok, faults: count{faultIndexMissing: 2}},
		{name: "index missing, joined by id", lines: []string{calls(`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`), calls(`{"id":"a","function":{"arguments":"[1]"}}`), calls(`{"id":"b","function":{"arguments":"[2]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`, `b g [2]`}, reason: ok, faults: count{faultIndexMissing: 2}},
		{name: "index and id missing, joined by name", lines: []string{calls(`{"function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"function":{"arguments":"1}"}}`), calls(`{"function":{"name":"g","arguments":"{}"}}`), finish("tool_calls"), done},
			calls: []string{` f {"x":1}`, ` g {}`}, reason: ok, faults: count{faultIndexMissing: 2, faultIDMissing: 2}},
		{name: "index and id missing, same name twice", lines: []string{calls(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`), calls(`{"function":{"name":"f","arguments":"{\"x\":2}"}}`), finish("tool_calls"), done},
			calls: []string{` f {"x":1}`, ` f {"x":2}`}, reason: ok, faults: count{faultIndexMissing: 2, faultIDMissing: 2}},
		{name: "index missing, two continued by position", lines: []string{calls(`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`), calls(`{"function":{"arguments":"[1"}}`, `{"function":{"arguments":"[2"}}`), calls(`{"function":{"arguments":"]"}}`, `{"function":{"arguments":"]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`, `b g [2]`}, reason: ok, faults: count{faultIndexMissing: 2}},
		{name: "index -1", lines: []string{calls(`{"index":-1,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":-1,"function":{"arguments":"1}"}}`), calls(`{"index":-1,"id":"b","function":{"name":"f","arguments":"{}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b f {}`}, reason: ok, faults: count{faultIndexMissing: 2, faultIndexInvalid: 3}},
		{name: "index null and as text", lines: []string{calls(`{"index":null,"id":"a","function":{"name":"f","arguments":"[1]"}}`), calls(`{"index":"1","id":"b","function":{"name":"g","arguments":"["}}`), calls(`{"index":"1","function":{"arguments":"2]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`, `b g [2]`}, reason: ok, faults: count{faultIndexMissing: 1}},
		{name: "index repeated, other ids", lines: []string{calls(begin(0, "a", "f")), calls(args(0, `{"x":1}`)), calls(begin(0, "b", "g")), calls(args(0, `{"y":2}`)), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b g {"y":2}`}, reason: ok, faults: count{faultIndexReused: 1}},
		{name: "index repeated, other ids, same tool", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b f {"x":2}`}, reason: ok, faults: count{faultIndexReused: 1}},
		{name: "index repeated, no ids", lines: []string{calls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`), calls(`{"index":0,"function":{"name":"g","arguments":"{\"x\":2}"}}`), finish("tool_calls"), done},
			calls: []string{` f {"x":1}`, ` g {"x":2}`}, reason: ok, faults: count{faultIndexReused: 1, faultIDMissing: 2}},
		{name: "index sparse and huge", lines: []string{calls(begin(3, "a", "f")), calls(args(3, "[1]")), calls(begin(9007199254740993, "b", "g")), calls(args(9007199254740993, "[2]")), finish("tool_calls"), done},
			calls: []string{`a f [1]`, `b g [2]`}, reason: ok},
		{name: "index beyond 64 bits", lines: []string{calls(`{"index":99999999999999999999,"id":"a","function":{"name":"f","arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok, faults: count{faultIndexInvalid: 1, faultIndexMissing: 1}},
		{name: "index changes, id stays", lines: []string{calls(begin(0, "a", "f")), calls(`{"index":1,"id":"a","function":{"arguments":"{\"x\":"}}`), calls(`{"index":2,"id":"a","function":{"arguments":"1}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{FaultIndexChanged: 2}},
		{name: "index twice in one object", lines: []string{calls(begin(0, "a", "f"), begin(1, "b", "g")), calls(`{"index":0,"index":1,"function":{"arguments":"[2]"}}`), finish("tool_calls"), done},
			calls: []string{`a f `, `b g [2]`}, reason: ok, faults: count{FaultDuplicateMember: 1}},

		{name: "id late", lines: []string{calls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":0,"function":{"arguments":"1}"}}`), calls(`{"index":0,"id":"a"}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultIDLate: 1}},
		{name: "id late, index missing", lines: []string{calls(`{"function":{"name":"f","arguments":"[1]"}}`), calls(`{"id":"a"}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok, faults: count{faultIndexMissing: 1, faultIDLate: 1}},
		{name: "id empty afterwards", lines: []string{calls(begin(0, "a", "f")), calls(`{"index":0,"id":"","function":{"arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok},
		{name: "id always empty", lines: []string{calls(begin(0, "", "f")), calls(args(0, "[1]")), finish("tool_calls"), done},
			calls: []string{` f [1]`}, reason: ok, faults: count{faultIDMissing: 1}},
		{name: "id changes between chunks", lines: []string{calls(begin(0, "a", "f")), calls(`{"index":0,"id":"b","function":{"arguments":"{\"x\":"}}`), calls(`{"index":0,"id":"c","function":{"arguments":"1}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultIDChanged: 2}},
		{name: "id changes and name repeats", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":0,"id":"b","function":{"name":"f","arguments":"1}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultIDChanged: 1, faultNameRepeated: 1}},
		{name: "id changes, index missing", lines: []string{calls(`{"id":"a","function":{"name":"f"}}`), calls(`{"id":"b","function":{"arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok, faults: count{faultIndexMissing: 1, faultIDChanged: 1}},
		{name: "id twice", lines: []string{calls(begin(0, "a", "f")), calls(args(0, "[1]")), calls(begin(1, "a", "g")), calls(args(1, "[2]")), finish("tool_calls"), done},
			calls: []string{`a f [1]`, `a g [2]`}, reason: ok, faults: count{faultIDDuplicate: 1}},
		{name: "white space after whole arguments, name repeated", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}  "}}`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"\n"}}`), finish("tool_calls"), done},
			calls: []string{"a f {}  \n"}, reason: ok, faults: count{faultNameRepeated: 1}},
		{name: "two calls without arguments in one chunk, index repeated", lines: []string{calls(begin(0, "a", "now"), begin(0, "b", "now")), finish("tool_calls"), done},
			calls: []string{`a now `, `b now `}, reason: ok, faults: count{faultIndexReused: 1}},
		{name: "index and id missing, name repeated", lines: []string{calls(`{"function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"function":{"name":"f","arguments":"{}}"}}`), calls(`{"function":{"name":"f","arguments":""}}`), finish("tool_calls"), done},
			calls: []string{` f {"x":{}}`}, reason: ok, faults: count{faultIndexMissing: 1, faultIDMissing: 1, faultNameRepeated: 2}},
		{name: "arguments that are a literal", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"null"}}`), calls(`{"index":0,"id":"b","function":{"name":"f","arguments":"\"a\\\"}\""}}`), calls(`{"index":0,"id":"c","function":{"name":"f","arguments":"[]"}}`), finish("tool_calls"), done},
			calls: []string{`a f null`, `b f "a\"}"`, `c f []`}, reason: ok, faults: count{faultIndexReused: 2}},
		{name: "id is a number", lines: []string{calls(`{"index":0,"id":17,"function":{"name":"f","arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`17 f [1]`}, reason: ok},
		{name: "chunk id empty and changing", lines: []string{strings.Replace(chunk(`{"content":"a"}`), "r1", "", 1), chunk(`{"content":"b"}`), strings.Replace(chunk(`{"content":"c"}`), "r1", "r2", 1), finish("stop"), done},
			text: "abc", reason: lathe.FinishStop, check: func(t *testing.T, f *lathe.Finish) {
				if f.ResponseID != "r1" || f.Model != "m" {
					t.Errorf("id %q, model %q", f.ResponseID, f.Model)
				}
			}},

		{name: "name repeated in every chunk", lines: []string{calls(begin(0, "a", "f")), calls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":0,"function":{"name":"f","arguments":"1}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultNameRepeated: 2}},
		{name: "id and name repeated in every chunk", lines: []string{calls(begin(0, "a", "f")), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultNameRepeated: 2}},
		{name: "name split", lines: []string{calls(begin(0, "a", "get_")), calls(`{"index":0,"function":{"name":"wea"}}`), calls(`{"index":0,"function":{"name":"ther","arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a get_weather [1]`}, reason: ok, faults: count{faultNameSplit: 2}},
		{name: "name split, index missing, by id", lines: []string{calls(`{"id":"a","function":{"name":"get_"}}`), calls(`{"id":"a","function":{"name":"weather","arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a get_weather [1]`}, reason: ok, faults: count{faultIndexMissing: 1, faultNameSplit: 1}},
		{name: "name grows", lines: []string{calls(begin(0, "a", "get_")), calls(begin(0, "a", "get_weather")), calls(args(0, "[1]")), finish("tool_calls"), done},
			calls: []string{`a get_weather [1]`}, reason: ok, faults: count{faultNameSplit: 1}},
		{name: "name after arguments", lines: []string{calls(`{"index":0,"id":"a","function":{"arguments":"{\"x\":"}}`), calls(args(0, `1}`)), calls(`{"index":0,"function":{"name":"f"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultNameLate: 1}},
		{name: "name after arguments, index and id missing", lines: []string{calls(`{"function":{"arguments":"[1]"}}`), calls(`{"function":{"name":"f"}}`), finish("tool_calls"), done},
			calls: []string{` f [1]`}, reason: ok, faults: count{faultIndexMissing: 1, faultIDMissing: 1, faultNameLate: 1}},
		{name: "name empty afterwards", lines: []string{calls(begin(0, "a", "f")), calls(`{"index":0,"type":"function","function":{"name":"","arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok},
		{name: "name null and missing", lines: []string{calls(`{"index":0,"id":"a","function":{"name":null,"arguments":"[1]"}}`), finish("tool_calls"), done},
			calls: []string{`a  [1]`}, reason: ok, faults: count{FaultNameMissing: 1}},
		{name: "no function object", lines: []string{calls(`{"index":0,"id":"a","type":"function","name":"f","arguments":"[1]"}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok},
		{name: "a call of another type", lines: []string{calls(`{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"x"}}`), chunk(`{"content":"hm"}`), finish("stop"), done},
			text: "hm", reason: lathe.FinishStop, faults: count{FaultUnknownContent: 1}},

		{name: "arguments as an object", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 9007199254740993, "s":"é"}}}`), finish("tool_calls"), done},
			calls: []string{`a f {"n": 9007199254740993, "s":"é"}`}, reason: ok, faults: count{faultArgsNotText: 1}},
		{name: "arguments null", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), calls(args(0, "[1]")), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok},
		{name: "arguments {} first", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), calls(args(0, `{"x":`)), calls(args(0, `1}`)), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultArgsReplaced: 1}},
		{name: "arguments {} first, as an object", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":{}}}`), calls(`{"index":0,"function":{"arguments":{"x":1}}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{faultArgsReplaced: 1, faultArgsNotText: 2}},
		{name: "arguments {} alone", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {}`}, reason: ok},
		{name: "arguments in two braces", lines: []string{calls(begin(0, "a", "f")), calls(args(0, "{")), calls(args(0, "}")), finish("tool_calls"), done},
			calls: []string{`a f {}`}, reason: ok},
		{name: "no arguments", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"now"}}`), finish("tool_calls"), done},
			calls: []string{`a now `}, reason: ok},
		{name: "two calls without arguments", lines: []string{calls(begin(0, "a", "now")), calls(begin(1, "b", "now")), finish("tool_calls"), done},
			calls: []string{`a now `, `b now `}, reason: ok},
		{name: "two calls without arguments, index missing", lines: []string{calls(`{"id":"a","function":{"name":"now"}}`), calls(`{"id":"b","function":{"name":"now"}}`), finish("tool_calls"), done},
			calls: []string{`a now `, `b now `}, reason: ok, faults: count{faultIndexMissing: 2}},
		{name: "arguments double encoded", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}}`), finish("tool_calls"), done},
			calls: []string{`a f "{\"x\":1}"`}, reason: ok},
		{name: "numbers above 2^53", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":12345678901234567890.10}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"n":12345678901234567890.10}`}, reason: ok},
		{name: "arguments that are no JSON", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{'x':1,"}}`), finish("tool_calls"), done},
			calls: []string{`a f {'x':1,`}, reason: ok},

		{name: "whole call in one chunk, with the finish reason", lines: []string{chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `,"finish_reason":"tool_calls"`), done},
			calls: []string{`a f {"x":1}`}, reason: ok},
		{name: "two calls in one chunk", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`, `b g {}`}, reason: ok},
		{name: "a call sent twice", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), finish("tool_calls"), done},
			calls: []string{`a f {"x":1}`}, reason: ok, faults: count{FaultCallRepeated: 1, faultNameRepeated: 1}},
		{name: "tool_calls is one object", lines: []string{chunk(`{"tool_calls":{"id":"a","function":{"name":"f","arguments":"[1]"}}}`), finish("tool_calls"), done},
			calls: []string{`a f [1]`}, reason: ok, faults: count{faultIndexMissing: 1}},
		{name: "tool_calls null and empty", lines: []string{chunk(`{"content":"a","tool_calls":null}`), chunk(`{"content":"b","tool_calls":[]}`), chunk(`{"content":"c","tool_calls":[null]}`), finish("stop"), done},
			text: "abc", reason: lathe.FinishStop, faults: count{faultCallsMalformed: 1}},
		{name: "text after calls", lines: []string{chunk(`{"content":"Let me see."}`), calls(begin(0, "a", "f")), calls(args(0, "[1]")), chunk(`{"content":" Done."}`), finish("tool_calls"), done},
			text: "Let me see. Done.", calls: []string{`a f [1]`}, reason: ok},
		{name: "text and calls in one delta", lines: []string{chunk(`{"tool_calls":[` + begin(0, "a", "f") + `],"content":"Hm"}`), chunk(`{"content":".","tool_calls":[` + args(0, "[1]") + `]}`), finish("tool_calls"), done},
			text: "Hm.", calls: []string{`a f [1]`}, reason: ok},

		{name: "finish stop with calls", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finish("stop"), done},
			calls: []string{`a f {}`}, reason: ok, faults: count{faultFinishMismatch: 1}},
		{name: "finish empty with calls", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finish(""), done},
			calls: []string{`a f {}`}, reason: ok, faults: count{faultFinishMissing: 1}},
		{name: "finish empty in every chunk", lines: []string{chunk(`{"role":"assistant"}`, `,"finish_reason":""`), chunk(`{"content":"a"}`, `,"finish_reason":""`), chunk(`{"content":"b"}`, `,"finish_reason":""`), finish("stop"), done},
			text: "ab", reason: lathe.FinishStop},
		{name: "finish end_turn with calls", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finish("end_turn"), done},
			calls: []string{`a f {}`}, reason: ok, faults: count{faultFinishMismatch: 1}},
		{name: "finish function_call with calls", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finish("function_call"), done},
			calls: []string{`a f {}`}, reason: ok},
		{name: "finish missing with calls", lines: []string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), done},
			calls: []string{`a f {}`}, reason: ok, faults: count{faultFinishMissing: 1}},
		{name: "finish tool_calls without calls", lines: []string{chunk(`{"content":"a"}`), finish("tool_calls"), done},
			text: "a", reason: lathe.FinishStop, faults: count{faultFinishMismatch: 1}},
		{name: "finish unknown", lines: []string{chunk(`{"content":"a"}`), finish("because"), done},
			text: "a", reason: lathe.FinishUnknown, faults: count{faultFinishUnknown: 1}},
		{name: "finish twice", lines: []string{chunk(`{"content":"a"}`), finish("stop"), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, faults: count{faultFinishRepeated: 1}},
		{name: "finish before the usage, text after it", lines: []string{chunk(`{"content":"a"}`), finish("stop"), chunk(`{"content":"b"}`), done},
			text: "ab", reason: lathe.FinishStop},
		{name: "finish length in a call", lines: []string{calls(begin(0, "a", "f")), calls(args(0, `[1]`)), calls(begin(1, "b", "g")), calls(args(1, `{"x":`)), finish("length"), done},
			calls: []string{`a f [1]`, `b g {"x": cut`}, reason: lathe.FinishLength},
		{name: "finish length before the arguments", lines: []string{calls(begin(0, "a", "f")), finish("max_tokens"), done},
			calls: []string{`a f  cut`}, reason: lathe.FinishLength},
		{name: "finish content_filter", lines: []string{chunk(`{"content":"a"}`), finish("SAFETY"), done},
			text: "a", reason: lathe.FinishContentFilter},

		{name: "usage without choices", lines: []string{chunk(`{"content":"a"}`), finish("stop"), `{"id":"r1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1},"cost":0.25}}`, done},
			text: "a", reason: lathe.FinishStop, check: usageIs(lathe.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 9, CachedTokens: 2, ReasoningTokens: 1}, 0.25)},
		{name: "usage without the choices member", lines: []string{chunk(`{"content":"a"}`), finish("stop"), `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`, done},
			text: "a", reason: lathe.FinishStop, check: usageIs(lathe.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7}, -1)},
		{name: "usage in every chunk", lines: []string{
			`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
			`{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, finish("stop"), done},
			text: "ab", reason: lathe.FinishStop, check: usageIs(lathe.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}, -1)},
		{name: "usage as text and null", lines: []string{chunk(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":"3","completion_tokens":4.0,"total_tokens":null,"prompt_tokens_details":null,"cost":"1e-3"}}`, done},
			text: "a", reason: lathe.FinishStop, check: usageIs(lathe.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7}, 0.001)},
		{name: "usage that is none", lines: []string{chunk(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":-3,"completion_tokens":"many","cost":-1}}`, done},
			text: "a", reason: lathe.FinishStop, faults: count{FaultUsageInvalid: 2}, check: usageIs(lathe.Usage{}, -1)},
		{name: "usage in the choice and in x_groq", lines: []string{chunk(`{"content":"a"}`, `,"usage":{"prompt_tokens":1,"completion_tokens":1}`), `{"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"q","usage":{"prompt_tokens":5,"completion_tokens":6}}}`, done},
			text: "a", reason: lathe.FinishStop, check: usageIs(lathe.Usage{InputTokens: 5, OutputTokens: 6, TotalTokens: 11}, -1)},

		{name: "more than one choice", lines: []string{
			`{"choices":[{"index":1,"delta":{"content":"x"}},{"index":0,"delta":{"content":"a"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"b"}},{"index":1,"delta":{"content":"y"},"finish_reason":"length"}]}`,
			`{"choices":[{"index":1,"delta":{"content":"z"}}]}`, finish("stop"), done},
			text: "ab", reason: lathe.FinishStop, faults: count{faultExtraChoice: 3}},
		{name: "choice without index", lines: []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, done},
			text: "a", reason: lathe.FinishStop},
		{name: "DONE missing", lines: []string{chunk(`{"content":"a"}`), finish("stop")},
			text: "a", reason: lathe.FinishStop, faults: count{faultDoneMissing: 1}},
		{name: "DONE missing, call whole", lines: []string{calls(begin(0, "a", "f")), calls(args(0, "[1]")), finish("tool_calls")},
			calls: []string{`a f [1]`}, reason: ok, faults: count{faultDoneMissing: 1}},
		{name: "lines that are none", lines: []string{"", "  ", "{", `{"choices":[{]}`, "nonsense", `[1]`, `"x"`, chunk(`{"content":"a"}`) + "x", `{"choices":"x"}`, chunk(`{"content":"` + "\n" + `"}`), chunk(`{"content":"a"}`), finish("stop"), done, "x", chunk(`{"content":"b"}`)},
			text: "a", reason: lathe.FinishStop, faults: count{faultEmptyLine: 2, faultBadLine: 8, faultAfterDone: 2}},
		{name: "white space everywhere", lines: []string{" {\n\"choices\" : [ { \"delta\" : { \"content\" : \"a\" , \"tool_calls\" : [ ] } , \"index\" : 0 } ] }\t", finish("stop"), " [DONE] "},
			text: "a", reason: lathe.FinishStop},
		{name: "members twice", lines: []string{`{"choices":[{"index":0,"delta":{"content":"x"}}],"choices":[{"index":0,"delta":{"tool_calls":[` + begin(0, "a", "f") + `]},"delta":{"content":"a","content":"b"}}]}`, finish("stop"), done},
			text: "b", reason: lathe.FinishStop, faults: count{FaultDuplicateMember: 3}},
		{name: "escaped names", lines: []string{`{"\u0063hoices":[{"del\u0074a":{"c\u006fntent":"a"}}]}`, finish("stop"), done},
			text: "a", reason: lathe.FinishStop},
		{name: "deep nesting in what is not known", lines: []string{`{"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `,"choices":[{"delta":{"content":"a"}}]}`, finish("stop"), done},
			text: "a", reason: lathe.FinishStop},
		{name: "a message in place of a delta", lines: []string{`{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`, done},
			text: "a", reason: lathe.FinishStop},

		{name: "reasoning_content", lines: []string{chunk(`{"reasoning_content":"th"}`), chunk(`{"reasoning_content":"ink","content":null}`), chunk(`{"content":"a"}`), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, check: reasoningIs("think", "reasoning_content")},
		{name: "reasoning", lines: []string{chunk(`{"reasoning":"th"}`), chunk(`{"reasoning":"ink"}`), chunk(`{"reasoning":null,"content":"a"}`), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, check: reasoningIs("think", "reasoning")},
		{name: "thinking", lines: []string{chunk(`{"thinking":"think"}`), chunk(`{"content":"a"}`), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, check: reasoningIs("think", "thinking")},
		{name: "reasoning twice, the same", lines: []string{chunk(`{"reasoning":"think","reasoning_content":"think","content":"a"}`), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, check: reasoningIs("think", "reasoning_content")},
		{name: "reasoning twice, not the same", lines: []string{chunk(`{"reasoning":"th"}`), chunk(`{"reasoning":"ink","reasoning_content":"x","content":"a"}`), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, faults: count{FaultReasoningRepeats: 1}, check: reasoningIs("think", "reasoning")},
		{name: "reasoning_details", lines: []string{chunk(`{"reasoning":"a","reasoning_details":[{"text":"a","index":0}]}`), chunk(`{"reasoning":"b","reasoning_details":[ {"text":"b","index":0} ]}`), chunk(`{"content":"x","reasoning_details":[]}`), finish("stop"), done},
			text: "x", reason: lathe.FinishStop, check: func(t *testing.T, f *lathe.Finish) {
				reasoningIs("ab", "reasoning")(t, f)
				want := []lathe.Member{{Name: "reasoning_details", Value: []byte(`[{"text":"a","index":0}, {"text":"b","index":0} ]`)}}
				if d := cmp.Diff(want, f.Message.Extra); d != "" {
					t.Errorf("extra (-want +got)\n%s", d)
				}
			}},
		{name: "members that are not known", lines: []string{chunk(`{"content":"x","annotations":[],"signature":"s1","audio":null}`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"},"extra_content":{"google":{"thought_signature":"T"}}}`), chunk(`{"signature":"s2"}`), finish("tool_calls"), done},
			text: "x", calls: []string{`a f [1]`}, reason: ok, check: func(t *testing.T, f *lathe.Finish) {
				if d := cmp.Diff([]lathe.Member{{Name: "signature", Value: []byte(`"s2"`)}}, f.Message.Extra); d != "" {
					t.Errorf("extra (-want +got)\n%s", d)
				}
				want := []lathe.Member{{Name: "extra_content", Value: []byte(`{"google":{"thought_signature":"T"}}`)}}
				if d := cmp.Diff(want, f.Message.Calls()[0].Extra); d != "" {
					t.Errorf("extra of the call (-want +got)\n%s", d)
				}
			}},
		{name: "refusal", lines: []string{chunk(`{"role":"assistant","refusal":"I c"}`), chunk(`{"refusal":"annot"}`), finish("stop"), done},
			reason: lathe.FinishStop, check: func(t *testing.T, f *lathe.Finish) {
				if got := partsOf(f).refusal; got != "I cannot" {
					t.Errorf("refusal %q", got)
				}
			}},
		{name: "legacy function_call", lines: []string{chunk(`{"function_call":{"name":"f","arguments":""}}`), chunk(`{"function_call":{"arguments":"{\"x\":"}}`), chunk(`{"function_call":{"arguments":"1}"}}`), finish("function_call"), done},
			calls: []string{`call_1 f {"x":1}`}, reason: ok, faults: count{faultFunctionCall: 1}},
		{name: "content as parts", lines: []string{chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`), chunk(`{"content":[{"type":"text","text":"a"},{"type":"output_text","text":"b"},{"type":"hologram"},{"type":"text","text":null},{"type":"text"}]}`), chunk(`{"content":[]}`), chunk(`{"content":[{"type":"reasoning","text":"!"},{"type":"thinking"}]}`), chunk(`{"content":{"text":"x"}}`), finish("stop"), done},
			text: "ab", reason: lathe.FinishStop, faults: count{FaultUnknownContent: 3}, check: reasoningIs("hm!", "")},
		{name: "content with a picture and a refusal", lines: []string{chunk(`{"content":[{"type":"image_url","image_url":{"url":"https://e/x"}},{"type":"image_url","image_url":{}},{"type":"refusal","refusal":"no"}]}`), finish("stop"), done},
			reason: lathe.FinishStop, faults: count{FaultUnknownContent: 1}, check: func(t *testing.T, f *lathe.Finish) {
				if d := cmp.Diff([]lathe.Part{lathe.Refusal{Text: "no"}, lathe.Blob{URL: "https://e/x"}}, f.Message.Parts); d != "" {
					t.Errorf("parts (-want +got)\n%s", d)
				}
			}},
		{name: "reasoning that is no text", lines: []string{chunk(`{"reasoning":{"effort":"low"},"content":"a"}`), finish("stop"), done},
			text: "a", reason: lathe.FinishStop, check: func(t *testing.T, f *lathe.Finish) {
				if d := cmp.Diff([]lathe.Member{{Name: "reasoning", Value: []byte(`{"effort":"low"}`)}}, f.Message.Extra); d != "" {
					t.Errorf("extra (-want +got)\n%s", d)
				}
			}},

		{name: "a character cut in bytes", lines: []string{chunk("{\"content\":\"a\xF0\"}"), chunk("{\"content\":\"\x9F\x98\"}"), chunk("{\"content\":\"\x80b\"}"), finish("stop"), done},
			text: "a😀b", reason: lathe.FinishStop, faults: count{FaultSplitCharacter: 2}},
		{name: "a character cut in surrogates", lines: []string{chunk(`{"content":"a\ud83d"}`), chunk(`{"content":"\ude00b"}`), finish("stop"), done},
			text: "a😀b", reason: lathe.FinishStop, faults: count{FaultSplitCharacter: 1}},
		{name: "arguments cut in a character", lines: []string{calls(begin(0, "a", "f")), calls("{\"index\":0,\"function\":{\"arguments\":\"\\\"\xE2\x82\"}}"), calls("{\"index\":0,\"function\":{\"arguments\":\"\xAC\\\"\"}}"), finish("tool_calls"), done},
			calls: []string{`a f "€"`}, reason: ok, faults: count{FaultSplitCharacter: 1}},
		{name: "a surrogate that stays alone", lines: []string{chunk(`{"content":"a\ud83d"}`), chunk(`{"content":"b\ude00"}`), finish("stop"), done},
			text: "a\uFFFDb\uFFFD", reason: lathe.FinishStop, faults: count{FaultInvalidUTF8: 2}},
		{name: "a character that stays cut", lines: []string{chunk("{\"content\":\"a\xE2\x82\"}"), chunk("{\"content\":\"b\xFFc\xE2\"}"), finish("stop"), done},
			text: "a\uFFFD\uFFFDb\uFFFDc\uFFFD", reason: lathe.FinishStop, faults: count{FaultInvalidUTF8: 4}},
		{name: "U+FFFD itself, cut", lines: []string{chunk("{\"content\":\"\xEF\"}"), chunk("{\"content\":\"\xBF\xBD\"}"), finish("stop"), done},
			text: "\uFFFD", reason: lathe.FinishStop, faults: count{FaultSplitCharacter: 1}},
		{name: "escapes", lines: []string{chunk(`{"content":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00\u0000"}`), finish("stop"), done},
			text: "\"\\/\b\f\n\r\tAé€😀\x00", reason: lathe.FinishStop},
	}
}

func usageIs(want lathe.Usage, cost float64) func(*testing.T, *lathe.Finish) {
	return func(t *testing.T, f *lathe.Finish) {
		t.Helper()
		if f.Usage != want {
			t.Errorf("usage %+v, want %+v", f.Usage, want)
		}
		if cost < 0 != (f.ProviderCost == nil) || cost >= 0 && *f.ProviderCost != cost {
			t.Errorf("cost %v, want %v", f.ProviderCost, cost)
		}
	}
}

func reasoningIs(text, field string) func(*testing.T, *lathe.Finish) {
	return func(t *testing.T, f *lathe.Finish) {
		t.Helper()
		want := lathe.Reasoning{Text: text, Field: field}
		if got := f.Message.Parts[0]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestAssemblerHazards(t *testing.T) {
	t.Parallel()
	for _, h := range hazards() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			ds, f, err := assemble(h.lines, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			checkDeltas(t, ds, f)
			if got := f.Message.Text(); got != h.text {
				t.Errorf("text %q, want %q", got, h.text)
			}
			var got []string
			for _, c := range f.Message.Calls() {
				s := c.ID + " " + c.Name + " " + c.Arguments
				if c.Incomplete {
					s += " cut"
				}
				got = append(got, s)
			}
			if d := cmp.Diff(h.calls, got); d != "" {
				t.Errorf("calls (-want +got)\n%s", d)
			}
			if f.Reason != h.reason {
				t.Errorf("reason %q, want %q", f.Reason, h.reason)
			}
			if d := cmp.Diff(h.faults, faultsOf(f), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("faults (-want +got)\n%s", d)
			}
			if h.check != nil {
				h.check(t, f)
			}
		})
	}
}

func TestAssemblerIncomplete(t *testing.T) {
	t.Parallel()
	whole := []string{calls(begin(0, "a", "f")), calls(args(0, `{"x":1}`))}
	half := []string{calls(begin(0, "a", "f")), calls(args(0, `{"x":`))}
	text := []string{chunk(`{"content":"a"}`)}
	then := func(lines []string, more ...string) []string { return append(append([]string{}, lines...), more...) }
	for _, tt := range []struct {
		name         string
		lines        []string
		clean, whole bool
	}{
		{"nothing", nil, true, false},
		{"only DONE", []string{done}, true, false},
		{"only the role", []string{chunk(`{"role":"assistant","content":""}`)}, true, false},
		{"an HTML page", []string{"<html>"}, true, false},
		{"text, nothing more", text, true, false},
		{"text, cut", text, false, false},
		{"text, finish, cut", then(text, finish("stop")), false, true},
		{"text, DONE", then(text, done), true, true},
		{"finish alone", []string{finish("stop")}, true, true},
		{"half a call", half, true, false},
		{"half a call, finish", then(half, finish("tool_calls")), true, false},
		{"half a call, finish length", then(half, finish("length")), false, true},
		{"half a call, DONE", then(half, done), true, false},
		{"half a call, finish, DONE", then(half, finish("tool_calls"), done), true, true},
		{"a call, nothing more", whole, true, false},
		{"a call, finish, cut", then(whole, finish("tool_calls")), false, true},
	} {
		_, f, err := assemble(tt.lines, nil, tt.clean)
		if (err == nil) != tt.whole || err != nil && !errors.Is(err, wire.ErrIncomplete) || (f != nil) != tt.whole {
			t.Errorf("%s: got %v, %v; want whole: %v", tt.name, f, err, tt.whole)
		}
	}
	_, f, err := assemble(then(text, finish("stop")), nil, false)
	if err != nil || faultsOf(f)[faultCutAfterFinish] != 1 {
		t.Errorf("a cut after the finish reason is not counted: %v, %v", f, err)
	}
}

func TestAssemblerInBandError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want APIError
	}{
		{`{"error":{"message":"boom","type":"server_error","code":500,"param":null}}`, APIError{Status: 500, Message: "boom", Type: "server_error", Code: "500"}},
		{`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, APIError{Message: "slow down", Code: "rate_limit_exceeded"}},
		{`{"error":{"code":"429","message":"x"}}`, APIError{Status: 429, Message: "x", Code: "429"}},
		{`{"error":"boom"}`, APIError{Message: "boom"}},
		{`{"error":"boom","code":503}`, APIError{Status: 503, Message: "boom", Code: "503"}},
		{`{"error":true,"message":"boom"}`, APIError{Message: "boom"}},
		{`{"object":"error","message":"boom","type":"BadRequestError","param":null,"code":400}`, APIError{Status: 400, Message: "boom", Type: "BadRequestError", Code: "400"}},
		{`{"message":"boom"}`, APIError{Message: "boom"}},
		{`{"detail":"boom"}`, APIError{Message: "boom"}},
		{`{"detail":[{"msg":"boom"}]}`, APIError{Message: `[{"msg":"boom"}]`}},
		{`{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","native_finish_reason":"error"}],"error":{"code":502,"message":"upstream"}}`, APIError{Status: 502, Message: "upstream", Code: "502"}},
		{`{"id":"x","choices":[{"index":0,"delta":{},"error":{"code":502,"message":"upstream"}}]}`, APIError{Status: 502, Message: "upstream", Code: "502"}},
		{`{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`, APIError{Message: "the server ended the answer with an error"}},
	} {
		_, _, err := assemble([]string{chunk(`{"content":"a"}`), tt.line, done}, nil, true)
		var got *APIError
		if !errors.As(err, &got) {
			t.Errorf("%s: got %v", tt.line, err)
		} else if *got != tt.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.line, *got, tt.want)
		}
	}
	for _, line := range []string{`{"error":null,"choices":[]}`, `{"error":{},"choices":[]}`, `{"error":"","choices":[]}`, `{"error":false,"choices":[]}`, `{"type":"ping"}`} {
		if _, _, err := assemble([]string{line, chunk(`{"content":"a"}`), finish("stop"), done}, nil, true); err != nil {
			t.Errorf("%s: %v, want no error", line, err)
		}
	}
	a := NewAssembler(nil)
	_, first := a.Append(nil, []byte(`{"error":"boom"}`))
	_, again := a.Append(nil, []byte(chunk(`{"content":"a"}`)))
	_, last := a.Finish(true)
	if first == nil || again != first || last != first {
		t.Errorf("the error is not final: %v, %v, %v", first, again, last)
	}
}

func TestAssemblerLimits(t *testing.T) {
	t.Parallel()
	opts := &AssemblerOptions{MaxCalls: 3, MaxBytes: 200}
	var many []string
	for i := range 4 {
		many = append(many, calls(begin(i, fmt.Sprint("c", i), "f")))
	}
	text := []string{}
	for range 21 {
		text = append(text, chunk(`{"content":"0123456789"}`))
	}
	details := []string{}
	for range 10 {
		details = append(details, chunk(`{"reasoning_details":["0123456789"]}`))
	}
	names := []string{calls(begin(0, "a", "f"))}
	for range 30 {
		names = append(names, calls(`{"index":0,"function":{"name":"g"}}`))
	}
	var names64 []string
	for i := range maxExtra + 10 {
		names64 = append(names64, fmt.Sprintf(`"m%d":1`, i))
	}
	_, f, err := assemble([]string{chunk("{" + strings.Join(names64, ",") + `,"content":"a"}`), finish("stop"), done}, nil, true)
	if err != nil || len(f.Message.Extra) != maxExtra || faultsOf(f)[FaultUnknownContent] != 10 {
		t.Errorf("many members: %v", err)
	}
	for name, lines := range map[string][]string{"calls": many, "text": text, "members": details, "names": names} {
		want := wire.ErrTooManyBytes
		if name == "calls" {
			want = wire.ErrTooManyCalls
		}
		if _, _, err := assemble(append(lines, finish("stop"), done), opts, true); !errors.Is(err, want) || !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	if _, _, err := assemble(append(text[:19:19], finish("stop"), done), opts, true); err != nil {
		t.Errorf("within the limits: %v", err)
	}
}
