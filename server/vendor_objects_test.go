package server_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// ownStreams are short answers on each wire, with an object of the vendor's account where the wire has a form for one.
var ownStreams = map[string]string{
	"chat": `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi","audio":{"id":"audio_1"}},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
	"responses": `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}

data: {"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"1","container_id":"cntr_1","outputs":[]}}

data: {"type":"response.output_item.added","sequence_number":2,"output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}

data: {"type":"response.output_text.delta","sequence_number":3,"output_index":1,"content_index":0,"item_id":"msg_1","delta":"hi"}

data: {"type":"response.output_item.done","sequence_number":4,"output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}}

data: {"type":"response.completed","sequence_number":5,"response":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"1","container_id":"cntr_1","outputs":[]},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`,
	"messages": `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":0}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","stdout":"","stderr":"","return_code":0,"content":[{"type":"code_execution_output","file_id":"file_1"}]}}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"container":{"id":"container_1","expires_at":"2026-01-01T00:00:00Z"}},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`,
	"gemini": `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"hi"},{"fileData":{"mimeType":"image/png","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}` + "\n\n",
}

// namingRequests are requests that name an object of the vendor's account. %s is the id, and more the place of further members.
var namingRequests = []struct{ wire, kind, id, body string }{
	{"chat", "file", "file-1", `{"model":"sim/demo","stream":true,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"ID"}}]}]MORE}`},
	{"chat", "audio", "audio_1", `{"model":"sim/demo","stream":true,"messages":[{"role":"assistant","content":null,"audio":{"id":"ID"}},{"role":"user","content":"x"}]MORE}`},
	{"responses", "file", "file-1", `{"model":"sim/demo","stream":true,"store":false,"input":[{"role":"user","content":[{"type":"input_file","file_id":"ID"}]}]MORE}`},
	{"responses", "container", "cntr_1", `{"model":"sim/demo","stream":true,"store":false,"input":"hi","tools":[{"type":"code_interpreter","container":"ID"}]MORE}`},
	{"responses", "vector_store", "vs_1", `{"model":"sim/demo","stream":true,"store":false,"input":"hi","tools":[{"type":"file_search","vector_store_ids":["ID"]}]MORE}`},
	{"responses", "container", "cntr_1", `{"model":"sim/demo","stream":true,"store":false,"input":"hi","tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"ID"}}]MORE}`},
	{"messages", "file", "file_1", `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"ID"}}]}]MORE}`},
	{"messages", "file", "file_1", `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"ID"},{"type":"text","text":"x"}]}]MORE}`},
	{"gemini", "file", "https://generativelanguage.googleapis.com/v1beta/files/1", `{"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"image/png","fileUri":"ID"}}]}]MORE}`},
	{"gemini", "vector_store", "fileSearchStores/1", `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"fileSearch":{"fileSearchStoreNames":["ID"]}}]MORE}`},
}

// vendorKeys are keys with and without the right to name objects.
func vendorKeys() []server.Key {
	none, all, kind, id := key("none"), key("all"), key("kind"), key("id")
	all.VendorObjects = []string{"*"}
	kind.VendorObjects = []string{"file", "audio", "container", "vector_store"}
	id.VendorObjects = []string{"file-1", "audio_1", "cntr_1", "vs_1", "file_1", "https://generativelanguage.googleapis.com/v1beta/files/1", "fileSearchStores/1"}
	return []server.Key{none, all, kind, id}
}

// upstream serves a model on the wire of a client whose server answers with its stream of ownStreams.
func upstream(t *testing.T, name string, keys []server.Key, change func(*setting)) (*fixture, *modelServer) {
	t.Helper()
	m := &modelServer{stream: ownStreams[name]}
	s := &setting{model: m.model(t, wireClients[name].codec.Wire()), opts: func(o *server.Options) {
		o.Setup.Tools, o.Setup.Keys = nil, keys
		o.Index = nil
	}, nothing: true}
	if change != nil {
		change(s)
	}
	return serve(t, s), m
}

// with returns the headers of a request with a key.
func (c *wireClient) with(name string) []string {
	before := c.codec.Vendor().KeyPrefix
	return []string{c.key, before + text(name)}
}

// A request that names an object of the vendor's account is refused unless its key has the right, on each wire, relayed and written
// anew. Nothing of it reaches the vendor.
func TestRequestsNameNoObjectsOfTheAccount(t *testing.T) { // T53
	t.Parallel()
	for _, req := range namingRequests {
		for form, more := range map[string]string{"relayed": "", "written anew": `,"lathe":{"show":"items"}`} {
			c := wireClients[req.wire]
			f, m := upstream(t, req.wire, vendorKeys(), nil)
			body := strings.NewReplacer("ID", req.id, "MORE", more).Replace(req.body)
			for _, name := range []string{"none", "all", "kind", "id"} {
				m.sent.Store(nil)
				a := c.send(t.Context(), f, true, body, c.with(name)...)
				switch {
				case name == "none" && (a.status != 403 || a.code() != "vendor_object_forbidden" && a.header.Get("X-Lathe-Error-Code") != "vendor_object_forbidden" || m.sent.Load() != nil):
					t.Errorf("%s, %s, %s: %d %s, and the vendor got %v", req.wire, form, req.kind, a.status, a.body, m.sent.Load())
				case name != "none" && a.status == 403:
					t.Errorf("%s, %s, %s of the key %s: %d %s", req.wire, form, req.kind, name, a.status, a.body)
				}
			}
		}
	}
}

// Without keys, every caller is the operator.
func TestObjectsWithoutKeys(t *testing.T) {
	t.Parallel()
	for _, req := range namingRequests {
		f, m := upstream(t, req.wire, nil, nil)
		a := wireClients[req.wire].send(t.Context(), f, true, strings.NewReplacer("ID", req.id, "MORE", "").Replace(req.body))
		if sent := m.sent.Load(); a.status != 200 || sent == nil || !strings.Contains(*sent, req.id) {
			t.Errorf("%s: %d %s", req.wire, a.status, a.body)
		}
	}
}

// What an answer to a key had, the key may name, and no other key may. Written anew, the client does not get the objects on all wires.
func TestObjectsOfAnswersMayBeNamed(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	given := map[string]string{"chat": "audio_1", "responses": "cntr_1", "messages": "file_1", "gemini": "https://generativelanguage.googleapis.com/v1beta/files/1"}
	plain := map[string]string{"chat": `{"model":"sim/demo","stream":true,"messages":[{"role":"user","content":"x"}]MORE}`,
		"responses": `{"model":"sim/demo","stream":true,"store":false,"input":"x"MORE}`,
		"messages":  `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]MORE}`,
		"gemini":    `{"contents":[{"role":"user","parts":[{"text":"x"}]}]MORE}`}
	kept := store.NewMemory(nil)
	for _, req := range namingRequests {
		if given[req.wire] != req.id {
			continue
		}
		for _, more := range []string{"", `,"lathe":{"show":"items"}`} {
			if more != "" && req.wire == "chat" {
				continue // the answer has no form for it
			}
			for _, index := range []store.RunIndex{nil, kept} {
				c := wireClients[req.wire]
				f, _ := upstream(t, req.wire, []server.Key{key("none"), key("other")}, func(s *setting) {
					if index != nil {
						s.store, s.nothing = store.NewMemory(nil), false
						s.opts = func(o *server.Options) { o.Setup.Tools, o.Setup.Keys = nil, []server.Key{key("none"), key("other")} }
					}
				})
				naming := strings.NewReplacer("ID", req.id, "MORE", "").Replace(req.body)
				if a := c.send(t.Context(), f, true, strings.Replace(plain[req.wire], "MORE", more, 1), c.with("none")...); a.status != 200 {
					t.Fatalf("%s: %d %s", req.wire, a.status, a.body)
				}
				if a := c.send(t.Context(), f, true, naming, c.with("none")...); a.status != 200 {
					t.Errorf("%s %s: the object of an answer: %d %s", req.wire, more, a.status, a.body)
				}
				if a := c.send(t.Context(), f, true, naming, c.with("other")...); a.status != 403 {
					t.Errorf("%s %s: the object of an answer to another key: %d %s", req.wire, more, a.status, a.body)
				}
			}
		}
	}
}

// A relayed request may refer to items of answers to its key alone.
func TestReferencesToItemsOfTheVendor(t *testing.T) {
	t.Parallel()
	c := wireClients["responses"]
	f, _ := upstream(t, "responses", []server.Key{key("none"), key("other")}, nil)
	const refers = `{"model":"sim/demo","stream":true,"store":false,"input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`
	if a := c.send(t.Context(), f, true, refers, c.with("none")...); a.status != 403 {
		t.Errorf("an item of no answer: %d %s", a.status, a.body)
	}
	c.send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"store":false,"input":"x"}`, c.with("none")...)
	for name, want := range map[string]int{"none": 200, "other": 403} {
		if a := c.send(t.Context(), f, true, refers, c.with(name)...); a.status != want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// The other entry points that take content for a model refuse it, too.
func TestContentOfRunsNamesNoObjects(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = vendorKeys() }})
	for _, req := range []struct{ path, body string }{
		{"/api/runs", `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`},
		{"/api/chat", `{"id":"c1","model":"sim/demo","messages":[{"id":"m1","role":"user","parts":[{"type":"file","mediaType":"image/png","url":"https://generativelanguage.googleapis.com/v1beta/files/1"},{"type":"text","text":"x"}]}]}`},
		{"/v1/messages/count_tokens", `{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file-1"}}]}]}`},
		{"/v1/responses/input_tokens", `{"model":"sim/demo","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`},
		{"/v1/responses/compact", `{"model":"sim/demo","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`},
		{"/v1beta/models/sim/demo:countTokens", `{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"files/1"}}]}]}`},
	} {
		if resp, body := f.do("POST", req.path, req.body); resp.StatusCode != 403 || !strings.Contains(body, "vendor") {
			t.Errorf("%s: %d %s", req.path, resp.StatusCode, body)
		}
		if resp, body := f.do("POST", req.path, req.body, "Authorization", "Bearer "+text("all")); resp.StatusCode == 403 {
			t.Errorf("%s with the right: %d %s", req.path, resp.StatusCode, body)
		}
	}
}

// Tools that the vendor executes are removed from the requests of keys without the right, and listed. A choice that forces one is
// refused. Keys without the setting use all.
func TestVendorToolsNeedARight(t *testing.T) {
	t.Parallel()
	none, some, unset := key("none"), key("some"), key("unset")
	none.VendorTools, some.VendorTools = []string{}, []string{"web_search", "google_search"}
	for _, req := range []struct{ wire, tool, ignored, body, choice string }{
		{"responses", "web_search", "tools.web_search", `{"model":"sim/demo","stream":true,"store":false,"input":"x","tools":[{"type":"web_search"}]MORE}`, `,"tool_choice":{"type":"web_search"}`},
		{"messages", "web_search_20250305", "tools.web_search_20250305", `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]MORE}`,
			`,"tool_choice":{"type":"tool","name":"web_search"}`},
		{"gemini", "googleSearch", "tools.googleSearch", `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"googleSearch":{}}]MORE}`, `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`},
		{"chat", "web_search_options", "web_search_options", `{"model":"sim/demo","stream":true,"messages":[{"role":"user","content":"x"}],"web_search_options":{}MORE}`, ""},
	} {
		for form, more := range map[string]string{"relayed": "", "written anew": `,"lathe":{"show":"items"}`} {
			c := wireClients[req.wire]
			f, m := upstream(t, req.wire, []server.Key{none, some, unset}, func(s *setting) { s.pass = []string{"web_search_options"} })
			for _, name := range []string{"none", "some", "unset"} {
				a := c.send(t.Context(), f, true, strings.Replace(req.body, "MORE", more, 1), c.with(name)...)
				listed := slices.Contains(a.header.Values("X-Lathe-Ignored"), req.ignored)
				if got := strings.Contains(*m.sent.Load(), req.tool); a.status != 200 || got != (name != "none") && (req.wire != "chat" || form == "relayed") || listed != (name == "none") {
					t.Errorf("%s, %s, %s: %d, listed %t, the vendor got %s", req.wire, form, name, a.status, listed, *m.sent.Load())
				}
				if req.choice == "" {
					continue
				}
				if a := c.send(t.Context(), f, true, strings.Replace(req.body, "MORE", more+req.choice, 1), c.with(name)...); (a.status == http.StatusForbidden) != (name == "none") {
					t.Errorf("%s, %s, %s: forced: %d %s", req.wire, form, name, a.status, a.body)
				}
			}
		}
	}
}

// A request has no servers of its client's choice for the vendor to connect to, neither in its tools nor in items of its input, and
// whatever the entry point. A key without the right for them has them removed, as other tools of the vendor.
func TestRequestsNameNoServers(t *testing.T) {
	t.Parallel()
	const mcp = `{"type":"mcp","server_label":"s","server_url":"https://example.com"}`
	none := key("none")
	none.VendorTools = []string{}
	items := map[string]string{
		"additional tools":    `{"type":"additional_tools","role":"developer","tools":[` + mcp + `]}`,
		"a search of clients": `{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{}},{"type":"tool_search_output","call_id":"c","execution":"client","tools":[` + mcp + `]}`,
		"a search of vendors": `{"type":"tool_search_output","call_id":null,"execution":"server","tools":[` + mcp + `]}`,
		"another item":        `{"type":"x_item","tools":[` + mcp + `]}`,
	}
	c := wireClients["responses"]
	for _, more := range []string{"", `,"lathe":{"show":"items"}`, `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`} {
		const tools = `,"tools":[{"type":"function","name":"f"}`
		f, m := upstream(t, "responses", []server.Key{key("unset"), none}, nil)
		a := c.send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"store":false,"input":"x"`+tools+`,`+mcp+`]`+more+`}`, c.with("unset")...)
		if a.status != 400 || m.sent.Load() != nil {
			t.Errorf("tools%s: %d %s", more, a.status, a.body)
		}
		for name, item := range items {
			body := `{"model":"sim/demo","stream":true,"store":false,"input":[` + item + `,{"role":"user","content":"x"}]` + tools + `]` + more + `}`
			if a := c.send(t.Context(), f, true, body, c.with("unset")...); a.status != 400 || m.sent.Load() != nil {
				t.Errorf("%s%s: %d %s", name, more, a.status, a.body)
			}
			a := c.send(t.Context(), f, true, body, c.with("none")...)
			sent := m.sent.Swap(nil)
			if a.status != 200 || sent == nil || strings.Contains(*sent, "example.com") || !slices.Contains(a.header.Values("X-Lathe-Ignored"), "tools.mcp") {
				t.Errorf("%s%s, without the right: %d %s\n%v", name, more, a.status, a.body, sent)
			}
		}
	}
	f, m := upstream(t, "responses", []server.Key{key("unset")}, nil)
	for _, path := range []string{"/v1/responses/input_tokens", "/v1/responses/compact"} {
		resp, body := f.do("POST", path, `{"model":"sim/demo","input":[`+items["a search of vendors"]+`,{"role":"user","content":"x"}]}`, c.with("unset")...)
		if resp.StatusCode != 400 || m.sent.Load() != nil {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// A tool of the vendor in an item of the input is in the request once: where the client put it.
func TestVendorToolsOfItemsAreSentOnce(t *testing.T) {
	t.Parallel()
	c := wireClients["responses"]
	f, m := upstream(t, "responses", nil, nil)
	a := c.send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"store":false,"lathe":{"show":"items"},"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],`+
		`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}]},{"role":"user","content":"x"}],"tool_choice":{"type":"web_search"}}`)
	if a.status != 400 || !strings.Contains(a.body, "choice of this type") { // the internal form has no such choice
		t.Errorf("%d %s", a.status, a.body)
	}
	a = c.send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"store":false,"lathe":{"show":"items"},"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],`+
		`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}]},{"role":"user","content":"x"}]}`)
	if sent := *m.sent.Load(); a.status != 200 || strings.Count(sent, "web_search") != 1 || !strings.Contains(sent, "code_interpreter") {
		t.Errorf("%d %s\nsent %s", a.status, a.body, sent)
	}
}

// A gate is a model server that answers when the test lets it.
type gate struct {
	modelServer
	entered, release chan struct{}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.entered <- struct{}{}
	<-g.release
	return g.modelServer.RoundTrip(r)
}

// What an answer to a key had, the key may name, however the run of the answer was begun and whether its client waited for the end.
func TestObjectsOfEveryRunMayBeNamed(t *testing.T) {
	t.Parallel()
	const naming = `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}},{"type":"text","text":"x"}]}]}`
	c := wireClients["messages"]
	for way, begin := range map[string]func(h *runFixture, g *gate){
		"a run": func(h *runFixture, _ *gate) { h.rest(h.begin("x").ID) },
		"a chat page": func(h *runFixture, _ *gate) {
			if resp, body := h.do("POST", "/api/chat", `{"id":"c1","model":"sim/demo","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"x"}]}]}`); resp.StatusCode != 200 {
				h.t.Errorf("%d %s", resp.StatusCode, body)
			}
		},
		"a client that leaves": func(h *runFixture, g *gate) {
			ctx, leave := context.WithCancel(h.t.Context())
			a := make(chan *wireAnswer, 1)
			go func() {
				a <- c.send(ctx, h.fixture, true, `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}],"lathe":{"detach":true}}`)
			}()
			<-g.entered
			leave()
			<-a
			h.idle()
			g.release <- struct{}{}
			h.crew.Drain(h.t.Context())
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			g := &gate{modelServer{stream: ownStreams["messages"]}, make(chan struct{}, 9), make(chan struct{}, 9)}
			model, err := provider.New(lathe.WireMessages, "up-model", &provider.Options{Name: "up", BaseURL: "http://up.invalid", Transport: g, Retry: provider.Retry{Attempts: 1}})
			if err != nil {
				t.Fatal(err)
			}
			h := &runFixture{fixture: serve(t, &setting{model: model, opts: func(o *server.Options) { o.Setup.Tools, o.Setup.Keys = nil, []server.Key{key("none")} }})}
			if way != "a client that leaves" {
				g.release <- struct{}{}
			}
			begin(h, g)
			g.release <- struct{}{}
			if a := c.send(t.Context(), h.fixture, true, naming); a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}
