package openai

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got)\n%s", file, d)
	}
}

func ptr[T any](v T) *T { return &v }

// requests are requests of every shape that the wire has a place for, so each comes back the same.
func requests() map[string]*ChatRequest {
	image := lathe.Blob{MediaType: "image/png", Data: []byte("\x89PNG"), Detail: "low"}
	return map[string]*ChatRequest{
		"small": {N: 1, Request: lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("hi")}}},
		"all": {N: 1, Stream: true, IncludeUsage: true, Request: lathe.Request{
			Model: "gpt-5.6",
			Messages: []lathe.Message{
				lathe.System("Be brief.\nÉ \"x\" \u2028 <b>"),
				{Role: lathe.RoleDeveloper, Name: "dev", Parts: []lathe.Part{lathe.Text{Text: "d"}}},
				{Role: lathe.RoleUser, Name: "u", Parts: []lathe.Part{lathe.Text{Text: "What is this?"}, image,
					lathe.Blob{URL: "https://example.com/a.png"},
					lathe.Blob{MediaType: "audio/wav", Data: []byte{1, 2}}, lathe.Blob{MediaType: "audio/mpeg", Data: []byte{3}},
					lathe.Blob{MediaType: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")},
					lathe.Blob{URL: fileScheme + "file-1"}}},
				{Role: lathe.RoleAssistant, Parts: []lathe.Part{
					lathe.Text{Text: "Let me look."},
					lathe.ToolCall{ID: "call_1", Name: "look", Arguments: "{ \"n\": 12345678901234567890, \"s\": \"\\u00e9\" }"},
					lathe.ToolCall{ID: "call_2", Name: "now", Arguments: "{}", Extra: []lathe.Member{{Name: "extra_content", Value: json.RawMessage(`{"google":{"thought_signature":"T"}}`)}}}},
					Extra: []lathe.Member{{Name: "reasoning_details", Value: json.RawMessage(`[{"type":"reasoning.text","text":"hm"}]`)}}},
				{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "call_1", Name: "look", Content: `{"ok":true}`}}},
				{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "call_2", Name: "now"}}},
				{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Refusal{Text: "No."}}},
				{Role: lathe.RoleAssistant},
				{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "call_3", Name: "now", Arguments: `{"n":[]}`}}},
				{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "call_3", Name: "now", Content: "no"}}},
				lathe.Assistant("It is a picture."),
				lathe.User("Thanks"),
			},
			Tools: []*lathe.ToolSpec{
				{Name: "look", Description: "Looks at a thing.", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"required":{"type":"string"}},"required":["n"]}`)},
				{Name: "now", Schema: json.RawMessage(noArguments)},
			},
			ToolChoice:        lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "look"},
			ParallelToolCalls: ptr(false),
			User:              "u1",
			Sampling: lathe.Sampling{Temperature: ptr(0.7), TopP: ptr(1.0), MaxTokens: ptr(100), Seed: ptr(int64(-7)), Stop: []string{"END", "\n"},
				ReasoningEffort: "low", ResponseFormat: json.RawMessage(`{"type":"json_object"}`)},
		}, Unknown: []lathe.Member{{Name: "logit_bias", Value: json.RawMessage(`{"50256":-100}`)}, {Name: "store", Value: json.RawMessage(`true`)}}},
		"required": {N: 1, Request: lathe.Request{Model: "m", Messages: []lathe.Message{lathe.User("a")}, Tools: []*lathe.ToolSpec{{Name: "now", Schema: json.RawMessage(noArguments)}}, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, ParallelToolCalls: ptr(true)}},
	}
}

// encode writes a ChatRequest; what its reader does not know goes out as an override.
func encode(r *ChatRequest) []byte {
	req := r.Request
	req.Overrides = append(req.Overrides, r.Unknown...)
	return AppendRequest(nil, &req, &EncodeOptions{Stream: r.Stream, IncludeUsage: r.IncludeUsage})
}

func TestRequestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range requests() {
		body := encode(want)
		golden(t, "request-"+name+".json", append(bytes.Clone(body), '\n'))
		if again := encode(want); !bytes.Equal(body, again) {
			t.Errorf("%s: not the same bytes twice", name)
		}
		got, err := ParseRequest(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want.Body = body
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
		if again := encode(got); !bytes.Equal(body, again) {
			t.Errorf("%s: read and written again it is\n%s\nwant\n%s", name, again, body)
		}
	}
}

func TestRequestGrows(t *testing.T) {
	t.Parallel()
	r := &requests()["all"].Request
	for i := range r.Messages {
		grown := AppendHead(nil, r, nil)
		grown = AppendMessages(grown, r.Messages[:i], nil)
		grown = AppendMessages(grown, r.Messages[i:], nil)
		if want := AppendRequest(nil, r, nil); string(AppendTail(grown)) != string(want) {
			t.Errorf("grown from %d messages, the request differs", i)
		}
	}
}

func TestRequestFitsSchema(t *testing.T) {
	t.Parallel()
	s := apiSchema(t, "CreateChatCompletionRequest")
	for _, r := range requests() {
		mustValidate(t, s, encode(r))
		mustValidate(t, s, AppendRequest(nil, &r.Request, &EncodeOptions{ReasoningField: "reasoning", MaxCompletionTokens: true}))
	}
}

// finishes are answers of every shape that both the stream and the whole body have a place for.
func finishes() map[string]*lathe.Finish {
	usage := lathe.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, CachedTokens: 3, ReasoningTokens: 2}
	answer := func(reason lathe.FinishReason, ps ...lathe.Part) *lathe.Finish {
		return &lathe.Finish{Reason: reason, RawReason: string(reason), Usage: usage, Model: "m", ResponseID: "chatcmpl-1",
			Message: lathe.Message{Role: lathe.RoleAssistant, Parts: ps}}
	}
	call := func(i int, args string) lathe.Part {
		return lathe.ToolCall{ID: "call_" + strconv.Itoa(i), Name: "tool_" + strconv.Itoa(i), Arguments: args}
	}
	cost := answer(lathe.FinishStop, lathe.Text{Text: "cheap"})
	cost.ProviderCost = ptr(0.00125)
	return map[string]*lathe.Finish{
		"text":      answer(lathe.FinishStop, lathe.Text{Text: "Hello, \"world\"\n😀 é"}),
		"empty":     answer(lathe.FinishStop),
		"cost":      cost,
		"reasoning": answer(lathe.FinishStop, lathe.Reasoning{Text: "Hm.", Field: "reasoning_content"}, lathe.Text{Text: "Yes."}),
		"refusal":   answer(lathe.FinishStop, lathe.Refusal{Text: "No."}),
		"call":      answer(lathe.FinishToolCalls, call(1, `{"x": 1, "s":"\u00e9\n"}`)),
		"calls":     answer(lathe.FinishToolCalls, lathe.Text{Text: "Two."}, call(1, `{}`), call(2, `{"a":[1,2]}`)),
		"bad args":  answer(lathe.FinishToolCalls, call(1, `{'x':`), call(2, `null`)),
		"length":    answer(lathe.FinishLength, lathe.Text{Text: "and so"}),
		"filter":    answer(lathe.FinishContentFilter),
	}
}

func TestCompletionRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range finishes() {
		c := &Completion{ID: want.ResponseID, Model: want.Model, Created: 1, Finish: want, Extra: []lathe.Member{{Name: "lathe", Value: json.RawMessage(`{ "a": 1 }`)}}}
		body := AppendCompletion(nil, c)
		golden(t, "completion-"+strings.ReplaceAll(name, " ", "-")+".json", append(bytes.Clone(body), '\n'))
		got, err := ParseCompletion(body, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	extra := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Parts: []lathe.Part{lathe.Text{Text: "a"}},
		Extra: []lathe.Member{{Name: "annotations", Value: json.RawMessage(`[1]`)}, {Name: "content", Value: json.RawMessage(`"no"`)}}}}
	got, err := ParseCompletion(AppendCompletion(nil, &Completion{Finish: extra}), nil)
	if err != nil || !cmp.Equal(got.Message.Extra, extra.Message.Extra[:1]) || got.Message.Text() != "a" {
		t.Errorf("unknown members: %+v, %v", got, err)
	}
}

func TestCompletionFitsSchema(t *testing.T) {
	t.Parallel()
	s := apiSchema(t, "CreateChatCompletionResponse")
	for _, f := range finishes() {
		mustValidate(t, s, AppendCompletion(nil, &Completion{ID: "a", Model: "m", Created: 1, Finish: f}))
	}
	mustValidate(t, s, AppendCompletion(nil, &Completion{}))
}

// deltasOf cuts an answer into deltas whose texts have at most n bytes, cut between characters.
func deltasOf(f *lathe.Finish, n int) []lathe.Delta {
	var ds []lathe.Delta
	texts := func(d lathe.Delta, s string) {
		for s != "" {
			k := min(n, len(s))
			for k < len(s) && s[k]&0xC0 == 0x80 {
				k++
			}
			d.Text = s[:k]
			ds = append(ds, d)
			s = s[k:]
		}
	}
	i := 0
	for _, p := range f.Message.Parts {
		switch p := p.(type) {
		case lathe.Text:
			texts(lathe.Delta{Kind: lathe.DeltaText}, p.Text)
		case lathe.Reasoning:
			texts(lathe.Delta{Kind: lathe.DeltaReasoning}, p.Text)
		case lathe.Refusal:
			texts(lathe.Delta{Kind: lathe.DeltaRefusal}, p.Text)
		case lathe.ToolCall:
			ds = append(ds, lathe.Delta{Kind: lathe.DeltaCallStart, Index: i, ID: p.ID, Name: p.Name})
			texts(lathe.Delta{Kind: lathe.DeltaCallArgs, Index: i}, p.Arguments)
			ds = append(ds, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: i})
			i++
		}
	}
	return append(ds, lathe.Delta{Kind: lathe.DeltaFinish, Finish: f})
}

func newChunkWriter(id string, usage bool) *ChunkWriter {
	return Served{}.NewWriter(&wire.AnswerHead{ID: id, Model: "m", Created: 1, Request: &wire.ClientRequest{IncludeUsage: usage}}).(*ChunkWriter)
}

func write(ds []lathe.Delta, usage bool) []byte {
	w := newChunkWriter("1", usage)
	var out []byte
	for _, d := range ds {
		out = w.AppendDelta(out, d)
	}
	return out
}

// events returns the data of a stream's events.
func events(t *testing.T, stream []byte) []string {
	t.Helper()
	r := sse.NewReader(bytes.NewReader(stream), nil)
	var lines []string
	for {
		e, err := r.Next()
		if err == io.EOF {
			return lines
		}
		if err != nil {
			t.Fatalf("reading back the stream: %v", err)
		}
		lines = append(lines, string(e.Data))
	}
}

func TestChunksRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range finishes() {
		for _, n := range []int{1, 3, 1000} {
			out := write(deltasOf(want, n), true)
			if n == 3 {
				golden(t, "chunks-"+strings.ReplaceAll(name, " ", "-")+".sse", out)
			}
			ds, got, err := assemble(events(t, out), nil, true)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s in pieces of %d (-want +got)\n%s", name, n, d)
			}
			checkDeltas(t, ds, got)
		}
		// A finish alone still tells the calls.
		_, got, err := assemble(events(t, write([]lathe.Delta{{Kind: lathe.DeltaFinish, Finish: want}}, false)), nil, true)
		if err != nil || !cmp.Equal(got.Message.Calls(), want.Message.Calls()) {
			t.Errorf("%s, the finish alone: %+v, %v", name, got, err)
		}
	}
}

// What a server makes of a damaged stream, a client reads as the same answer, undamaged.
func TestChunksOfHazards(t *testing.T) {
	t.Parallel()
	for _, h := range hazards() {
		ds, f, err := assemble(h.lines, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		out := events(t, write(append(ds, lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}), false))
		_, got, err := assemble(out, nil, true)
		if err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
		want := partsOf(f)
		ids := map[string]bool{}
		for i := range want.calls {
			c := &want.calls[i]
			c.Extra = nil
			if c.ID == "" {
				c.ID = "call_" + strconv.Itoa(i+1)
			}
			if c.Name == "" {
				c.Name = "unknown"
			}
			if c.Arguments == "" && !c.Incomplete {
				c.Arguments = "{}"
			}
			if ids[c.ID] {
				want.calls = nil // the runner distinguishes two calls with one id
				break
			}
			ids[c.ID] = true
		}
		have := partsOf(got)
		if want.calls == nil {
			have.calls = nil
		}
		if d := cmp.Diff(want, have, cmp.AllowUnexported(answerParts{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got)\n%s", h.name, d)
		}
		for _, ft := range got.Faults {
			if ft.Kind != faultIDDuplicate {
				t.Errorf("%s: written again, it still has %s", h.name, ft.Kind)
			}
		}
		checkClientRules(t, h.name, out)
	}
}

// checkClientRules holds a stream to what OpenAI's own clients were measured to need.
func checkClientRules(t *testing.T, name string, lines []string) {
	t.Helper()
	last, finished := -1, false
	for i, l := range lines[:len(lines)-1] {
		choice, _ := rawjson.Get([]byte(l), "choices")
		if string(choice) == "[]" {
			continue
		}
		for el := range rawjson.Elements(choice) {
			choice = el
		}
		delta, _ := rawjson.Get(choice, "delta")
		if _, ok := rawjson.Get(delta, "role"); ok != (i == 0) {
			t.Errorf("%s: the role must be in the first chunk only", name)
		}
		if reason, _ := rawjson.Get(choice, "finish_reason"); string(reason) != "null" {
			if string(delta) != "{}" || finished {
				t.Errorf("%s: the finish reason must come once and alone: %s", name, l)
			}
			finished = true
		}
		list, _ := rawjson.Get(delta, "tool_calls")
		for c := range rawjson.Elements(list) {
			raw, _ := rawjson.Get(c, "index")
			index, err := strconv.Atoi(string(raw))
			_, hasID := rawjson.Get(c, "id")
			if err != nil || hasID && index != last+1 || !hasID && index != last {
				t.Errorf("%s: after call %d comes %s", name, last, c)
			}
			last = index
		}
	}
	if !finished {
		t.Errorf("%s: no finish reason", name)
	}
}

func TestChunksFitSchema(t *testing.T) {
	t.Parallel()
	s := apiSchema(t, "CreateChatCompletionStreamResponse")
	for _, f := range finishes() {
		for _, usage := range []bool{false, true} {
			for _, l := range events(t, write(deltasOf(f, 3), usage)) {
				if l != done {
					mustValidate(t, s, []byte(l))
				}
			}
		}
	}
	e := apiSchema(t, "ErrorResponse")
	for _, l := range events(t, (&ChunkWriter{}).AppendError(nil, &APIError{Message: "boom\n\n"})) {
		mustValidate(t, e, []byte(l))
	}
	mustValidate(t, e, AppendError(nil, &APIError{Status: 400, Message: "a", Type: "b", Code: "c", Param: "d"}))
}

// A call while another is open, and one whose id comes late, wait.
func TestChunkWriterWaits(t *testing.T) {
	t.Parallel()
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Parts: []lathe.Part{
		lathe.ToolCall{ID: "a", Name: "f", Arguments: `[1]`}, lathe.ToolCall{ID: "b", Name: "g"}, lathe.ToolCall{ID: "c", Name: "h", Arguments: `[3]`}}}}
	ds := []lathe.Delta{
		{Kind: lathe.DeltaCallStart, Index: 0, ID: "a", Name: "f"},
		{Kind: lathe.DeltaCallArgs, Index: 0, Text: "["},
		{Kind: lathe.DeltaCallStart, Index: 1, Name: "g"}, // the id comes only with the finish
		{Kind: lathe.DeltaCallEnd, Index: 1},
		{Kind: lathe.DeltaCallStart, Index: 2, ID: "c", Name: "h"},
		{Kind: lathe.DeltaCallArgs, Index: 2, Text: "[3"},
		{Kind: lathe.DeltaText, Text: "meanwhile"},
		{Kind: lathe.DeltaCallArgs, Index: 0, Text: "1]"},
		{Kind: lathe.DeltaCallEnd, Index: 0},
		{Kind: lathe.DeltaCallArgs, Index: 2, Text: "]"},
		{Kind: lathe.DeltaCallEnd, Index: 2},
		{Kind: lathe.DeltaRetry}, {Kind: lathe.DeltaParseError},
		{Kind: lathe.DeltaFinish, Finish: f},
	}
	lines := events(t, write(ds, false))
	checkClientRules(t, "waits", lines)
	_, got, err := assemble(lines, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []lathe.ToolCall{{ID: "a", Name: "f", Arguments: "[1]"}, {ID: "b", Name: "g", Arguments: "{}"}, {ID: "c", Name: "h", Arguments: "[3]"}}
	if d := cmp.Diff(want, got.Message.Calls()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got.Message.Text() != "meanwhile" {
		t.Errorf("text %q", got.Message.Text())
	}
}

func TestChunkWriterAllocs(t *testing.T) {
	testdata.CountsAllocations(t)
	w := newChunkWriter("id", true)
	buf := w.AppendDelta(make([]byte, 0, 4096), lathe.Delta{Kind: lathe.DeltaCallStart, ID: "a", Name: "f"})
	for _, d := range []lathe.Delta{{Kind: lathe.DeltaText, Text: " word"}, {Kind: lathe.DeltaCallArgs, Text: "{\"x\""}} {
		if n := testing.AllocsPerRun(100, func() { buf = w.AppendDelta(buf[:0], d) }); n != 0 {
			t.Errorf("%v allocations for a delta of kind %d, want 0", n, d.Kind)
		}
	}
}
