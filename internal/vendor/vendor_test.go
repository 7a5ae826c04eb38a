package vendor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// named returns the objects of a request as "KIND ID PATH".
func named(body string) (out []string) {
	InRequest([]byte(body), func(o Object) bool {
		out = append(out, o.Kind+" "+o.ID+" "+o.Path)
		return true
	})
	return out
}

// Each member of the wires that names an object of the account is found, however deep it is and however its name is written.
func TestObjectsAreFoundInRequests(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`:                        "file file-1 messages[0].content[0].file.file_id",
		`{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}`:                                                  "audio audio_1 messages[0].audio",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"openai-file:file-1"}}]}]}`:      "file openai-file:file-1 messages[0].content[0].image_url.url",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"gs://b/o"}]}]}`:                        "file gs://b/o messages[0].content[0].image_url",
		`{"input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]}`:                             "file file-1 input[0].content[0].file_id",
		`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file","file_id":"file-1"}]}]}`: "file file-1 input[0].output[0].file_id",
		`{"input":[{"type":"code_interpreter_call","id":"ci_1","container_id":"cntr_1","code":""}]}`:                    "container cntr_1 input[0].container_id",
		`{"input":[{"type":"item_reference","id":"msg_1"}]}`:                                                            "item msg_1 input[0]",
		`{"input":[{"id":"msg_1"}]}`:                                                                                               "item msg_1 input[0]",
		`{"input":[{"type":"reasoning","id":"rs_1","summary":[ ]}]}`:                                                               "item rs_1 input[0]",
		`{"input":[{"type":"image_generation_call","id":"ig_1"}]}`:                                                                 "item ig_1 input[0]",
		`{"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}`:                                                           "vector_store vs_1 tools[0].vector_store_ids",
		`{"tools":[{"type":"code_interpreter","container":"cntr_1"}]}`:                                                             "container cntr_1 tools[0].container",
		`{"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["file-1"]}}]}`:                                "file file-1 tools[0].container.file_ids",
		`{"tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"cntr_1"}}]}`:                        "container cntr_1 tools[0].environment.container_id",
		`{"tools":[{"type":"shell","environment":{"skills":[{"type":"skill_reference","skill_id":"skill_1"}]}}]}`:                  "skill skill_1 tools[0].environment.skills[0].skill_id",
		`{"tools":[{"type":"image_generation","input_image_mask":{"file_id":"file-1"}}]}`:                                          "file file-1 tools[0].input_image_mask.file_id",
		`{"tools":[{"type":"mcp","connector_id":"connector_gmail"}]}`:                                                              "connector connector_gmail tools[0].connector_id",
		`{"prompt":{"id":"pmpt_1"}}`:                                                                                               "prompt pmpt_1 prompt",
		`{"conversation":"conv_1"}`:                                                                                                "conversation conv_1 conversation",
		`{"conversation":{"id":"conv_1"}}`:                                                                                         "conversation conv_1 conversation",
		`{"thread":{"type":"continue","previous_message_id":"msg_1"}}`:                                                             "conversation msg_1 thread.previous_message_id",
		`{"container":{"id":"container_1"}}`:                                                                                       "container container_1 container",
		`{"container":{"skills":[{"type":"custom","skill_id":"skill_1"}]}}`:                                                        "skill skill_1 container.skills[0].skill_id",
		`{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}`:                             "file file_1 messages[0].content[0].source.file_id",
		`{"messages":[{"content":[{"type":"container_upload","file_id":"file_1"}]}]}`:                                              "file file_1 messages[0].content[0].file_id",
		`{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"file","file_id":"f1"}}]}]}]}`: "file f1 messages[0].content[0].content[0].source.file_id",
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}]}]}`:           "file https://generativelanguage.googleapis.com/v1beta/files/1 contents[0].parts[0].fileData.fileUri",
		`{"contents":[{"parts":[{"file_data":{"file_uri":"gs://bucket/object"}}]}]}`:                                               "file gs://bucket/object contents[0].parts[0].file_data.file_uri",
		`{"cachedContent":"cachedContents/1"}`:                                                                                     "cache cachedContents/1 cachedContent",
		`{"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/1"]}}]}`:                                               "vector_store fileSearchStores/1 tools[0].fileSearch.fileSearchStoreNames",
		`{"tools":[{"retrieval":{"vertexAiSearch":{"datastore":"projects/1"}}}]}`:                                                  "vector_store  tools[0].retrieval.vertexAiSearch",
		`{"messages":[{"content":[{"FILE\u005fid":"file-1"}]}]}`:                                                                   "file file-1 messages[0].content[0].FILE_id",
	} {
		if got := named(body); len(got) == 0 || got[0] != want {
			t.Errorf("%s\ngot  %q\nwant %q", body, got, want)
		}
	}
}

// What a client defines for its own tools names no object, nor does a public address.
func TestDataOfClientsNamesNoObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"tools":[{"type":"function","name":"f","parameters":{"properties":{"file_id":{"type":"string","default":"x"}},"examples":[{"file_id":"x"}]}}]}`,
		`{"messages":[{"content":[{"type":"tool_use","id":"t","name":"f","input":{"file_id":"x","container":"y"}}]}]}`,
		`{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"file_id":"x"}}},{"functionResponse":{"name":"f","response":{"file_id":"x"}}}]}]}`,
		`{"messages":[{"role":"user","content":"{\"file_id\":\"x\"}"}],"metadata":{"file_id":"x"}}`,
		`{"input":[{"role":"assistant","content":[{"type":"output_text","text":"x","annotations":[{"type":"file_citation","file_id":"x"}]}]}]}`,
		`{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"message","id":"msg_1","role":"user","content":"x"}]}`,
		`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://www.youtube.com/watch?v=1"}}]}]}`,
		`{"container":{"skills":[{"type":"anthropic","skill_id":"pptx"}]},"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`,
		`{"audio":{"voice":"alloy","format":"wav"},"prompt":"x","lathe":{"session":"x"}}`,
	} {
		if got := named(body); len(got) > 0 {
			t.Errorf("%s: %q", body, got)
		}
	}
}

func TestObjectsAreFoundInMessages(t *testing.T) {
	t.Parallel()
	messages := []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{
		lathe.Blob{URL: "openai-file:file-1"}, lathe.Blob{Raw: json.RawMessage(`{"file_id":"file-2"}`)}, lathe.Opaque{JSON: json.RawMessage(`{"file_id":"file-3"}`)},
		lathe.ToolResult{Blobs: []lathe.Blob{{URL: "gs://a/b"}}}, lathe.Text{Extra: []lathe.Member{{Name: "file_id", Value: json.RawMessage(`"file-5"`)}}}}}}
	var got []string
	InMessages(messages, func(o Object) bool {
		got = append(got, o.ID)
		return true
	})
	if want := "openai-file:file-1 file-2 file-3 gs://a/b file-5"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An answer has the objects that the vendor made. What a model writes as arguments is none of them.
func TestObjectsOfAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"output":[{"type":"code_interpreter_call","id":"ci_1","container_id":"cntr_1"}],"tools":[{"vector_store_ids":["vs_1"]}]}`:                                    "cntr_1",
		`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"annotations":[{"type":"file_citation","file_id":"file-1"}]}]}]}}`:           "file-1",
		`{"type":"message_delta","delta":{"container":{"id":"container_1","expires_at":"x"}}}`:                                                                         "container_1",
		`{"content":[{"type":"tool_use","name":"f","input":{"file_id":"x"}},{"type":"bash_code_execution_tool_result","content":{"content":[{"file_id":"file_1"}]}}]}`: "file_1",
		`{"output":[{"type":"local_shell_call","action":{"env":{"file_id":"x"}}}]}`:                                                                                    "",
		`{"choices":[{"message":{"audio":{"id":"audio_1"},"tool_calls":[{"function":{"arguments":{"file_id":"x"}}}]}}]}`:                                               "audio_1",
	} {
		var got []string
		InAnswer([]byte(body), false, func(o Object) bool {
			got = append(got, o.ID)
			return true
		})
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	var items []string
	for _, body := range []string{`{"output":[{"type":"message","id":"msg_1"}]}`, `{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1"}}`} {
		InAnswer([]byte(body), true, func(o Object) bool {
			items = append(items, o.ID)
			return true
		})
	}
	if !slices.Equal(items, []string{"msg_1", "rs_1"}) {
		t.Errorf("items: %q", items)
	}
}

func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{"web_search_20250305": "web_search", "web_search_preview_2025_03_11": "web_search", "web_search_preview": "web_search",
		"code_execution_20260521": "code_execution", "googleSearch": "googleSearch", "mcp_toolset": "mcp", "mcp_tool_reference": "mcp", "web_search": "web_search"} {
		if got := ToolName(typ); got != want {
			t.Errorf("%s: got %s, want %s", typ, got, want)
		}
	}
	if !AllowsTool([]string{"google_search"}, "googleSearch") || AllowsTool([]string{"web_search"}, "web_fetch_20250910") || !AllowsTool([]string{"web_search_20250305"}, "web_search_20250305") {
		t.Error("a list does not have what it names")
	}
}

// Tools that are not in the list are removed wherever a request declares them, and no other byte changes.
func TestToolsAreWithheld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want, tools, forced string }{
		{`{"model":"m", "tools":[{"type":"web_search"},{"type":"function","name":"f"}]}`, `{"model":"m", "tools":[{"type":"function","name":"f"}]}`, "web_search", ""},
		{`{"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"auto"},"x":1}`, `{"x":1}`, "web_search_20250305", ""},
		{`{"tools":[{"type":"bash_20250124","name":"bash"},{"name":"f","input_schema":{}},{"type":"tool_search_tool_regex_20251119","name":"s"}]}`, "", "", ""},
		{`{"tools":[{"type":"code_interpreter","container":{"type":"auto"}},{"type":"allowed"}]}`, `{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, "allowed", ""},
		{`{"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"shell"}]}`, `{"tools":[{"type":"shell","environment":{"type":"local"}}]}`, "shell", ""},
		{`{"tools":[{"googleSearch":{},"functionDeclarations":[{"name":"f"}]},{"url_context":{}}]}`, `{"tools":[{"functionDeclarations":[{"name":"f"}]}]}`, "googleSearch url_context", ""},
		{`{"tools":[{"type":null,"googleSearch":{}},{"name":null,"googleSearch":{}}]}`, `{}`, "googleSearch", ""},
		{`{"tools":[{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`, `{}`, "googleSearch", "googleSearch"},
		{`{"input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]}`, `{"input":[{"type":"additional_tools","tools":[]}]}`, "web_search", ""},
		{`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"web_search_20250305","name":"web_search"}},{"type":"text","text":"x"}]}]}`,
			`{"messages":[{"role":"system","content":[{"type":"text","text":"x"}]}]}`, "web_search_20250305", ""},
		{`{"input":[{"type":"tool_search_output","execution":"server","tools":[{"type":"mcp","server_label":"s","server_url":"https://example.com"},{"type":"function","name":"f"}]}],"tools":[{"type":"mcp","server_label":"own"}]}`,
			`{"input":[{"type":"tool_search_output","execution":"server","tools":[{"type":"function","name":"f"}]}],"tools":[{"type":"mcp","server_label":"own"}]}`, "mcp", ""},
		{`{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp"}]}]}]}`, `{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[]}]}]}`, "mcp", ""},
		{`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"mcp_toolset_reference","mcp_server_name":"s"}},{"type":"tool_addition","tool":{"type":"mcp_tool_reference","server_name":"s","name":"t"}},{"type":"text","text":"x"}]}]}`,
			`{"messages":[{"role":"system","content":[{"type":"text","text":"x"}]}]}`, "mcp_toolset_reference mcp_tool_reference", ""},
		{`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"f","input_schema":{}}}},{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}]}]}`, "", "", ""},
		{`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"w"}}},{"type":"tool_removal","tool":{"type":"tool_reference","name":"w"}},{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}}]}]}`,
			`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}}]}]}`, "web_search_20250305", ""},
		{`{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"w"}},{"type":"text","text":"x"}]}],"tools":[{"type":"web_search_20250305","name":"w","defer_loading":true}]}`,
			`{"messages":[{"role":"system","content":[{"type":"text","text":"x"}]}]}`, "web_search_20250305", ""},
		{`{"web_search_options":{},"model":"m"}`, `{"model":"m"}`, "web_search_options", ""},
		{`{"mcp_servers":[{"url":"x"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]}`, `{}`, "mcp_toolset mcp_servers", ""},
		{`{"tools":[{"type":"web_search"},{"type":"function","name":"f"}],"tool_choice":{"type":"web_search"}}`, "-", "web_search", "web_search"},
		{`{"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f"}],"tool_choice":{"type":"tool","name":"web_search"}}`, "-", "web_search_20250305", "web_search_20250305"},
		{`{"tools":[{"type":"web_search"}],"tool_choice":"required"}`, "-", "web_search", "web_search"},
		{`{"tools":[{"type":"web_search"},{"type":"function","name":"f"}],"tool_choice":"required"}`, "-", "web_search", ""},
		{`{"tools":[{"type":"web_search"},{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]}}`, "-", "web_search", "web_search"},
		{`{"messages":[{"content":[{"type":"tool_use","input":{"tools":[{"type":"web_search"}]}}]}],"tools":null}`, "", "", ""},
	} {
		got := Withhold([]byte(c.body), []string{"code_interpreter"})
		if c.want == "" {
			c.want = c.body
		}
		if string(got.Body) != c.want && c.want != "-" || strings.Join(got.Tools, " ") != c.tools || got.Forced != c.forced {
			t.Errorf("%s\ngot  %s %q forced %q\nwant %s %q forced %q", c.body, got.Body, got.Tools, got.Forced, c.want, c.tools, c.forced)
		}
		if !json.Valid(got.Body) {
			t.Errorf("%s: not valid: %s", c.body, got.Body)
		}
	}
}

// A name that is longer than all names of members that refer to objects is none of them, however it is written.
func TestLongNamesNameNoObject(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"file_id" + strings.Repeat("_", 57):                   1,
		"file_id" + strings.Repeat("_", 58):                   0,
		"file_id" + strings.Repeat(`\u005f`, 57):              1,
		"file_id" + strings.Repeat(`\u005f`, 58):              0,
		strings.Repeat(`\u005f`, 64):                          0,
		`f\u0069le_id` + strings.Repeat("_", 6*maxName):       0,
		`f\u0069le_id` + strings.Repeat(`\u005f`, 10*maxName): 0,
	} {
		if got := named(`{"` + name + `":"file-1"}`); len(got) != want {
			t.Errorf("%.60s: %d objects, want %d", name, len(got), want)
		}
	}
}

// The allocations of a search depend neither on the number of elements and members nor on the length of names. The type of a skill is read
// once, and nothing once the visitor has returned false.
func TestSearchAllocatesLittle(t *testing.T) {
	testdata.CountsAllocations(t)
	for _, c := range []struct{ before, unit, after string }{
		{`{"x":[`, `0,`, `0]}`},
		{`{"x":[`, `{"y":[[1]]},`, `0]}`},
		{`{`, `"` + strings.Repeat("n", 400) + `":0,`, `"x":0}`},
		{`{`, `"` + strings.Repeat(`\u006e`, 100) + `":0,`, `"x":0}`},
		{`{`, `"skill_id":0,`, `"type":"anthropic"}`},
		{`{`, `"skill_id":"x",`, `"type":"anthropic"}`},
		{`{`, `"file_id":"file-1",`, `"x":0}`},
		{`{"x":[`, `{"file_id":"file-1"},`, `0]}`},
	} {
		measure := func(n int) float64 {
			body := []byte(c.before + strings.Repeat(c.unit, n) + c.after)
			return testing.AllocsPerRun(5, func() { InRequest(body, func(Object) bool { return false }) })
		}
		if small, large := measure(10), measure(10_000); large > small || large > 10 {
			t.Errorf("%.20s: %v allocations for 10 units, %v for 10,000", c.unit, small, large)
		}
	}
}

func FuzzBodies(f *testing.F) {
	f.Add(`{"tools":[{"type":"web_search"},{"googleSearch":{}}],"input":[{"id":"x"},[1]],"file_id":["a"],"container":{"id":1}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) {
			return
		}
		named(body)
		InAnswer([]byte(body), true, func(Object) bool { return true })
		if got := Withhold([]byte(body), []string{}); !json.Valid(got.Body) {
			t.Errorf("%s: %s", body, got.Body)
		}
	})
}
