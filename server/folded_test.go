package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/sim"
)

// A folded is an answer as a vendor's library gives it to its caller, from a body or from the events of a stream.
type folded struct {
	Elements []string // in the order of the answer, where the wire has one
	Reason   string
	Usage    string
	Failed   bool
}

func (f *folded) add(kind string, v any) { f.Elements = append(f.Elements, kind+" "+canonical(v)) }

// canonical is the JSON of a value without what differs from run to run: ids, and the content of carriers.
func canonical(v any) string {
	b, err := json.Marshal(withoutIDs(v))
	if err != nil {
		return err.Error()
	}
	return string(sealedText.ReplaceAll(b, []byte("SEALED")))
}

var sealedText = regexp.MustCompile(`lathe1\.[A-Za-z0-9_-]+|bGF0aGUx[A-Za-z0-9+/=_-]+`)

func withoutIDs(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, el := range v {
			if key != "id" && key != "call_id" && key != "tool_use_id" {
				out[key] = withoutIDs(el)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutIDs(v[i])
		}
		return out
	}
	return v
}

type object = map[string]any

func in(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(object)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// counts are the tokens of an answer.
func counts(usage any) string {
	var all []any
	for _, key := range []string{"input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "promptTokenCount", "candidatesTokenCount"} {
		if n := in(usage, key); n != nil {
			all = append(all, n)
		}
	}
	return fmt.Sprint(all...)
}

func str(v any) string { s, _ := v.(string); return s }

func list(v any) []any { l, _ := v.([]any); return l }

// foldChat is the fold of OpenAI's library: contents are joined, and pieces of calls by their index.
func foldChat(events []object) *folded {
	f := &folded{}
	var content, reasoning, refusal string
	var annotations []any
	var names, args []string
	for _, e := range events {
		f.Failed = f.Failed || e["error"] != nil
		delta := in(e, "choices", 0, "delta")
		if delta == nil {
			delta = in(e, "choices", 0, "message")
		}
		content += str(in(delta, "content"))
		reasoning += str(in(delta, "reasoning_content"))
		refusal += str(in(delta, "refusal"))
		annotations = append(annotations, list(in(delta, "annotations"))...)
		for i, c := range list(in(delta, "tool_calls")) {
			if n, ok := in(c, "index").(float64); ok {
				i = int(n)
			}
			for len(names) <= i {
				names, args = append(names, ""), append(args, "")
			}
			names[i] += str(in(c, "function", "name"))
			args[i] += str(in(c, "function", "arguments"))
		}
		if r := str(in(e, "choices", 0, "finish_reason")); r != "" {
			f.Reason = r
		}
		if u := e["usage"]; u != nil {
			f.Usage = counts(u)
		}
	}
	f.add("reasoning", reasoning)
	f.add("content", content)
	f.add("refusal", refusal)
	f.add("annotations", annotations)
	for i := range names {
		f.add("call "+names[i], args[i])
	}
	return f
}

// foldResponses is that of OpenAI's library: the response of the last event. The items of the events before it are the same.
func foldResponses(events []object) *folded {
	f := &folded{}
	var done []any
	for _, e := range events {
		response := e["response"]
		switch typ := str(e["type"]); {
		case e["object"] == "response":
			response = e
		case typ == "response.output_item.done":
			done = append(done, e["item"])
		case typ == "error", e["error"] != nil:
			f.Failed = true
		}
		if response == nil || str(in(response, "status")) == "in_progress" {
			continue
		}
		output := list(in(response, "output"))
		f.Failed = f.Failed || in(response, "status") == "failed"
		f.Reason, f.Usage, f.Elements = canonical([]any{in(response, "status"), in(response, "incomplete_details")}), counts(in(response, "usage")), nil
		for _, item := range output {
			f.add("item", item)
		}
		if len(events) > 1 && canonical(output) != canonical(done) {
			f.add("differs from the items of the events", done)
		}
	}
	return f
}

// foldMessages is that of Anthropic's library, which parses the pieces of an input. A call whose input cannot be parsed is none that
// a tool could be run for, and the answer is not complete.
func foldMessages(events []object) *folded {
	f := &folded{}
	var blocks []object
	inputs := map[int]string{}
	for _, e := range events {
		index := 0
		if n, ok := e["index"].(float64); ok {
			index = int(n)
		}
		delta := e["delta"]
		switch str(e["type"]) {
		case "error":
			f.Failed = true
		case "message":
			for _, b := range list(e["content"]) {
				blocks = append(blocks, b.(object))
			}
			f.Reason, f.Usage = canonical([]any{e["stop_reason"], e["stop_sequence"]}), counts(e["usage"])
		case "content_block_start":
			blocks = append(blocks, e["content_block"].(object))
		case "content_block_delta":
			b := blocks[index]
			for _, key := range []string{"text", "thinking", "signature"} {
				if s, ok := in(delta, key).(string); ok {
					b[key] = str(b[key]) + s
				}
			}
			if c := in(delta, "citation"); c != nil {
				b["citations"] = append(list(b["citations"]), c)
			}
			if s, ok := in(delta, "partial_json").(string); ok {
				inputs[index] += s
			}
		case "message_delta":
			f.Reason, f.Usage = canonical([]any{in(delta, "stop_reason"), in(delta, "stop_sequence")}), counts(e["usage"])
		}
	}
	for i, b := range blocks {
		if text, ok := inputs[i]; ok {
			var input object
			if json.Unmarshal([]byte(text), &input) != nil || input == nil {
				f.Reason = canonical([]any{"max_tokens", nil})
				continue
			}
			b["input"] = input
		}
		f.add("block", b)
	}
	return f
}

// foldGemini is that of Google's library: the parts of all chunks, with the texts that follow one another joined.
func foldGemini(events []object) *folded {
	f := &folded{}
	var parts []object
	for _, e := range events {
		f.Failed = f.Failed || e["error"] != nil
		for _, p := range list(in(e, "candidates", 0, "content", "parts")) {
			part := p.(object)
			text, isText := part["text"].(string)
			if isText && text == "" && part["thoughtSignature"] == nil {
				continue
			}
			if n := len(parts); isText && n > 0 && parts[n-1]["text"] != nil && part["thoughtSignature"] == nil && parts[n-1]["thought"] == part["thought"] {
				parts[n-1]["text"] = str(parts[n-1]["text"]) + text
				continue
			}
			parts = append(parts, part)
		}
		if r := str(in(e, "candidates", 0, "finishReason")); r != "" {
			f.Reason = r
		}
		if r := in(e, "promptFeedback"); r != nil {
			f.Reason = canonical(r)
		}
		if u := e["usageMetadata"]; u != nil {
			f.Usage = counts(u)
		}
	}
	for _, p := range parts {
		f.add("part", p)
	}
	return f
}

var folds = map[string]func([]object) *folded{"chat": foldChat, "responses": foldResponses, "messages": foldMessages, "gemini": foldGemini}

// foldOf folds a response.
func foldOf(t *testing.T, client string, resp *http.Response) *folded {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", client, err)
	}
	var events []object
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		r := sse.NewReader(bytes.NewReader(body), nil)
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			var o object
			if json.Unmarshal(ev.Data, &o) == nil {
				events = append(events, o)
			}
		}
	} else {
		var o object
		if err := json.Unmarshal(body, &o); err != nil {
			t.Errorf("%s: %v in %s", client, err, body)
		}
		events = []object{o}
	}
	f := folds[client](events)
	if f.Failed = f.Failed || resp.StatusCode != http.StatusOK; f.Failed {
		return &folded{Failed: true} // what a stream had before the error is no answer
	}
	return f
}

// clients are those that ask, in this order: a fault may be that of the first requests.
var clients = []string{"chat", "responses", "messages", "gemini"}

// sameBothWays asks for an answer in both forms, on each wire, with and without tools of the server, and compares them. Answers of
// the wire relayed are not those of this server where no tool of it can have a part in them.
func sameBothWays(t *testing.T, relayed lathe.Wire, calls []string, model string, w lathe.Wire, up func() http.RoundTripper) {
	t.Helper()
	var tools []*lathe.ToolSpec
	for _, name := range calls {
		tools = append(tools, &lathe.ToolSpec{Name: name, Schema: []byte(`{"type":"object"}`)})
	}
	history := []lathe.Message{lathe.User("Use calculator to compute 7 + 35.")}
	for _, own := range []bool{true, false} {
		if !own && relayed != "" && len(calls) == 0 && !testdata.All() {
			continue
		}
		through := &transport{}
		m, err := provider.New(w, model, &provider.Options{BaseURL: "http://up.invalid", Transport: through, Retry: provider.Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		f := serve(t, &setting{model: m, opts: func(o *server.Options) {
			if !own {
				o.Setup.Tools = nil
			}
		}})
		f.client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
		t.Cleanup(f.client.CloseIdleConnections)
		forms := [2]map[string]*folded{}
		for i, stream := range []bool{true, false} {
			forms[i], through.RoundTripper = map[string]*folded{}, up()
			for _, name := range clients {
				c := wireClients[name]
				if !own && c.codec.Wire() == relayed {
					continue
				}
				body := c.body(stream, tools, history...)
				if name == "chat" && stream {
					body = strings.TrimSuffix(body, "}") + `,"stream_options":{"include_usage":true}}`
				}
				resp, err := f.client.Post(f.url+c.path(stream), "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				forms[i][name] = foldOf(t, name, resp)
			}
		}
		for _, name := range clients {
			if d := cmp.Diff(forms[0][name], forms[1][name]); d != "" {
				t.Errorf("%s, tools of the server %v (-streamed +whole):\n%s", name, own, d)
			}
		}
	}
}

// A transport is one that can be replaced between two requests.
type transport struct{ http.RoundTripper }

// A scripted model server gives one answer to every request.
type scripted struct{ kind, body string }

func (s scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

// callNames returns the names of the tools that an answer calls.
func callNames(t *testing.T, w lathe.Wire, s *scripted) (names []string) {
	t.Helper()
	a := upstreams.Of(w).NewAssembler(nil)
	var fin *lathe.Finish
	var err error
	if s.kind == "application/json" {
		_, fin, err = a.Complete(nil, []byte(s.body))
	} else {
		r := sse.NewReader(strings.NewReader(s.body), nil)
		for err == nil {
			var ev sse.Event
			if ev, err = r.Next(); err == nil {
				_, _ = a.Append(nil, ev.Type, ev.Data)
			}
		}
		if errors.Is(err, io.EOF) {
			fin, err = a.Finish(true)
		}
	}
	if err != nil || fin == nil {
		return nil // the answer is an error
	}
	seen := map[string]bool{}
	for _, c := range fin.Message.Calls() {
		if !seen[c.Name] && regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(c.Name) {
			seen[c.Name] = true
			names = append(names, c.Name)
		}
	}
	return names
}

// The whole answer is the sum of its stream, for the answers that vendors sent.
func TestWholeAnswerIsTheSumOfItsStream(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "recorded-streams"), "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		w := lathe.WireOpenAIChat
		if strings.HasPrefix(name, "openai__responses") {
			w = lathe.WireResponses
		}
		s := scripted{"text/event-stream", string(raw)}
		switch {
		case strings.HasPrefix(name, "openai__completion"):
			continue // of the older API, which no wire is
		case name == "llamacpp-real-glm46-error-mid-text.txt":
			continue // the stream has the text of a last attempt that the run does not keep, and cannot take it back
		case strings.HasSuffix(name, ".json"):
			s.kind = "application/json"
		case strings.HasSuffix(name, ".chunks.txt"):
			s.body = ""
			for line := range strings.Lines(string(raw)) {
				s.body += "data: " + strings.TrimSpace(line) + "\n\n"
			}
			if w == lathe.WireOpenAIChat {
				s.body += "data: [DONE]\n\n"
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameBothWays(t, w, callNames(t, w, &s), "up-model", w, func() http.RoundTripper { return s })
		})
	}
}

// It is, for every way in which the simulated servers deviate from their wire.
func TestWholeAnswerIsTheSumOfAFaultyStream(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	testdata.NeedLong(t)
	for i, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		for j, fault := range sim.FaultsOn(w) {
			if fault.Name == "hang" {
				continue // it has no answer
			}
			if !testdata.All() && j%4 != i {
				continue // another quarter on each wire
			}
			t.Run(fmt.Sprintf("%s/%s", w, fault.Name), func(t *testing.T) {
				t.Parallel()
				sameBothWays(t, w, nil, "sim/fault-"+fault.Name, w, func() http.RoundTripper { return sim.New(nil).Transport() })
			})
		}
	}
}

// ownAnswers are answers in whose two forms something was lost, or differed: texts that the vendor cut, tools that its server
// executed, calls that cannot be read.
var ownAnswers = map[string]struct {
	wire lathe.Wire
	body string
}{
	"cut text": {lathe.WireMessages, `{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"Ice melts at "},` +
		`{"type":"text","text":"0 °C","citations":[{"type":"char_location","cited_text":"0","document_index":0,"document_title":"d","start_char_index":0,"end_char_index":1}]},` +
		`{"type":"text","text":", as is known."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}`},
	"search": {lathe.WireMessages, `{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"Let me look."},` +
		`{"type":"server_tool_use","id":"srvtoolu_9","name":"web_search","input":{"query":"ice"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_9","content":[{"type":"web_search_result","url":"https://ice.example","title":"Ice","encrypted_content":"EE","page_age":null}]},` +
		`{"type":"text","text":"At 0 °C.","citations":[{"type":"web_search_result_location","url":"https://ice.example","title":"Ice","encrypted_index":"II","cited_text":"0"}]}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}`},
	"search of Responses": {lathe.WireResponses, `{"id":"resp_9","object":"response","created_at":1,"status":"completed","model":"g","output":[{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"ice"}},` +
		`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"At 0 °C.","annotations":[{"type":"url_citation","url":"https://ice.example","title":"Ice","start_index":3,"end_index":7}],"logprobs":[]}]}],` +
		`"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`},
	"sources of chat completions": {lathe.WireOpenAIChat, `{"id":"c","object":"chat.completion","created":1,"model":"g","choices":[{"index":0,"message":{"role":"assistant","content":"At 0 °C.",` +
		`"annotations":[{"type":"url_citation","url_citation":{"url":"https://ice.example","title":"Ice","start_index":3,"end_index":7}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`},
	"code of Gemini": {lathe.WireGemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"I run it."},{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},` +
		`{"text":"Two."},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7},"modelVersion":"m","responseId":"r"}`},
	"cut call": {lathe.WireOpenAIChat, `{"id":"c","object":"chat.completion","created":1,"model":"g","choices":[{"index":0,"message":{"role":"assistant","content":"ok","tool_calls":[` +
		`{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Os"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`},
	"two objects": {lathe.WireOpenAIChat, `{"id":"c","object":"chat.completion","created":1,"model":"g","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"a\"}{\"city\":\"b\"}"}},{"id":"b","type":"function","function":{"name":"weather","arguments":"{\"city\":\"c\"}"}}]},` +
		`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`},
	"text around a call": {lathe.WireMessages, `{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"First."},{"type":"tool_use","id":"t","name":"weather","input":{"city":"Oslo"}},` +
		`{"type":"text","text":"Second."}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}`},
}

func TestWholeAnswerIsTheSumOfUnusualStreams(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for name, a := range ownAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scripted{"application/json", a.body}
			sameBothWays(t, "", callNames(t, a.wire, &s), "up-model", a.wire, func() http.RoundTripper { return s })
		})
	}
}

// askOwn returns the answer to a client of a wire, with tools of the server.
func askOwn(t *testing.T, name, client string, stream bool) string {
	t.Helper()
	a := ownAnswers[name]
	m, err := provider.New(a.wire, "up-model", &provider.Options{BaseURL: "http://up.invalid", Transport: scripted{"application/json", a.body}})
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, &setting{model: m})
	c := wireClients[client]
	return c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi")).body
}

// Texts that the vendor cut within an answer are one text, and tools that its server executed stay in the answer on their wire. The
// sources of a text are given on each wire that has a form for them.
func TestAnswerKeepsTextsAndSources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer, client string
		want           []string
		never          string
	}{
		{"cut text", "chat", []string{`"content":"Ice melts at 0 °C, as is known."`}, `\n`},
		{"cut text", "responses", []string{`"text":"Ice melts at 0 °C, as is known."`}, `\n`},
		{"cut text", "gemini", []string{`"text":"Ice melts at 0 °C, as is known."`}, `\n`},
		{"cut text", "messages", []string{`{"type":"text","text":"Ice melts at "},{"type":"text","text":"0 °C","citations":[{"type":"char_location",`}, `\n`},
		{"search", "messages", []string{`"type":"server_tool_use","id":"srvtoolu_9"`, `"encrypted_content":"EE"`, `"citations":[{"type":"web_search_result_location"`, `"encrypted_index":"II"`}, `answer.`},
		{"search", "responses", []string{`"text":"Let me look.\nAt 0 °C.","annotations":[{"type":"url_citation","start_index":13,"end_index":21,"url":"https://ice.example","title":"Ice"}]`, `"answer.web_search_tool_result"`}, `server_tool_use"}`},
		{"search", "chat", []string{`"content":"Let me look.\nAt 0 °C."`, `"annotations":[{"type":"url_citation","url_citation":{"start_index":13,"end_index":21,"url":"https://ice.example","title":"Ice"}}]`}, `"EE"`},
		{"search of Responses", "responses", []string{`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"ice"}}`, `"annotations":[{"type":"url_citation","url":"https://ice.example","title":"Ice","start_index":3,"end_index":7}]`}, `answer.`},
		{"search of Responses", "messages", []string{`"citations":[{"type":"web_search_result_location","cited_text":"0 °C","url":"https://ice.example","title":"Ice","encrypted_index":""}]`, `"answer.web_search_call"`}, "ws_1"},
		{"sources of chat completions", "chat", []string{`"annotations":[{"type":"url_citation","url_citation":{"url":"https://ice.example","title":"Ice","start_index":3,"end_index":7}}]`}, `answer.`},
		{"code of Gemini", "gemini", []string{`{"executableCode":{"language":"PYTHON","code":"1+1"}}`, `"inlineData"`}, `answer.`},
		{"text around a call", "chat", []string{`"content":"First.\nSecond."`}, `First.Second`},
	} {
		body := askOwn(t, c.answer, c.client, false)
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s, %s: no %s in\n%s", c.answer, c.client, want, body)
			}
		}
		if strings.Contains(body, c.never) {
			t.Errorf("%s, %s: %s in\n%s", c.answer, c.client, c.never, body)
		}
	}
}

// A piece of a call without id, name and arguments is no call, also in the first place.
func TestEmptyPieceIsNoCall(t *testing.T) {
	t.Parallel()
	call := `{"index":%d,"id":"a","type":"function","function":{"name":"weather","arguments":"{}"}}`
	empty := `{"index":%d,"id":"","type":"function","function":{"name":"","arguments":""}}`
	for _, pieces := range [][]string{{fmt.Sprintf(call, 0), fmt.Sprintf(empty, 1)}, {fmt.Sprintf(empty, 0), fmt.Sprintf(call, 1)}} {
		stream := chunk(roleChunk, "null")
		for _, p := range pieces {
			stream += chunk(`{"tool_calls":[`+p+`]}`, "null")
		}
		stream += chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
		for name, c := range wireClients {
			for _, whole := range []bool{false, true} {
				f := serve(t, upstreamSays("text/event-stream", stream))
				a := c.ask(f, !whole, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi"))
				if calls := a.message.Calls(); len(calls) != 1 || calls[0].Name != "weather" || calls[0].Arguments != "{}" || strings.Contains(a.body, "unknown") {
					t.Errorf("%s, whole %v: %s", name, whole, a.body)
				}
			}
		}
	}
}

// Some servers end a stream with a response without output. A client that reads the last event has the items of the stream.
func TestRelayedResponseHasItsOutput(t *testing.T) {
	t.Parallel()
	item := `{"id":"msg_7","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Ice.","annotations":[],"logprobs":[]}]}`
	head := `event: response.created` + "\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_7","object":"response","created_at":7,"status":"in_progress","model":"g","output":[]}}` + "\n\n" +
		`data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_7","type":"message","role":"assistant","status":"in_progress","content":[]}}` + "\n\n" +
		`data: {"type":"response.content_part.added","sequence_number":2,"item_id":"msg_7","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}` + "\n\n" +
		`data: {"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_7","output_index":0,"content_index":0,"delta":"Ice.","logprobs":[]}` + "\n\n" +
		`data: {"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":` + item + "}\n\n"
	const last = `data: {"type": "response.completed","sequence_number":5,"response":{"id":"resp_7","object":"response","created_at":7, "status":"completed","model":"g",%s"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3},"x":1}}` + "\n\n"
	for _, output := range []string{`"output":[ ],`, `"output":null,`} {
		f, _ := relaying(t, lathe.WireResponses, head+fmt.Sprintf(last, output))
		a := wireClients["responses"].send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"store":false,"input":"hi"}`)
		if want := head + fmt.Sprintf(last, `"output":[`+item+`],`); a.body != want {
			t.Errorf("%s: got\n%s\nwant\n%s", output, a.body, want)
		}
	}
	f, _ := relaying(t, lathe.WireResponses, head+fmt.Sprintf(last, `"output":[`+item+`],`))
	a := wireClients["responses"].send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"store":false,"input":"hi"}`)
	if a.body != head+fmt.Sprintf(last, `"output":[`+item+`],`) {
		t.Errorf("a complete response was changed:\n%s", a.body)
	}
}
