package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

func testHead(t testing.TB, body string) *wire.AnswerHead {
	return &wire.AnswerHead{ID: "01abc", Model: "m", Created: 1767225600, Request: parseRequest(t, []byte(body))}
}

// checkStreamRules checks that a stream has one legal order, and returns the response that ends it.
func checkStreamRules(t testing.TB, stream []byte) []byte {
	t.Helper()
	list := events(stream)
	if len(list) < 4 || string(list[len(list)-1].data) != endOfStream {
		t.Fatalf("no end:\n%s", stream)
	}
	var last []byte
	open, parts := map[string]bool{}, map[string]bool{}
	items := 0
	for i, e := range list[:len(list)-1] {
		if err := rawjson.Check(e.data, rawjson.Limits{}); err != nil {
			t.Fatalf("event %d: %v\n%s", i, err, e.data)
		}
		typ := text(e.data, "type")
		if typ != e.typ || string(get(e.data, "sequence_number")) != fmt.Sprint(i) {
			t.Fatalf("event %d: %s %s", i, e.typ, e.data)
		}
		if (i == 0) != (typ == "response.created") || (i == 1) != (typ == "response.in_progress") {
			t.Fatalf("event %d is %s", i, typ)
		}
		switch {
		case typ == "response.completed", typ == "response.incomplete", typ == "response.failed":
			if i != len(list)-2 {
				t.Fatalf("%s is event %d of %d", typ, i, len(list))
			}
			if last = get(e.data, "response"); text(last, "status") != strings.TrimPrefix(typ, "response.") {
				t.Fatalf("status %s", last)
			}
			if typ != "response.failed" && (len(open) > 0 || len(parts) > 0) {
				t.Fatalf("still open: %v %v", open, parts)
			}
		case typ == "response.output_item.added":
			if len(open) > 0 || string(get(e.data, "output_index")) != fmt.Sprint(items) {
				t.Fatalf("event %d: %s with %v open", i, e.data, open)
			}
			items++
			open[text(get(e.data, "item"), "id")] = true
		case typ == "response.output_item.done":
			id := text(get(e.data, "item"), "id")
			if !open[id] || len(parts) > 0 {
				t.Fatalf("event %d: %s with %v open", i, e.data, open)
			}
			delete(open, id)
		case strings.HasSuffix(typ, "_part.added"):
			parts[text(e.data, "item_id")+string(get(e.data, "content_index"))+string(get(e.data, "summary_index"))] = true
		case strings.HasSuffix(typ, "_part.done"):
			delete(parts, text(e.data, "item_id")+string(get(e.data, "content_index"))+string(get(e.data, "summary_index")))
		case typ != "error" && i > 1:
			if !open[text(e.data, "item_id")] {
				t.Fatalf("event %d: %s of an item that is not open", i, typ)
			}
		}
	}
	checkResource(t, last)
	return last
}

// required are the members of a response that the specification requires.
const required = "id,object,created_at,completed_at,status,incomplete_details,model,previous_response_id,instructions,output,error,tools," +
	"tool_choice,truncation,parallel_tool_calls,text,top_p,presence_penalty,frequency_penalty,top_logprobs,temperature,reasoning,usage," +
	"max_output_tokens,max_tool_calls,store,background,service_tier,metadata,safety_identifier,prompt_cache_key"

func checkResource(t testing.TB, r []byte) {
	t.Helper()
	for name := range strings.SplitSeq(required, ",") {
		if _, ok := rawjson.Get(r, name); !ok {
			t.Errorf("no member %s in %s", name, r)
		}
	}
	for _, name := range []string{"top_p", "temperature", "presence_penalty", "frequency_penalty", "top_logprobs", "tools", "tool_choice", "text", "metadata", "service_tier", "truncation"} {
		if get(r, name) == nil {
			t.Errorf("%s is null", name)
		}
	}
	if u := get(r, "usage"); u != nil {
		for _, path := range [][]string{{"input_tokens"}, {"output_tokens"}, {"total_tokens"}, {"input_tokens_details", "cached_tokens"}, {"input_tokens_details", "cache_write_tokens"}, {"output_tokens_details", "reasoning_tokens"}} {
			v := u
			for _, name := range path {
				v = get(v, name)
			}
			if v == nil {
				t.Errorf("no %v in %s", path, u)
			}
		}
	}
}

func TestWriterWritesTheLegalOrder(t *testing.T) {
	head := testHead(t, `{"model":"m","input":"hi"}`)
	w := Codec{}.NewWriter(head)
	var dst []byte
	for _, d := range []lathe.Delta{
		{Kind: lathe.DeltaReasoning, Text: "Need "}, {Kind: lathe.DeltaReasoning, Text: "two."},
		{Kind: lathe.DeltaReasoningData, Name: "encrypted_content", Text: "gAAA"},
		{Kind: lathe.DeltaCommentary, Text: "I look "}, {Kind: lathe.DeltaCommentary, Text: "both up."},
		{Kind: lathe.DeltaCallStart, ID: "call_A", Name: "w"},
		{Kind: lathe.DeltaCallStart, Index: 1, ID: "call_B", Name: "w"},
		{Kind: lathe.DeltaCallArgs, Index: 1, Text: `{"city":`},
		{Kind: lathe.DeltaText, Text: "after"},
		{Kind: lathe.DeltaCallArgs, Text: `{"a"`}, {Kind: lathe.DeltaCallArgs, Index: 1, Text: `"Rome"}`},
		{Kind: lathe.DeltaCallEnd, Index: 1}, {Kind: lathe.DeltaCallArgs, Text: `:1}`}, {Kind: lathe.DeltaCallEnd},
		{Kind: lathe.DeltaRefusal, Text: "no"},
	} {
		dst = w.AppendDelta(dst, d)
	}
	dst = w.AppendServerCall(dst, &wire.ServerCall{ID: "call_s", Name: "find", Arguments: `{"q":1}`, Output: "42"})
	dst = w.AppendServerCall(dst, &wire.ServerCall{ID: "call_t", Name: "find", Server: "files", Output: "no disk", Failed: true})
	dst = w.AppendCarrier(dst, "seal")
	dst = w.AppendApproval(dst, &wire.Approval{ID: "apr_1", CallID: "c", Name: "rm", Arguments: `{}`})
	dst = w.AppendKeepAlive(dst)
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Usage: lathe.Usage{InputTokens: 120, OutputTokens: 64, CachedTokens: 100}}
	head.Completed = 1767225602
	dst = w.AppendFinish(dst, f, []lathe.Member{{Name: "lathe", Value: []byte(`{"x": 1}`)}})
	if more := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: "x"}); len(more) > 0 {
		t.Errorf("after the end: %s", more)
	}
	if more := w.AppendFinish(w.AppendError(nil, &wire.APIError{Message: "x"}), f, nil); len(more) > 0 {
		t.Errorf("after the end: %s", more)
	}
	r := checkStreamRules(t, dst)
	var got struct {
		ID          string
		CompletedAt int64 `json:"completed_at"`
		Output      []map[string]any
		Lathe       any
	}
	if err := json.Unmarshal(r, &got); err != nil {
		t.Fatal(err)
	}
	text := func(typ, s string) []any {
		p := map[string]any{"type": typ, "text": s, "annotations": []any{}, "logprobs": []any{}}
		if typ == "refusal" {
			p = map[string]any{"type": typ, "refusal": s}
		}
		return []any{p}
	}
	want := []map[string]any{
		{"id": "rs_01abc_0", "type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": "Need two."}}, "encrypted_content": "gAAA"},
		{"id": "msg_01abc_1", "type": "message", "role": "assistant", "status": "completed", "phase": "commentary", "content": text("output_text", "I look both up.")},
		{"id": "fc_01abc_2", "type": "function_call", "call_id": "call_A", "name": "w", "arguments": `{"a":1}`, "status": "completed"},
		{"id": "fc_01abc_3", "type": "function_call", "call_id": "call_B", "name": "w", "arguments": `{"city":"Rome"}`, "status": "completed"},
		{"id": "msg_01abc_4", "type": "message", "role": "assistant", "status": "completed", "content": append(text("output_text", "after"), text("refusal", "no")...)},
		{"id": "mcp_01abc_5", "type": "mcp_call", "server_label": "lathe", "name": "find", "arguments": `{"q":1}`, "output": "42", "error": nil, "status": "completed"},
		{"id": "mcp_01abc_6", "type": "mcp_call", "server_label": "files", "name": "find", "arguments": `{}`, "output": nil, "error": "no disk", "status": "failed"},
		{"id": "rs_01abc_7", "type": "reasoning", "summary": []any{}, "encrypted_content": "seal"},
		{"id": "mcpr_apr_1", "type": "mcp_approval_request", "server_label": "lathe", "name": "rm", "arguments": `{}`},
	}
	if d := cmp.Diff(want, got.Output); d != "" {
		t.Error(d)
	}
	if got.ID != "resp_01abc" || got.CompletedAt != 1767225602 || got.Lathe == nil {
		t.Errorf("%+v", got)
	}
}

func TestResourceRepeatsTheRequest(t *testing.T) {
	body := `{"model":"m","input":"hi","instructions":"be \"nice\"","temperature":0.5,"top_p":0.9,"max_output_tokens":16,"max_tool_calls":3,
	 "metadata":{"a": "b"},"reasoning":{"effort":"low"},"service_tier":"flex","truncation":"auto","store":true,"prompt_cache_key":"k","parallel_tool_calls":false,
	 "safety_identifier":"u","top_logprobs":2,"presence_penalty":-0.5,"previous_response_id":"resp_0",
	 "text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"},"strict":true},"verbosity":"low"},
	 "tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","function":{"name":"g","strict":true}},{"type":"mcp","server_label":"s","authorization":"secret"}],
	 "tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}}`
	head := testHead(t, body)
	head.Kept, head.Completed = true, 1767225601
	got := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: *head, Finish: &lathe.Finish{}})
	want := `{"id":"resp_01abc","object":"response","created_at":1767225600,"completed_at":1767225601,"status":"completed","incomplete_details":null,"model":"m",` +
		`"previous_response_id":"resp_0","instructions":"be \"nice\"","output":[],"error":null,"tools":[{"type":"function","name":"f","description":null,"parameters":{"type":"object"},"strict":null},` +
		`{"type":"function","name":"g","description":null,"parameters":null,"strict":true},{"type":"mcp","server_label":"s"}],` +
		`"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}],"mode":"required"},"truncation":"auto","parallel_tool_calls":false,` +
		`"text":{"format":{"type":"json_schema","name":"x","description":null,"schema":{"type":"object"},"strict":true},"verbosity":"low"},"top_p":0.9,"presence_penalty":-0.5,"frequency_penalty":0,` +
		`"top_logprobs":2,"temperature":0.5,"reasoning":{"effort":"low","summary":null},"usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":0,` +
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0},"max_output_tokens":16,"max_tool_calls":3,"store":true,"background":false,"service_tier":"flex","metadata":{"a":"b"},` +
		`"safety_identifier":"u","prompt_cache_key":"k"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	checkResource(t, got)
	plain := wire.AppendAnswer(nil, Codec{}, &wire.Answer{AnswerHead: wire.AnswerHead{ID: "x", Model: "m"}})
	checkResource(t, plain)
	if !bytes.Contains(plain, []byte(`"tool_choice":"auto","truncation":"disabled","parallel_tool_calls":true,"text":{"format":{"type":"text"}},"top_p":1`)) {
		t.Errorf("%s", plain)
	}
}

// TestW5_AnswerEqualsStream: the whole answer is the object that ends the stream of the same answer.
func TestW5_AnswerEqualsStream(t *testing.T) {
	for _, reason := range []lathe.FinishReason{lathe.FinishStop, lathe.FinishLength, lathe.FinishContentFilter} {
		head := testHead(t, `{"model":"m","input":"hi"}`)
		write := func(whole bool) []byte {
			own := *head
			own.Whole = whole
			w := Codec{}.NewWriter(&own)
			dst := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaReasoning, Text: "r"})
			dst = w.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaReasoningData, Name: "encrypted_content", Text: "d"})
			dst = w.AppendServerCall(dst, &wire.ServerCall{Name: "s", Output: "o"})
			dst = w.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCommentary, Text: "c"})
			dst = w.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallStart, ID: "call_1", Name: "f"})
			dst = w.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallEnd})
			dst = w.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: "t"})
			dst = w.AppendCarrier(dst, "seal")
			return w.AppendFinish(dst, &lathe.Finish{Reason: reason}, nil)
		}
		dst, whole := write(false), write(true)
		if last := checkStreamRules(t, dst); !bytes.Equal(last, whole) {
			t.Errorf("stream %s\nwhole  %s", last, whole)
		}
	}
}

func TestW32_ErrorEventHasBothForms(t *testing.T) {
	w := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"hi"}`))
	dst := w.AppendDelta(nil, lathe.Delta{Kind: lathe.DeltaText, Text: "half"})
	dst = w.AppendError(dst, &wire.APIError{Status: 502, Message: "it broke", Code: "upstream"})
	dst = w.AppendFinish(dst, &lathe.Finish{}, nil)
	last := checkStreamRules(t, dst)
	if text(get(last, "error"), "message") != "it broke" || text(get(last, "error"), "code") != "upstream" {
		t.Errorf("%s", last)
	}
	list := events(dst)
	e := list[len(list)-3].data
	if text(e, "type") != "error" || text(e, "message") != "it broke" || text(e, "code") != "upstream" || text(get(e, "error"), "message") != "it broke" || text(get(e, "error"), "type") != "server_error" {
		t.Errorf("%s", e)
	}
	_, _, _, err := assemble(list)
	if api, ok := err.(*wire.APIError); !ok || api.Message != "it broke" || api.Code != "upstream" {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		e    wire.APIError
		code string
	}{{wire.APIError{Status: 429}, "rate_limit_exceeded"}, {wire.APIError{Status: 400, Code: lathe.CodeContextLength}, "context_length_exceeded"}, {wire.APIError{Status: 400}, "invalid_prompt"}, {wire.APIError{}, "server_error"}} {
		dst := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"hi"}`)).AppendError(nil, &c.e)
		if code := text(get(checkStreamRules(t, dst), "error"), "code"); code != c.code {
			t.Errorf("%+v has code %s", c.e, code)
		}
	}
}

// Events with pieces of one part are written from the event before them. Their numbers go on past each further digit, and after events of
// another kind, of which a model server may have sent any number.
func TestWriterNumbersEvents(t *testing.T) {
	t.Parallel()
	w := Codec{}.NewWriter(testHead(t, `{"model":"m","input":"x"}`)).(*writer)
	var stream []byte
	for i := range 1100 {
		switch {
		case i == 300:
			stream = w.AppendDelta(stream, lathe.Delta{Kind: lathe.DeltaReasoning, Text: "thought"})
		case i == 600:
			w.seq = 99997
		}
		stream = w.AppendDelta(stream, lathe.Delta{Kind: lathe.DeltaText, Text: "wörd \"\n\xff"})
	}
	n, pieces := 0, 0
	for _, e := range events(w.AppendFinish(stream, &lathe.Finish{}, nil)) {
		if string(e.data) == endOfStream {
			break
		}
		var event struct {
			Number int    `json:"sequence_number"`
			Type   string `json:"type"`
			Delta  string `json:"delta"`
		}
		if err := json.Unmarshal(e.data, &event); err != nil {
			t.Fatal(err)
		}
		if pieces == 600 && n < 99997 {
			n = 99997
		}
		if event.Number != n || event.Type != e.typ {
			t.Fatalf("event %d of type %s has the number %d: %s", n, e.typ, event.Number, e.data)
		}
		n++
		if event.Type == "response.output_text.delta" {
			if pieces++; event.Delta != "wörd \"\n\uFFFD" {
				t.Fatalf("piece %q", event.Delta)
			}
		}
	}
	if pieces != 1100 {
		t.Errorf("%d pieces", pieces)
	}
}

// The places of annotations count from the beginning of the text that the client gets, which may have the texts of earlier turns.
func TestAnnotationsOfALaterTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire       lathe.Wire
		annotation string
		want       string
	}{
		"Responses":             {lathe.WireResponses, `{"type":"url_citation","start_index":1,"end_index":3,"url":"u","title":"t","x":{"start_index":1}}`, `{"type":"url_citation","start_index":7,"end_index":9,"url":"u","title":"t","x":{"start_index":1}}`},
		"a file of a container": {lathe.WireResponses, `{"type":"container_file_citation","start_index":0,"end_index":1,"file_id":"f","container_id":"c"}`, `{"type":"container_file_citation","start_index":6,"end_index":7,"file_id":"f","container_id":"c"}`},
		"chat":                  {lathe.WireOpenAIChat, `{"type":"url_citation","url_citation":{"start_index":1,"end_index":3,"url":"u","title":"t"}}`, `{"type":"url_citation","start_index":7,"end_index":9,"url":"u","title":"t"}`},
	} {
		head := testHead(t, `{"model":"m","input":"x"}`)
		for _, whole := range []bool{false, true} {
			h := *head
			h.Whole = whole
			w := Codec{}.NewWriter(&h)
			var dst []byte
			for _, d := range []lathe.Delta{{Kind: lathe.DeltaText, Text: "früh"}, {Kind: lathe.DeltaText, Text: "\n\n"}, {Kind: lathe.DeltaText, Text: "spä"}, {Kind: lathe.DeltaText, Text: "t"},
				{Kind: lathe.DeltaTextEnd, Name: string(c.wire), Part: lathe.Text{Text: "spät", Extra: []lathe.Member{{Name: "annotations", Value: []byte("[" + c.annotation + "]")}}}}} {
				dst = w.AppendDelta(dst, d)
			}
			dst = w.AppendFinish(dst, &lathe.Finish{Reason: lathe.FinishStop}, nil)
			if !strings.Contains(string(dst), `"annotations":[`+c.want+`]`) {
				t.Errorf("%s, whole %t: there is no %s in\n%s", name, whole, c.want, dst)
			}
		}
	}
}
