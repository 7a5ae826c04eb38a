package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An event is one event of a stream.
type event struct {
	typ  string
	data []byte
}

func events(stream []byte) (list []event) {
	r := sse.NewReader(bytes.NewReader(stream), nil)
	for {
		e, err := r.Next()
		if err != nil {
			return list
		}
		list = append(list, event{e.Type, bytes.Clone(e.Data)})
	}
}

// chunks returns the events of a file that has one object a line. A file may hold several answers.
func chunks(t testing.TB, file string) (answers [][]event) {
	t.Helper()
	for line := range bytes.Lines(read(t, file)) {
		if bytes.Contains(line, []byte(`"type":"response.created"`)) {
			answers = append(answers, nil)
		}
		if n := len(answers); n > 0 && len(bytes.TrimSpace(line)) > 0 {
			answers[n-1] = append(answers[n-1], event{"", bytes.TrimSpace(line)})
		}
	}
	return answers
}

// assemble reads the events of an answer.
func assemble(list []event) ([]lathe.Delta, *lathe.Finish, bool, error) {
	a := Codec{}.NewAssembler(nil)
	var deltas []lathe.Delta
	for _, e := range list {
		var err error
		if deltas, err = a.Append(deltas, e.typ, e.data); err != nil {
			return deltas, nil, a.Sound(), err
		}
	}
	f, err := a.Finish(true)
	return deltas, f, a.Sound(), err
}

// terminal returns the response that ends a stream.
func terminal(list []event) []byte {
	for i := len(list) - 1; i >= 0; i-- {
		if r := get(list[i].data, "response"); r != nil {
			return r
		}
	}
	return nil
}

// said joins deltas: the texts by kind, and each call.
func said(deltas []lathe.Delta) (texts map[string]string, calls map[int]lathe.ToolCall) {
	texts, calls = map[string]string{}, map[int]lathe.ToolCall{}
	for _, d := range deltas {
		c := calls[d.Index]
		switch d.Kind {
		case lathe.DeltaText:
			texts["text"] += d.Text
		case lathe.DeltaCommentary:
			texts["commentary"] += d.Text
		case lathe.DeltaReasoning:
			texts["reasoning"] += d.Text
		case lathe.DeltaRefusal:
			texts["refusal"] += d.Text
		case lathe.DeltaReasoningData:
			texts["data"] += d.Text
		case lathe.DeltaCallStart:
			c.ID, c.Name = d.ID, d.Name
			calls[d.Index] = c
		case lathe.DeltaCallArgs:
			c.Arguments += d.Text
			calls[d.Index] = c
		case lathe.DeltaCallEnd:
			c.Incomplete = d.Incomplete
			calls[d.Index] = c
		}
	}
	return texts, calls
}

// checkDeltas checks that deltas say what the finish says.
func checkDeltas(t *testing.T, deltas []lathe.Delta, f *lathe.Finish) {
	t.Helper()
	texts, calls := said(deltas)
	want := map[string]string{}
	var wantCalls []lathe.ToolCall
	for _, p := range f.Message.Parts {
		switch p := p.(type) {
		case lathe.Text:
			if p.Commentary {
				want["commentary"] += p.Text
			} else {
				want["text"] += p.Text
			}
		case lathe.Refusal:
			want["refusal"] += p.Text
		case lathe.Reasoning:
			want["reasoning"] += p.Text
			want["data"] += p.Data
		case lathe.ToolCall:
			p.Extra = nil
			wantCalls = append(wantCalls, p)
		}
	}
	for k, v := range want {
		if v == "" {
			delete(want, k)
		}
	}
	if d := cmp.Diff(want, texts); d != "" {
		t.Errorf("texts of deltas (-finish +deltas):\n%s", d)
	}
	if len(calls) != len(wantCalls) {
		t.Fatalf("%d calls in deltas, %d in the finish", len(calls), len(wantCalls))
	}
	for i, c := range wantCalls {
		if d := cmp.Diff(c, calls[i]); d != "" {
			t.Errorf("call %d (-finish +deltas):\n%s", i, d)
		}
	}
}

// An event whose type is nearly a known one is unknown, and nothing of it becomes part of the answer.
func TestUnknownEventTypesChangeNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"response.output_text.", "response.output_item.delta", "response.content_part.delta", "response.completeddone", "errordone"} {
		_, f, _, err := assemble([]event{
			{"", []byte(`{"type":"` + name + `","delta":"x","text":"x","item":{"type":"message"},"response":{"status":"completed","output":[]}}`)},
			{"", []byte(`{"type":"response.completed","response":{"status":"completed","output":[]}}`)},
		})
		if err != nil || len(f.Message.Parts) != 0 || len(f.Faults) != 1 || f.Faults[0].Kind != faultUnknownEvent {
			t.Errorf("%s: %v, %+v", name, err, f)
		}
	}
}

// TestW5_RecordedStreamsEqualTheirWhole: what the pieces of a stream give is what its whole gives.
func TestW5_RecordedStreamsEqualTheirWhole(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "recorded-streams"), "openai__responses__*.chunks.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, list := range chunks(t, file) {
				if strings.Contains(file, "openai-error") {
					_, _, _, err := assemble(list)
					e, ok := err.(*wire.APIError)
					if !ok || e.Code != "insufficient_quota" || e.Message == "" {
						t.Fatalf("error: %v", err)
					}
					continue
				}
				if strings.Contains(file, "parallel-tool-call-wrapper") { // its last event lacks a bracket
					if _, _, _, err := assemble(list); !errors.Is(err, wire.ErrIncomplete) {
						t.Fatalf("error: %v", err)
					}
					list[0].data = append(list[0].data, '}')
					list[len(list)-1].data = append(list[len(list)-1].data, '}')
				}
				checkStream(t, list)
			}
		})
	}
}

// checkStream checks a stream against the response that ends it.
func checkStream(t *testing.T, list []event) *lathe.Finish {
	t.Helper()
	deltas, f, sound, err := assemble(list)
	if err != nil {
		t.Fatal(err)
	}
	checkDeltas(t, deltas, f)
	for _, fault := range f.Faults {
		if fault.Kind != faultUnknownEvent {
			t.Errorf("fault %v", fault)
		}
	}
	if !sound {
		t.Error("the stream is not sound")
	}
	if wire.EmptyArray(get(terminal(list), "output")) { // the server leaves the items to the events
		return f
	}
	a := Codec{}.NewAssembler(nil)
	whole, g, err := a.Complete(nil, terminal(list))
	if err != nil {
		t.Fatal(err)
	}
	if !a.Sound() {
		t.Error("the whole is not sound")
	}
	checkDeltas(t, whole, g)
	f.Faults, g.Faults = nil, nil
	// The server encrypts its reasoning once more for the whole.
	data := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Data" }, cmp.Comparer(func(a, b string) bool { return (a == "") == (b == "") }))
	if d := cmp.Diff(f, g, data); d != "" {
		t.Errorf("(-stream +whole):\n%s", d)
	}
	return f
}

// TestRecordedAnswersAreRead: whole answers of servers.
func TestRecordedAnswersAreRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "recorded-streams"), "openai__responses__*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no answers: %v", err)
	}
	own := filepath.Join(testdata.Dir(t, "wires"), "agentgateway", "response", "responses")
	files = append(files, filepath.Join(own, "tool.json"), filepath.Join(own, "custom-tool.json"))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body := read(t, file)
			deltas, f, err := Codec{}.NewAssembler(nil).Complete(nil, body)
			if e, ok := err.(*wire.APIError); ok && get(body, "error") != nil {
				if e.Message == "" {
					t.Fatal("no message")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkDeltas(t, deltas, f)
			if len(f.Message.Parts) == 0 || f.Usage.TotalTokens == 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestExampleStream(t *testing.T) {
	list := events(read(t, testdata.Dir(t, "wires", "examples", "responses.sse")))
	f := checkStream(t, list)
	want := []lathe.Part{
		lathe.Reasoning{Text: "Need two cities.", Field: "encrypted_content", Data: "gAAA", ID: "rs_01"},
		lathe.Text{Text: "I look both up.", Commentary: true},
		lathe.ToolCall{ID: "call_A", Name: "get_weather", Arguments: `{"city":"Oslo"}`},
		lathe.ToolCall{ID: "call_B", Name: "get_weather", Arguments: `{"city":"Rome"}`},
	}
	if d := cmp.Diff(want, f.Message.Parts); d != "" {
		t.Error(d)
	}
	usage := lathe.Usage{InputTokens: 120, OutputTokens: 64, TotalTokens: 184, CachedTokens: 100, ReasoningTokens: 20}
	if f.Usage != usage || f.Reason != lathe.FinishToolCalls || f.Message.Wire != lathe.WireResponses {
		t.Errorf("%+v", f)
	}
}

// parseRequest reads a request that must be valid.
func parseRequest(t testing.TB, body []byte) *wire.ClientRequest {
	t.Helper()
	r, err := Codec{}.ParseRequest(body)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, err.(*wire.APIError).Message, body)
	}
	return r
}

// written returns a request that was parsed, written for a server.
func written(t testing.TB, r *wire.ClientRequest, opts *wire.EncodeOptions) ([]byte, []string) {
	t.Helper()
	in := r.Request
	for _, h := range r.Hosted {
		in.HostedTools = append(in.HostedTools, h.JSON)
	}
	in.Overrides = r.Unknown
	body, dropped := Codec{}.AppendRequest(nil, &in, opts)
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return body, dropped
}

// sameJSON compares raw JSON without its white space.
var sameJSON = cmp.Comparer(func(a, b json.RawMessage) bool {
	return bytes.Equal(rawjson.AppendCompact(nil, a), rawjson.AppendCompact(nil, b))
})

// checkRoundTrip checks that a request is the same after it was written.
func checkRoundTrip(t testing.TB, body []byte) *wire.ClientRequest {
	t.Helper()
	first := parseRequest(t, body)
	again, dropped := written(t, first, &wire.EncodeOptions{Stream: first.Stream})
	for _, path := range dropped {
		if !strings.Contains(string(body), "mcp_") && !strings.Contains(string(body), "item_reference") && !strings.Contains(string(body), `"reasoning"`) {
			t.Errorf("dropped: %s", path)
		}
	}
	second := parseRequest(t, again)
	drop := cmp.FilterPath(func(p cmp.Path) bool { // ids of items are not sent; reasoning without data neither
		return p.Last().String() == ".ID" && p.Index(-2).Type() != nil && p.Index(-2).Type().Name() == "Reasoning"
	}, cmp.Ignore())
	if len(dropped) == 0 {
		if d := cmp.Diff(first.Request, second.Request, drop, sameJSON); d != "" {
			t.Errorf("the request changed (-read +written and read):\n%s\n%s", d, again)
		}
	}
	third, _ := written(t, second, &wire.EncodeOptions{Stream: first.Stream})
	fourth, _ := written(t, parseRequest(t, third), &wire.EncodeOptions{Stream: first.Stream})
	if !bytes.Equal(third, fourth) {
		t.Errorf("writing is not stable:\n%s\n%s", third, fourth)
	}
	return first
}

func agentRequest(t testing.TB, name string) []byte {
	t.Helper()
	var record struct{ Body json.RawMessage }
	if err := json.Unmarshal(read(t, testdata.Dir(t, "wires", "agents", name)), &record); err != nil {
		t.Fatal(err)
	}
	return record.Body
}

// TestW12_RecordedRequestsRoundTrip: requests of real clients keep all that both forms know.
func TestW12_RecordedRequestsRoundTrip(t *testing.T) {
	for _, name := range []string{"codex-0.169.0-turn1.json", "codex-0.169.0-turn2-parallel.json"} {
		t.Run(name, func(t *testing.T) { checkRoundTrip(t, agentRequest(t, name)) })
	}
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "wires", "agentgateway", "requests", "responses"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkRoundTrip(t, read(t, file)) })
	}
}

// TestConvertedCases: the inputs that another gateway's tests have for this wire are read, or refused by name.
func TestConvertedCases(t *testing.T) {
	type input struct {
		Kind string
		JSON json.RawMessage
		Text string
	}
	var c struct {
		ID, Upstream, Client, Dir string
		Inputs                    []input
	}
	requests, answers := 0, 0
	for line := range bytes.Lines(read(t, testdata.Dir(t, "wires", "cliproxyapi", "cases.jsonl"))) {
		c.Inputs = nil
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for _, in := range c.Inputs {
			body := in.JSON
			if len(body) == 0 {
				body = []byte(in.Text)
			}
			switch {
			case strings.Contains(c.Client, "responses") && c.Dir == "request" && in.Kind == "json":
				requests++
				r, err := Codec{}.ParseRequest(body)
				if err != nil {
					if e := err.(*wire.APIError); e.Message == "" || e.Status != 400 {
						t.Errorf("%s: %+v", c.ID, e)
					}
					continue
				}
				written(t, r, nil)
			case c.Upstream == "codex" && c.Dir == "response":
				answers++
				a := Codec{}.NewAssembler(nil)
				for _, e := range events(append(bytes.ReplaceAll(body, []byte(`\n`), []byte("\n")), "\n\n"...)) {
					if _, err := a.Append(nil, e.typ, e.data); err != nil {
						break
					}
				}
				_, _ = a.Finish(true)
			}
		}
	}
	if requests == 0 || answers == 0 {
		t.Errorf("%d requests and %d answers", requests, answers)
	}
	t.Logf("%d requests, %d answers", requests, answers)
}
