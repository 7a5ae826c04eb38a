package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
)

// okStreams are answers of a model's server on each wire whose text is "ok".
var okStreams = map[lathe.Wire]string{
	lathe.WireOpenAIChat: `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}

data: [DONE]

`,
	lathe.WireResponses: `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_up","object":"response","status":"in_progress","model":"m","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}}

event: response.completed
data: {"type":"response.completed","sequence_number":3,"response":{"id":"resp_up","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`,
	lathe.WireMessages: `event: message_start
data: {"type":"message_start","message":{"id":"msg_up","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`,
	lathe.WireGemini: `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}

`,
}

// modelOn serves a model of wire w, without tools of the server.
func modelOn(t *testing.T, w lathe.Wire, opts provider.Options) (*fixture, *modelServer) {
	t.Helper()
	m := &modelServer{stream: okStreams[w]}
	opts.Name, opts.BaseURL, opts.Transport, opts.Entry = "up", "http://up.invalid", m, "entry"
	model, err := provider.New(w, "up-model", &opts)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, &setting{model: model, opts: func(o *server.Options) { o.Setup.Tools = nil }}), m
}

// sentMessages returns the conversation in the last request to the model's server; "" if there was no request.
func (m *modelServer) sentMessages(t *testing.T) string {
	t.Helper()
	body := m.sent.Load()
	if body == nil {
		return ""
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(*body), &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"messages", "input", "contents"} {
		if raw, ok := members[name]; ok {
			return string(raw)
		}
	}
	return *body
}

const (
	audioData = `"UklGRg=="`
	chatHead  = `{"model":"sim/demo","messages":`
	respHead  = `{"model":"sim/demo","store":false,"input":`
	msgHead   = `{"model":"sim/demo","max_tokens":9,"messages":`
)

// Content that the wire of the model has no form for is refused with its place in the client's own request.
func TestContentWithoutAFormIsRefusedByItsPlace(t *testing.T) {
	t.Parallel()
	audio := `{"type":"input_audio","input_audio":{"data":` + audioData + `,"format":"mp3"}}`
	for name, tt := range map[string]struct {
		client string
		model  lathe.Wire
		body   string
		param  string
		typ    string
	}{
		"audio, chat to Messages": {"chat", lathe.WireMessages, chatHead + `[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"What is said?"},` + audio + `]}]}`,
			"messages[1].content[1]", "audio/mpeg"},
		"audio alone, chat to Responses": {"chat", lathe.WireResponses, chatHead + `[{"role":"user","content":[{"type":"text","text":""},` + audio + `]}]}`,
			"messages[0].content[1]", "audio/mpeg"},
		"video by address, chat to Messages": {"chat", lathe.WireMessages, chatHead + `[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://a.example/v.mp4"}}]}]}`,
			"messages[0].content[0]", "video"},
		"image of another store, chat to Messages": {"chat", lathe.WireMessages, chatHead + `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"gs://b/i.png"}}]}]}`,
			"messages[0].content[0]", "image by reference"},
		"file by id, Responses to chat": {"responses", lathe.WireOpenAIChat, respHead + `[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},` +
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"r"}]},{"role":"user","content":[{"type":"input_text","text":"c"},{"type":"input_file","file_id":"file-1"}]}]}`,
			"input[3].content[1]", "by reference"},
		"image by id, Responses to Messages": {"responses", lathe.WireMessages, respHead + `[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]}`,
			"input[0].content[0]", "image"},
		"part of an unknown type, Responses to Gemini": {"responses", lathe.WireGemini, respHead + `[{"role":"user","content":[{"type":"input_text","text":"c"},{"type":"input_hologram","x":1}]}]}`,
			"input[0].content[1]", "input_hologram"},
		"file of the vendor, Messages to chat": {"messages", lathe.WireOpenAIChat, msgHead + `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"file","file_id":"f"}}]}]}`,
			"messages[0].content[1]", "document"},
		"video, Gemini to chat": {"gemini", lathe.WireOpenAIChat, `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"role":"user","parts":[{"inlineData":{"mimeType":"video/mp4","data":"AAAA"}}]}]}`,
			"contents[2].parts[0]", "video/mp4"},
		"audio, Gemini to Messages": {"gemini", lathe.WireMessages, `{"contents":[{"role":"user","parts":[{"text":"a"},{"inline_data":{"mime_type":"audio/wav","data":"AAAA"}}]}]}`,
			"contents[0].parts[1]", "audio/wav"},
		"audio in a later system message, chat to Messages": {"chat", lathe.WireMessages, chatHead + `[{"role":"user","content":"a"},{"role":"system","content":[{"type":"text","text":"s"},` + audio + `]}]}`,
			"messages[1].content[1]", "audio/mpeg"},
		"image in the first system message, chat to Messages": {"chat", lathe.WireMessages, chatHead + `[{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://a.example/i.png"}}]},{"role":"user","content":"a"}]}`,
			"messages[0].content[0]", "image"},
		"unknown item, Responses to chat": {"responses", lathe.WireOpenAIChat, respHead + `[{"role":"user","content":"one"},{"type":"x_unknown"},{"role":"user","content":"two"}]}`,
			"input[1]", "x_unknown"},
		"unknown item, Responses to Messages": {"responses", lathe.WireMessages, respHead + `[{"role":"user","content":"one"},{"type":"x_unknown"},{"role":"user","content":"two"}]}`,
			"input[1]", "x_unknown"},
		"compaction of another server, Responses to Gemini": {"responses", lathe.WireGemini, respHead + `[{"type":"compaction","encrypted_content":"AAAA"},{"role":"user","content":"two"}]}`,
			"input[0]", "compaction"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, up := modelOn(t, tt.model, provider.Options{})
			a := wireClients[tt.client].send(t.Context(), f, false, tt.body)
			if a.status != http.StatusBadRequest || !strings.Contains(a.body, tt.param) || !strings.Contains(a.body, tt.typ) {
				t.Errorf("status %d, want 400 that names %s and %s:\n%s", a.status, tt.param, tt.typ, a.body)
			}
			if up.sent.Load() != nil {
				t.Errorf("the model's server got %s", *up.sent.Load())
			}
		})
	}
}

// A system message that is sent as a message of the user may have what such a message has.
func TestLaterSystemMessagesMayHaveImages(t *testing.T) {
	t.Parallel()
	for client, body := range map[string]string{
		"chat":      chatHead + `[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"ROLE","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		"responses": respHead + `[{"role":"user","content":"a"},{"role":"ROLE","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]}`,
	} {
		for _, role := range []string{"system", "developer"} {
			for _, w := range []lathe.Wire{lathe.WireMessages, lathe.WireGemini} {
				f, up := modelOn(t, w, provider.Options{})
				a := wireClients[client].send(t.Context(), f, false, strings.Replace(body, "ROLE", role, 1))
				if sent := up.sentMessages(t); a.status != http.StatusOK || !strings.Contains(sent, "AAAA") || !strings.Contains(sent, `\u003csystem\u003e\nlook`) && !strings.Contains(sent, `<system>\nlook`) {
					t.Errorf("%s, %s to %s: status %d, sent %s\n%s", client, role, w, a.status, sent, a.body)
				}
			}
		}
	}
}

// What is left out of messages that are sent as one has the place that the client gave it, also if the server puts messages in front.
func TestPlacesOfJoinedMessages(t *testing.T) {
	t.Parallel()
	const marked = `{"role":"user","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"url","url":"https://a.example/i.png"}}]}`
	for name, tt := range map[string]struct {
		client, body string
		dropped      []string
	}{
		"two messages of the user": {"responses", respHead + `[{"role":"user","content":"a"},{"role":"user","content":[{"type":"input_text","text":"b","x_mark":1},{"type":"input_image","image_url":"data:image/png;base64,AAAA","x_mark":1}]}],"lathe":{"show":"hidden"}}`,
			[]string{"input[1].content[0].x_mark", "input[1].content[1].raw"}},
		"a system message between them": {"messages", msgHead + `[{"role":"user","content":"a"},{"role":"system","content":"s"},` + marked + `]}`, []string{"messages[1].role", "messages[2].content[0].cache_control"}},
	} {
		m := &modelServer{stream: okStreams[lathe.WireOpenAIChat]}
		model, err := provider.New(lathe.WireOpenAIChat, "m", &provider.Options{BaseURL: "http://up.invalid", Transport: m, Server: provider.Server{Kind: "vllm"}, Entry: "entry"})
		if err != nil {
			t.Fatal(err)
		}
		f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Setup.Tools = nil }})
		a := wireClients[tt.client].send(t.Context(), f, false, tt.body)
		for _, path := range tt.dropped {
			if !strings.Contains(a.body, `"`+path+`"`) {
				t.Errorf("%s: status %d, %s is not listed:\n%s\nsent %s", name, a.status, path, a.body, m.sentMessages(t))
			}
		}
	}
}

// A continued response has the messages of the earlier one in front: the places are those of the client's own request.
func TestPlacesBehindEarlierMessages(t *testing.T) {
	t.Parallel()
	f, _ := modelOn(t, lathe.WireMessages, provider.Options{})
	c := wireClients["responses"]
	const image = `{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`
	first := c.send(t.Context(), f, false, `{"model":"sim/demo","input":[`+image+`]}`)
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(first.body), &answer); err != nil || answer.ID == "" {
		t.Fatalf("%v: %s", err, first.body)
	}
	a := c.send(t.Context(), f, false, `{"model":"sim/demo","previous_response_id":"`+answer.ID+`","input":[{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}}]}]}`)
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, `"input[0].content[1]"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = c.send(t.Context(), f, false, `{"model":"sim/demo","previous_response_id":"`+answer.ID+`","input":[{"role":"user","content":[{"type":"input_text","text":"look","x_mark":1}]}]}`)
	if a.status != http.StatusOK || !strings.Contains(a.body, `"input[0].content[0].x_mark"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The same content in a message before the last answer does not end the conversation: a marker stands for it, and it is listed.
func TestOldContentWithoutAFormIsMarkedAndListed(t *testing.T) {
	t.Parallel()
	const body = chatHead + `[{"role":"user","content":[{"type":"text","text":"What is said?"},{"type":"input_audio","input_audio":{"data":` + audioData + `,"format":"mp3"}}]},` +
		`{"role":"assistant","content":"Hello."},{"role":"user","content":"And then?"}]}`
	for _, w := range []lathe.Wire{lathe.WireResponses, lathe.WireMessages} {
		f, up := modelOn(t, w, provider.Options{Server: provider.Server{ContentMarker: "<{type} is gone>"}})
		a := wireClients["chat"].send(t.Context(), f, false, body)
		if got := a.header.Values("X-Lathe-Dropped"); a.status != http.StatusOK || !slices.Equal(got, []string{"messages[0].content[1]"}) {
			t.Errorf("%s: status %d, X-Lathe-Dropped %q:\n%s", w, a.status, got, a.body)
		}
		if !strings.Contains(a.body, `"dropped":["messages[0].content[1]"]`) {
			t.Errorf("%s: lathe.dropped does not have the place:\n%s", w, a.body)
		}
		if sent := up.sentMessages(t); !strings.Contains(sent, "audio/mpeg is gone") || !strings.Contains(sent, "What is said?") {
			t.Errorf("%s: the model's server got %s", w, sent)
		}
	}
}

// With unsupported_content: drop the content is left out and listed; a message that would be empty has the marker.
func TestUnsupportedContentIsDroppedIfTheEntrySaysSo(t *testing.T) {
	t.Parallel()
	const audio = `{"type":"input_audio","input_audio":{"data":` + audioData + `,"format":"mp3"}}`
	f, up := modelOn(t, lathe.WireMessages, provider.Options{Server: provider.Server{DropContent: true}})
	a := wireClients["chat"].send(t.Context(), f, true, chatHead+`[{"role":"user","content":[`+audio+`,{"type":"text","text":"What is said?"}]}],"stream":true}`)
	if got := a.header.Values("X-Lathe-Dropped"); a.status != http.StatusOK || !slices.Equal(got, []string{"messages[0].content[0]"}) {
		t.Errorf("status %d, X-Lathe-Dropped %q:\n%s", a.status, got, a.body)
	}
	if sent := up.sentMessages(t); sent != `[{"role":"user","content":[{"type":"text","text":"What is said?"}]}]` {
		t.Errorf("the model's server got %s", sent)
	}
	wireClients["chat"].send(t.Context(), f, false, chatHead+`[{"role":"user","content":[{"type":"text","text":""},`+audio+`]}]}`)
	if sent := up.sentMessages(t); !strings.Contains(sent, "[audio/mpeg: not sent") || strings.Contains(sent, "The conversation begins") {
		t.Errorf("the model's server got %s", sent)
	}
}

// Documents of text reach every wire as text.
func TestDocumentsOfTextAreSentAsText(t *testing.T) {
	t.Parallel()
	const csv = "YSxiCjEsMg==" // a,b and 1,2
	for name, tt := range map[string]struct {
		client string
		model  lathe.Wire
		body   string
	}{
		"CSV, Responses to Messages":          {"responses", lathe.WireMessages, respHead + `[{"role":"user","content":[{"type":"input_file","filename":"t.csv","file_data":"data:text/csv;base64,` + csv + `"}]}]}`},
		"CSV, Responses to chat":              {"responses", lathe.WireOpenAIChat, respHead + `[{"role":"user","content":[{"type":"input_file","filename":"t.csv","file_data":"data:text/csv;base64,` + csv + `"}]}]}`},
		"notes.md as bytes, chat to Messages": {"chat", lathe.WireMessages, chatHead + `[{"role":"user","content":[{"type":"file","file":{"filename":"notes.md","file_data":"data:application/octet-stream;base64,` + csv + `"}}]}]}`},
		"JSON, Gemini to Messages":            {"gemini", lathe.WireMessages, `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"application/json","data":"` + csv + `"}}]}]}`},
		"text, Messages to chat":              {"messages", lathe.WireOpenAIChat, msgHead + `[{"role":"user","content":[{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"a,b\n1,2"}}]}]}`},
	} {
		f, up := modelOn(t, tt.model, provider.Options{})
		a := wireClients[tt.client].send(t.Context(), f, false, tt.body)
		if sent := up.sentMessages(t); a.status != http.StatusOK || !strings.Contains(sent, `a,b\n1,2`) || strings.Contains(sent, "base64") {
			t.Errorf("%s: status %d, the model's server got %s\n%s", name, a.status, sent, a.body)
		}
	}
}

// The other entry points refuse the same content: runs, chat pages, and the library with a *lathe.Error.
func TestEveryEntryPointRefusesContentWithoutAForm(t *testing.T) {
	t.Parallel()
	f, up := modelOn(t, lathe.WireMessages, provider.Options{})
	post := func(path, body string) (int, string) {
		t.Helper()
		resp, err := f.client.Post(f.url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if status, body := post("/api/runs", `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":`+audioData+`,"format":"wav"}}]}]}`); status != 400 || !strings.Contains(body, "messages[0].content[0]") {
		t.Errorf("run: %d %s", status, body)
	}
	if status, body := post("/api/chat", `{"id":"c","model":"sim/demo","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"a"},{"type":"file","mediaType":"audio/wav","url":"data:audio/wav;base64,AAAA"}]}]}`); status != 400 || !strings.Contains(body, "messages[0].parts[1]") {
		t.Errorf("chat page: %d %s", status, body)
	}
	if up.sent.Load() != nil {
		t.Errorf("the model's server got %s", *up.sent.Load())
	}
	model := up.model(t, lathe.WireMessages)
	request := &lathe.Request{Messages: []lathe.Message{lathe.User("a"), {Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Blob{MediaType: "audio/wav", Data: []byte("x")}}}}}
	for _, err := range model.Generate(t.Context(), request) {
		if lathe.CodeOf(err) != lathe.CodeInvalidRequest || !strings.Contains(err.Error(), "messages[1].parts[0]") {
			t.Errorf("library: %v", err)
		}
	}
}

// Items of Responses that a model has no form for never become an empty message: what a vendor's server did is left out, calls of the
// client's own tools reach the model with their output.
func TestItemsWithoutAFormInventNoMessage(t *testing.T) {
	t.Parallel()
	const one, two = `{"role":"user","content":"one"},`, `,{"role":"user","content":"two"}`
	for name, tt := range map[string]struct{ items, has string }{
		"web search":   {`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`, ""},
		"image":        {`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"AAAA"}`, ""},
		"unknown, old": {`{"type":"x_unknown"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"said"}]}`, "said"},
		"local shell": {`{"type":"local_shell_call","id":"lsh_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}},` +
			`{"type":"local_shell_call_output","call_id":"c1","output":"SHELL-OUT"}`, "SHELL-OUT"},
		"local shell beside a function": {`{"type":"local_shell_call","call_id":"c1","action":{"type":"exec","command":["ls"]}},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c2","output":"F-OUT"},{"type":"local_shell_call_output","call_id":"c1","output":"SHELL-OUT"}`, "SHELL-OUT"},
		"shell":                       {`{"type":"shell_call","call_id":"c1","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"c1","output":[{"stdout":"SHELL-OUT","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`, "SHELL-OUT"},
		"patch":                       {`{"type":"apply_patch_call","call_id":"c1","operation":{"type":"update_file","path":"p","diff":"d"}},{"type":"apply_patch_call_output","call_id":"c1","status":"failed","output":"PATCH-OUT"}`, "PATCH-OUT"},
		"reasoning of another server": {`{"type":"reasoning","id":"rs_1","encrypted_content":"AAAA","summary":[]}`, ""},
	} {
		for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireMessages, lathe.WireGemini} {
			f, up := modelOn(t, w, provider.Options{})
			a := wireClients["responses"].send(t.Context(), f, false, respHead+`[`+one+tt.items+two+`]}`)
			sent := up.sentMessages(t)
			if a.status != http.StatusOK || !strings.Contains(sent, tt.has) || strings.Contains(sent, `"content":""`) || strings.Contains(sent, `"content":[]`) ||
				strings.Contains(sent, `"parts":[]`) || strings.Contains(sent, wire.ItemMember) {
				t.Errorf("%s, %s: status %d, the model's server got %s\n%s", name, w, a.status, sent, a.body)
			}
			if tt.has == "" && !slices.Equal(a.header.Values("X-Lathe-Dropped"), []string{"input[1]"}) {
				t.Errorf("%s, %s: X-Lathe-Dropped is %q", name, w, a.header.Values("X-Lathe-Dropped"))
			}
			if strings.Contains(a.body, wire.ItemMember) {
				t.Errorf("%s, %s: the answer is %s", name, w, a.body)
			}
		}
	}
	f, _ := modelOn(t, lathe.WireOpenAIChat, provider.Options{})
	a := wireClients["responses"].send(t.Context(), f, false, respHead+`[`+one+`{"type":"local_shell_call_output","call_id":"c9","output":"x"}`+two+`]}`)
	if a.status != http.StatusBadRequest || !strings.Contains(a.body, "input[1].call_id") {
		t.Errorf("an output without its call: %d %s", a.status, a.body)
	}
}

// Tools that items or blocks of the conversation bring reach the model on every wire, and a call to one is the client's.
func TestToolsWithinTheConversationReachTheModel(t *testing.T) {
	t.Parallel()
	const late = `{"type":"function","name":"late","description":"d","parameters":{"type":"object","properties":{}}}`
	for name, tt := range map[string]struct{ client, body string }{
		"additional_tools": {"responses", respHead + `[{"role":"user","content":"one"},{"type":"additional_tools","role":"developer","tools":[` + late + `]},{"role":"user","content":"two"}]}`},
		"tool search of the client": {"responses", respHead + `[{"role":"user","content":"one"},{"type":"tool_search_call","call_id":"s1","execution":"client","arguments":{"query":"q"},"status":"completed"},` +
			`{"type":"tool_search_output","call_id":"s1","execution":"client","tools":[` + late + `]}]}`},
		"tool_addition": {"messages", msgHead + `[{"role":"user","content":"one"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"late","description":"d","input_schema":{"type":"object","properties":{}}}}}]},{"role":"user","content":"two"}],` +
			`"tools":[{"name":"first","input_schema":{"type":"object","properties":{}}}]}`},
	} {
		for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireMessages, lathe.WireGemini, lathe.WireResponses} {
			f, up := modelOn(t, w, provider.Options{})
			a := wireClients[tt.client].send(t.Context(), f, false, tt.body)
			sent := ""
			if p := up.sent.Load(); p != nil {
				sent = *p
			}
			if a.status != http.StatusOK || strings.Count(sent, `"name":"late"`) != 1 || strings.Contains(sent, `"content":""`) {
				t.Errorf("%s, %s: status %d, the model's server got %s\n%s", name, w, a.status, sent, a.body)
			}
		}
	}
	// The first item of a request may declare the tools: the instructions behind it are still the first message of the system.
	lite := respHead + `[{"type":"additional_tools","role":"developer","tools":[` + late + `]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"INSTRUCTIONS"}]},{"role":"user","content":"hi"}]}`
	for w, want := range map[lathe.Wire]string{lathe.WireOpenAIChat: `{"role":"system","content":"INSTRUCTIONS"}`, lathe.WireMessages: `"system":[{"type":"text","text":"INSTRUCTIONS"}]`,
		lathe.WireGemini: `"systemInstruction":{"parts":[{"text":"INSTRUCTIONS"}]}`} {
		f, up := modelOn(t, w, provider.Options{Server: provider.Server{Kind: "vllm"}})
		wireClients["responses"].send(t.Context(), f, false, lite)
		if sent := up.sent.Load(); sent == nil || !strings.Contains(*sent, want) || strings.Contains(*sent, "<system>") || strings.Contains(*sent, `u003csystem`) {
			t.Errorf("%s: the model's server got %s, without %s", w, *sent, want)
		}
	}
	f, up := modelOn(t, lathe.WireOpenAIChat, provider.Options{})
	wireClients["messages"].send(t.Context(), f, false, msgHead+`[{"role":"user","content":"one"},{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"gone"}}]},{"role":"user","content":"two"}],`+
		`"tools":[{"name":"first","input_schema":{"type":"object"}},{"name":"gone","input_schema":{"type":"object"}}]}`)
	if sent := *up.sent.Load(); strings.Contains(sent, "gone") || !strings.Contains(sent, "first") {
		t.Errorf("with a removed tool the model's server got %s", sent)
	}
}

// A tool of the vendor in an item of the input, which another model does not have, is listed by its place.
func TestIgnoredToolsOfItemsAreListedByTheirPlace(t *testing.T) {
	t.Parallel()
	f, _ := modelOn(t, lathe.WireOpenAIChat, provider.Options{})
	a := wireClients["responses"].send(t.Context(), f, false, respHead+`[{"role":"user","content":"one"},{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"web_search"}]}],`+
		`"tools":[{"type":"image_generation"}]}`)
	if got, want := a.header.Values("X-Lathe-Ignored"), []string{"tools.image_generation", "input[1].tools[1].web_search"}; a.status != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("status %d, X-Lathe-Ignored is %q, want %q", a.status, got, want)
	}
}

// A scriptedServer is a model's server of chat completions that answers the n-th request with the n-th answer, and keeps the requests.
type scriptedServer struct {
	answers []string
	sent    []string
}

func (m *scriptedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m.sent = append(m.sent, string(b))
	answer := m.answers[min(len(m.sent), len(m.answers))-1]
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// serve serves a model whose server is m, without tools of the server.
func (m *scriptedServer) serve(t *testing.T) *fixture {
	t.Helper()
	model, err := provider.OpenAI("up-model", &provider.Options{Name: "up", BaseURL: "http://up.invalid", Transport: m, Entry: "entry"})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, &setting{model: model, opts: func(o *server.Options) { o.Setup.Tools = nil }})
}

// callStream is a stream of chat completions with one call.
func callStream(name, arguments string) string {
	raw, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "choices": []any{map[string]any{"index": 0, "finish_reason": "tool_calls",
		"delta": map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": "c1", "type": "function", "function": map[string]string{"name": name, "arguments": arguments}}}}}}})
	return "data: " + string(raw) + "\n\ndata: [DONE]\n\n"
}
