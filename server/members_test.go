package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
)

// Members inside messages, parts, tools and calls that Lathe does not know reach the model server byte for byte.
func TestUnknownMembersInsideReachTheModel(t *testing.T) {
	t.Parallel()
	body := `{"model":"sim/demo","messages":[` +
		`{"role":"system","content":[{"type":"text","text":"Be brief.","cache_control": {"type" : "ephemeral"}}]},` +
		`{"role":"user","content":[{"type":"text","text":"a","prompt_cache_breakpoint":1e2},{"type":"text","text":"b"}],"m1": [ 1 ]},` +
		`{"role":"assistant","content":null,"reasoning_details":[{"type":"x","data":"\u0041"}],"tool_calls":[{"id":"c1","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"weather","arguments":"{}","f1":1.50}}]},` +
		`{"role":"tool","tool_call_id":"c1","t1":{"a": 1},"content":[{"type":"text","text":"sunny","cache_control":{"ttl":"1h"}}]},` +
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example/a.png","i1":7},"p1":true}]}],` +
		`"tools":[{"type":"function","defer_loading":true,"cache_control":{"type":"ephemeral"},"function":{"name":"weather","strict":true,"parameters":{"type":"object"},"g1":[ "x" ]}}]}`
	for name, set := range map[string]*setting{"with tools": {model: nil}, "relayed": {opts: func(o *server.Options) { o.Setup.Tools = nil }}} {
		f := serve(t, set)
		if resp, answer := f.do("POST", "/v1/chat/completions", body); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", name, resp.StatusCode, answer)
		}
		sent := f.seen.all()[0]
		for _, want := range []string{`"cache_control": {"type" : "ephemeral"}`, `"prompt_cache_breakpoint":1e2`, `"m1": [ 1 ]`, `"reasoning_details":[{"type":"x","data":"\u0041"}]`,
			`"extra_content":{"google":{"thought_signature":"s"}}`, `"f1":1.50`, `"t1":{"a": 1}`, `"cache_control":{"ttl":"1h"}`, `"i1":7`, `"p1":true`,
			`"defer_loading":true`, `"strict":true`, `"g1":[ "x" ]`} {
			if !strings.Contains(strings.ReplaceAll(sent, `": `, `":`), strings.ReplaceAll(want, `": `, `":`)) {
				t.Errorf("%s: %s does not reach the model server: %s", name, want, sent)
			}
		}
		var got struct {
			Messages []json.RawMessage
			Tools    []struct {
				DeferLoading bool `json:"defer_loading"`
				Function     struct{ Strict bool }
			}
		}
		if err := json.Unmarshal([]byte(sent), &got); err != nil || !slices.ContainsFunc(got.Tools, func(x struct {
			DeferLoading bool `json:"defer_loading"`
			Function     struct{ Strict bool }
		}) bool {
			return x.DeferLoading && x.Function.Strict
		}) {
			t.Errorf("%s: %v, tools %+v", name, err, got.Tools)
		}
	}
}

// A member that differs from one that is read in the case or the form of its letters only is refused, wherever it is read.
func TestSecondSpellingsAreRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	ok := `{"model":"sim/demo","messages":[{"role":"user","content":"hi"}]`
	for _, body := range []string{
		ok + `,"Model":"other"}`,
		ok + `,"Tools":[]}`,
		ok + `,"Messages":[]}`,
		ok + `,"MODEL":"x","Model":"y"}`,
		ok + `,"ſtore":true}`,
		ok + `,"\u017ftore":true}`,
		ok + `,"toolſ":[]}`,
		ok + `,"too\u212a":1,"to\u006flS":[]}`,
		ok + `,"LATHE":{}}`,
		ok + `,"Lathe":{"tools":[]}}`,
		ok + `,"Metadata":{}}`,
		ok + `,"stream_options":{"Include_Usage":true}}`,
		ok + `,"response_format":{"type":"text","Type":"json_object"}}`,
		ok + `,"tools":[{"type":"function","Function":{"name":"x"},"function":{"name":"y"}}]}`,
		ok + `,"tools":[{"type":"function","function":{"name":"y","Name":"calculator"}}]}`,
		ok + `,"tools":[{"type":"function","function":{"name":"y","Parameters":{}}}]}`,
		ok + `,"tools":[{"type":"function","function":{"name":"y"}}],"tool_choice":{"type":"function","function":{"name":"y","NAME":"z"}}}`,
		`{"model":"sim/demo","messages":[{"role":"user","Role":"system","content":"hi"}]}`,
		`{"model":"sim/demo","messages":[{"role":"user","content":"hi","Content":"ho"}]}`,
		`{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"text","text":"a","TEXT":"b"}]}]}`,
		`{"model":"sim/demo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.example/","URL":"https://b.example/"}}]}]}`,
		`{"model":"sim/demo","messages":[{"role":"assistant","Tool_Calls":[]},{"role":"user","content":"a"}]}`,
		`{"model":"sim/demo","messages":[{"role":"assistant","tool_calls":[{"id":"c","ID":"d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":""}]}`,
		`{"model":"sim/demo","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","Arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":""}]}`,
	} {
		resp, answer := f.do("POST", "/v1/chat/completions", body)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(answer, `"ambiguous_member"`) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
	if n := len(f.seen.all()); n > 0 {
		t.Errorf("%d requests reached the model", n)
	}
	resp, answer := f.do("POST", "/v1/chat/completions", ok+`,"model":"sim/x"}`)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a duplicate: %d %s", resp.StatusCode, answer)
	}
}

// sample returns a value that the published schema of a request allows for the member.
var sample = map[string]string{
	"messages": "", "model": "", // they are always there
	"audio": `{"voice":"alloy","format":"wav"}`, "frequency_penalty": `0.5`, "function_call": `"none"`, "functions": `[{"name":"f"}]`, "logit_bias": `{"1":-1}`,
	"logprobs": `true`, "max_completion_tokens": `77`, "max_tokens": `77`, "metadata": `{"a":"b"}`, "modalities": `["text"]`, "moderation": `{"model":"m"}`,
	"n": `2`, "parallel_tool_calls": `false`, "prediction": `{"type":"content","content":"x"}`, "presence_penalty": `0.25`, "prompt_cache_key": `"k"`,
	"prompt_cache_options": `{"a":1}`, "prompt_cache_retention": `"24h"`, "reasoning_effort": `"low"`, "response_format": `{"type":"text"}`, "safety_identifier": `"s"`,
	"seed": `7`, "service_tier": `"flex"`, "stop": `["x"]`, "store": `true`, "stream": `false`, "stream_options": `{"include_usage":true}`, "temperature": `0.5`,
	"tool_choice": `"auto"`, "tools": `[{"type":"function","function":{"name":"w","parameters":{"type":"object"}}}]`, "top_logprobs": `2`, "top_p": `0.75`, "user": `"u"`,
	"verbosity": `"low"`, "web_search_options": `{}`,
}

// Each member of a request reaches the model server, has its effect here, is refused by name, or is listed as ignored.
func TestEveryMemberIsAccountedFor(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	refused := []string{"n", "functions", "function_call"} // unless the request is relayed
	here := []string{"stream", "stream_options"}           // said anew to the model server
	names := slices.Collect(maps.Keys(sample))
	for _, relayed := range []bool{false, true} {
		for _, name := range names {
			if sample[name] == "" {
				continue
			}
			t.Run(fmt.Sprint(name, " relayed ", relayed), func(t *testing.T) {
				t.Parallel()
				const said = `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`
				set := upstreamSays("application/json", said)
				if !relayed {
					set.opts = nil
				}
				f := serve(t, set)
				more := `,"` + name + `":` + sample[name]
				if name == "tool_choice" || name == "parallel_tool_calls" {
					more += `,"tools":` + sample["tools"]
				}
				resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "hi", more))
				if resp.StatusCode == http.StatusBadRequest {
					if !strings.Contains(body, name) || relayed || !slices.Contains(refused, name) {
						t.Errorf("refused: %s", body)
					}
					return
				}
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("%d: %s", resp.StatusCode, body)
				}
				sent, listed := f.seen.all()[0], slices.Contains(resp.Header.Values("X-Lathe-Ignored"), name)
				arrives := strings.Contains(sent, `"`+name+`":`+sample[name])
				if name == "max_completion_tokens" || name == "max_tokens" {
					arrives = strings.Contains(sent, `max_tokens":77`) || strings.Contains(sent, `max_completion_tokens":77`)
				}
				if name == "tools" && !relayed {
					arrives = strings.Contains(sent, `{"name":"w","parameters":{"type":"object"}}`)
				}
				switch {
				case slices.Contains(here, name):
				case arrives == listed:
					t.Errorf("reaches the model server: %v, listed: %v; sent %s", arrives, listed, sent)
				}
			})
		}
	}
}

// The list of members above is the published one.
func TestMembersAreThoseOfThePublishedSchema(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(testdata.Dir(t, "openai-openapi", "subset.schemas.json"))
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Ref        string                     `json:"$ref"`
		Properties map[string]json.RawMessage `json:"properties"`
		AllOf      []json.RawMessage          `json:"allOf"`
	}
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var collect func(raw json.RawMessage, into map[string]bool)
	collect = func(raw json.RawMessage, into map[string]bool) {
		var s schema
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		if s.Ref != "" {
			collect(doc.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]], into)
		}
		for name := range s.Properties {
			into[name] = true
		}
		for _, part := range s.AllOf {
			collect(part, into)
		}
	}
	want := map[string]bool{}
	collect(doc.Components.Schemas["CreateChatCompletionRequest"], want)
	for name := range want {
		if _, ok := sample[name]; !ok {
			t.Errorf("the schema has %s, which no test sends", name)
		}
	}
	for name := range sample {
		if !want[name] {
			t.Errorf("the schema has no %s", name)
		}
	}
}

// The entry's list passes members on that are held or refused otherwise, relayed and not.
func TestPassExtendsTheList(t *testing.T) {
	t.Parallel()
	for _, relayed := range []bool{false, true} {
		set := &setting{pass: []string{"plugins", "store", "chat_template"}}
		if relayed {
			set.opts = func(o *server.Options) { o.Setup.Tools = nil }
		}
		f := serve(t, set)
		resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "hello", `,"plugins":[{"id":"web"}],"store":true,"chat_template":"x","metadata":{"a":"b"}`))
		if got := resp.Header.Values("X-Lathe-Passed"); resp.StatusCode != http.StatusOK || !slices.Equal(got, []string{"plugins", "store", "chat_template"}) {
			t.Fatalf("%d, passed %v: %s", resp.StatusCode, got, body)
		}
		if sent := f.seen.all()[0]; !strings.Contains(sent, `"plugins":[{"id":"web"}]`) || !strings.Contains(sent, `"store":true`) || strings.Contains(sent, "metadata") {
			t.Errorf("the model server was sent %s", sent)
		}
	}
}

// A relayed request is sent as its client wrote it, but for the model's name, what is held, and the request for the usage.
func TestRelaySendsTheClientsBytes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"whole": {
			"{ \"temperature\" : 1.0e0, \"model\":\"sim/x\",\n \"messages\":[ {\"content\":\"h\\u0069\",\"role\":\"user\" } ] , \"n\": 2,\"store\":true}",
			"{ \"temperature\" : 1.0e0, \"model\":\"sim/x\",\n \"messages\":[ {\"content\":\"h\\u0069\",\"role\":\"user\" } ] , \"n\": 2}",
		},
		"a stream": {
			`{"model":"sim/x", "stream":true,"messages":[{"role":"user","content":[{"type":"hologram","hologram":1}]}]}`,
			`{"model":"sim/x", "stream":true,"messages":[{"role":"user","content":[{"type":"hologram","hologram":1}]}],"stream_options":{"include_usage":true}}`,
		},
		"forms that are not read": {
			`{"model":"sim/x","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"p","input":"x"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"2"}],"tools":[{"type":"custom","custom":{"name":"p"}},{"type":"function","function":{"name":"a.b"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}},"functions":[{"name":"f"}]}`,
			"",
		},
	} {
		if c.want == "" {
			c.want = c.body
		}
		answer := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"custom","custom":{"name":"p","input":"y"}}]},"finish_reason":"tool_calls"},{"index":1,"message":{"role":"assistant","content":"b"},"finish_reason":"stop"}]}`
		kind := "application/json"
		if name == "a stream" {
			kind, answer = "text/event-stream", chunk(`{"role":"assistant","content":"x"}`, `"stop"`)+"data: [DONE]\n\n"
		}
		f := serve(t, upstreamSays(kind, answer))
		resp, got := f.do("POST", "/v1/chat/completions", c.body)
		if resp.StatusCode != http.StatusOK || got != answer {
			t.Errorf("%s: %d %s", name, resp.StatusCode, got)
		}
		if sent := f.seen.all(); len(sent) != 1 || sent[0] != c.want {
			t.Errorf("%s: sent\n%s\nwant\n%s", name, sent, c.want)
		}
	}
	mended := serve(t, upstreamSays("application/json", `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`))
	mended.do("POST", "/v1/chat/completions", `{"model":"sim/x","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]}`)
	if sent := mended.seen.all()[0]; !strings.Contains(sent, `"arguments":"{}"`) {
		t.Errorf("a call that no model server accepts is sent as it came: %s", sent)
	}
	f := serve(t, nil) // tools of this server may be used: the same is refused, and says when it is not
	for _, more := range []string{`,"n":2`, `,"functions":[{"name":"f"}]`, `,"tools":[{"type":"custom","custom":{"name":"p"}}]`} {
		resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "hi", more))
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"code":"invalid_request"`) || !strings.Contains(body, "may use no tool") {
			t.Errorf("%s: %d %s", more, resp.StatusCode, body)
		}
	}
	for _, more := range []string{`,"tool_choice":"required"`, `,"tool_choice":{"type":"function","function":{"name":"calculator"}}`} {
		if resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "What is 7 + 35?", more)); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", more, resp.StatusCode, body)
		}
	}
	resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "hi", `,"tool_choice":{"type":"function","function":{"name":"nothing"}}`))
	checkError(t, "a tool that is nowhere", resp, body, 400, "invalid_request", "tool_choice.function.name")
}
