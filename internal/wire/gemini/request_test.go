package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func TestParseRequestReadsGeminiCLI(t *testing.T) {
	t.Parallel()
	req := mustParse(t, agentRequest(t, "gemini-cli-0.61.0-turn2-parallel.json"))
	var kinds []string
	for _, m := range req.Messages {
		s := string(m.Role)
		for _, p := range m.Parts {
			s += " " + typeName(p)
		}
		kinds = append(kinds, s)
		if m.Wire != lathe.WireGemini {
			t.Errorf("%s is of wire %q", m.Role, m.Wire)
		}
	}
	want := "system Text|user Text Text|assistant Text Reasoning ToolCall ToolCall|tool ToolResult|tool ToolResult"
	if got := strings.Join(kinds, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	model := req.Messages[2]
	if r := model.Parts[1].(lathe.Reasoning); r.Field != "thoughtSignature" || r.Data != "c2ln" {
		t.Errorf("signature %+v", r)
	}
	for i, c := range model.Calls() {
		r := req.Messages[3+i].Parts[0].(lathe.ToolResult)
		if c.Name != "list_directory" || c.Arguments != `{"dir_path":"."}` || r.CallID != c.ID || r.Name != c.Name || r.IsError ||
			r.Content != "Directory /home/user/project is empty." {
			t.Errorf("call %+v, result %+v", c, r)
		}
	}
	if len(req.Tools) == 0 || req.Tools[0].Name != "update_topic" || !json.Valid(req.Tools[0].Schema) {
		t.Errorf("tools: %d", len(req.Tools))
	}
	s := req.Sampling
	if *s.Temperature != 1 || *s.TopP != 0.95 || *s.TopK != 64 || *s.ReasoningBudget != 8192 || s.ReasoningSummary == "" {
		t.Errorf("sampling %s", dump(t, s))
	}
	if len(req.Unknown)+len(req.Dropped)+len(req.Hosted) != 0 || req.Model != "" || req.Stream || req.N != 1 {
		t.Errorf("unknown %v, dropped %v, hosted %v", req.Unknown, req.Dropped, req.Hosted)
	}
}

func TestParseRequestReadsBothSpellings(t *testing.T) {
	t.Parallel()
	camel := `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AQI="}}]},
		{"role":"model","parts":[{"functionCall":{"name":"f","args":{"snake_case":1}},"thoughtSignature":"cw=="}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}],
		"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"snake_case":{}}}}]}],
		"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},
		"generationConfig":{"topP":0.5,"topK":"3","maxOutputTokens":5.0,"stopSequences":["z"],"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"},
		"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}},"safetySettings":[{"category":"c"}]}`
	snaked := camel
	for _, name := range []string{"systemInstruction", "inlineData", "mimeType", "functionCall\"", "thoughtSignature", "functionResponse", "functionDeclarations",
		"parametersJsonSchema", "toolConfig", "functionCallingConfig", "allowedFunctionNames", "generationConfig", "topP", "topK", "maxOutputTokens", "stopSequences",
		"thinkingConfig", "includeThoughts", "thinkingLevel", "responseMimeType", "responseJsonSchema", "safetySettings"} {
		snaked = strings.ReplaceAll(snaked, `"`+name, `"`+snake(name))
	}
	a, b := mustParse(t, camel), mustParse(t, snaked)
	a.Body, b.Body = nil, nil
	same(t, "snake case", b.Messages, a.Messages)
	same(t, "snake case", b, a)
	if a.ToolChoice != (lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "f"}) || *a.Sampling.TopK != 3 || *a.Sampling.MaxTokens != 5 ||
		a.Sampling.ReasoningEffort != "low" || string(a.Sampling.ResponseFormat) != `{"type":"json_schema","json_schema":{"name":"response","schema":{"type":"object"}}}` {
		t.Errorf("%s", dump(t, a))
	}
	if len(a.Unknown) != 1 || a.Unknown[0].Name != "safetySettings" {
		t.Errorf("unknown %v", a.Unknown)
	}
}

func TestParseRequestRefusals(t *testing.T) {
	t.Parallel()
	const user = `"contents":[{"parts":[{"text":"a"}]}]`
	for _, c := range []struct{ body, param, code string }{
		{`{`, "", ""},
		{`[]`, "", ""},
		{`{}`, "contents", ""},
		{`{"contents":[]}`, "contents", ""},
		{`{"contents":[{"parts":[{}]}]}`, "contents", ""},
		{`{"contents":{}}`, "contents", ""},
		{`{"Contents":[]}`, "Contents", "ambiguous_member"},
		{`{` + user + `,"tool_config":{},"toolConfig":{}}`, "toolConfig", "ambiguous_member"},
		{`{` + user + `,"cachedContent":"cachedContents/1"}`, "cachedContent", ""},
		{`{` + user + `,"systemInstruction":"x"}`, "systemInstruction", ""},
		{`{` + user + `,"systemInstruction":{"parts":[{"functionCall":{"name":"f"}}]}}`, "systemInstruction.parts[0]", ""},
		{`{"contents":[{"role":"system","parts":[{"text":"a"}]}]}`, "contents[0].role", ""},
		{`{"contents":[{"parts":[{"text":1}]}]}`, "contents[0].parts[0].text", ""},
		{`{"contents":[{"parts":[{"TEXT":"a"}]}]}`, "contents[0].parts[0].TEXT", "ambiguous_member"},
		{`{"contents":[{"parts":[{"text":"a","functionCall":{"name":"f"}}]}]}`, "contents[0].parts[0]", ""},
		{`{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`, "contents[0].parts[0].functionCall", ""},
		{`{"contents":[{"role":"model","parts":[{"functionResponse":{"name":"f"}}]}]}`, "contents[0].parts[0].functionResponse", ""},
		{`{"contents":[{"role":"model","parts":[{"functionCall":{}}]}]}`, "contents[0].parts[0].functionCall.name", ""},
		{`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"}}]}]}`, "contents[0].parts[0].functionCall.args", ""},
		{`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","Args":{}}}]}]}`, "contents[0].parts[0].functionCall.Args", "ambiguous_member"},
		{`{"contents":[{"parts":[{"functionResponse":{"response":{}}}]}]}`, "contents[0].parts[0].functionResponse.name", ""},
		{`{"contents":[{"parts":[{"inlineData":{"mimeType":"a/b","data":"*"}}]}]}`, "contents[0].parts[0].inlineData.data", ""},
		{`{"contents":[{"parts":[{"inlineData":{"mimeType":"a/b"}}]}]}`, "contents[0].parts[0].inlineData", ""},
		{`{` + user + `,"tools":[{"functionDeclarations":[{"name":"f"},{"name":"f"}]}]}`, "tools[0].functionDeclarations[1].name", ""},
		{`{` + user + `,"tools":[{"functionDeclarations":[{"description":"f"}]}]}`, "tools[0].functionDeclarations[0].name", ""},
		{`{` + user + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{},"parametersJsonSchema":{}}]}]}`, "tools[0].functionDeclarations[0].parametersJsonSchema", ""},
		{`{` + user + `,"toolConfig":{"functionCallingConfig":{"mode":"any"}}}`, "toolConfig.functionCallingConfig.mode", ""},
		{`{` + user + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}}}`, "toolConfig.functionCallingConfig.allowedFunctionNames[0]", ""},
		{`{` + user + `,"generationConfig":{"topK":1.5}}`, "generationConfig.topK", ""},
		{`{` + user + `,"generationConfig":{"maxOutputTokens":0}}`, "generationConfig.maxOutputTokens", ""},
		{`{` + user + `,"generationConfig":{"maxOutputTokens":""}}`, "generationConfig.maxOutputTokens", ""},
		{`{` + user + `,"generationConfig":{"responseSchema":{},"responseJsonSchema":{}}}`, "generationConfig.responseJsonSchema", ""},
		{`{` + user + `,"generationConfig":{"responseSchema":{}}}`, "generationConfig.responseSchema", ""},
		{`{` + user + `,"generationConfig":{"thinkingConfig":{"includeThoughts":1}}}`, "generationConfig.thinkingConfig.includeThoughts", ""},
	} {
		req, err := Codec{}.ParseRequest([]byte(c.body))
		e, ok := err.(*wire.APIError)
		if !ok || req != nil || e.Status != 400 || e.Param != c.param || e.Code != c.code || e.Message == "" {
			t.Errorf("%s: %+v, want the parameter %q", c.body, err, c.param)
		}
	}
}

func TestParseRequestKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	req := mustParse(t, `{"contents":[{"parts":[{"text":"a","partMetadata":{"k":1}},{"executableCode":{"code":"1"}},{"new":1},
		{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/c"},"videoMetadata":{"fps":2}}]}],
		"tools":[{"googleSearch":{}},{"code_execution":{}},{"newTool":{"x":1}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"},"retrievalConfig":{"languageCode":"no"}},
		"generationConfig":{"responseModalities":["TEXT"],"candidateCount":2,"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING"}},"labels":{"a":"b"},"foo":1}`)
	parts := req.Messages[0].Parts
	if p := parts[0].(lathe.Text); len(p.Extra) != 1 || string(p.Extra[0].Value) != `{"k":1}` {
		t.Errorf("text %+v", p)
	}
	if p := parts[1].(lathe.Opaque); string(p.JSON) != `{"executableCode":{"code":"1"}}` {
		t.Errorf("code %s", p.JSON)
	}
	if p := parts[2].(lathe.Opaque); string(p.JSON) != `{"new":1}` {
		t.Errorf("new %s", p.JSON)
	}
	if p := parts[3].(lathe.Blob); p.URL != "gs://b/c" || !strings.Contains(string(p.Raw), `"fps":2`) {
		t.Errorf("file %+v", p)
	}
	var hosted []string
	for _, h := range req.Hosted {
		hosted = append(hosted, h.Type+string(h.JSON))
		if !h.Forced {
			t.Errorf("%s is not forced, and there is no other tool", h.Type)
		}
	}
	if got := strings.Join(hosted, " "); got != `googleSearch{"googleSearch":{}} codeExecution{"codeExecution":{}} newTool{"newTool":{"x":1}}` {
		t.Errorf("hosted %s", got)
	}
	var unknown []string
	for _, m := range req.Unknown {
		unknown = append(unknown, m.Name+string(m.Value))
	}
	want := `labels{"a":"b"} foo1 generationConfig{"responseModalities":["TEXT"],"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING"}} toolConfig{"retrievalConfig":{"languageCode":"no"}}`
	if got := strings.Join(unknown, " "); got != want {
		t.Errorf("unknown %s\nwant    %s", got, want)
	}
	if req.N != 2 || req.Foreign == nil || req.Foreign.Param != "generationConfig.candidateCount" {
		t.Errorf("n %d, foreign %v", req.N, req.Foreign)
	}
}

func TestParseCount(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"contents":[{"parts":[{"text":"a"}]}]}`, `{"generateContentRequest":{"model":"models/m","contents":[{"parts":[{"text":"a"}]}]}}`} {
		req, err := ParseCount([]byte(body))
		if err != nil || len(req.Messages) != 1 || req.Messages[0].Text() != "a" {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := ParseCount([]byte(`{"contents":[],"generateContentRequest":{}}`)); err == nil {
		t.Error("both forms at once are accepted")
	}
	if got := string(AppendCount(nil, 31)); got != `{"totalTokens":31}` {
		t.Error(got)
	}
	list := string(AppendModels(nil, []Model{{ID: "m", InputTokens: 5}, {ID: "n", DisplayName: "N", Description: "d", OutputTokens: 6}}))
	if !json.Valid([]byte(list)) || !strings.HasPrefix(list, `{"models":[{"name":"models/m","version":"m","displayName":"m","inputTokenLimit":5,`) {
		t.Error(list)
	}
}

// Gemini CLI sends each result of a resumed conversation twice. Two different results of one call stay for the caller to
// refuse.
func TestParseRequestTakesRepeatedResultsOnce(t *testing.T) {
	t.Parallel()
	body := func(second string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}},{"functionResponse":{"id":"b","name":"g","response":{"error":"2"}}},` +
			`{"functionResponse":{"id":"a","name":"f","response":{"output":"` + second + `"}}}]}]}`
	}
	once := mustParse(t, body("1"))
	if len(once.Messages) != 4 || len(once.Dropped) != 1 || once.Dropped[0] != "contents[2].parts[2]" {
		t.Errorf("%d messages, dropped %q", len(once.Messages), once.Dropped)
	}
	if twice := mustParse(t, body("3")); len(twice.Messages) != 5 || len(twice.Dropped) != 0 {
		t.Errorf("%d messages, dropped %q", len(twice.Messages), twice.Dropped)
	}
}
