package sim

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

var weather = &lathe.ToolSpec{Name: "get_weather", Description: "Look up the weather.\nOf a city.", Schema: json.RawMessage(
	`{"type":"object","properties":{"city":{"type":"string","description":"The city."},"unit":{"type":"string","enum":["c","f"]},` +
		`"days":{"type":"array","items":{"type":"integer"}},"where":{"type":"object","properties":{"lat":{"type":"number"}}}},"required":["city"]}`)}

// What a dialect writes of tools, calls and results is heard as what it is.
func TestEveryDialectIsHeard(t *testing.T) {
	t.Parallel()
	call := func(id, args string) lathe.Part {
		return lathe.ToolCall{ID: id, Name: "get_weather", Arguments: args}
	}
	result := func(id, content string, failed bool) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Name: "get_weather", Content: content, IsError: failed}}}
	}
	contents := []string{`{"temperature":-3}`, `{"ok":false,"error":{"code":"unavailable","message":"No."}}`, "plain text"}
	req := &lathe.Request{Tools: []*lathe.ToolSpec{weather}, Messages: []lathe.Message{
		lathe.System("Be brief."), lathe.User("Weather in Oslo and Rome?"),
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "Let me see.\n"}, call("functions.get_weather:0", `{"city":"Oslo"}`), call("functions.get_weather:1", `{"city":"Rome"}`)}},
		result("functions.get_weather:0", contents[0], false), result("functions.get_weather:1", contents[1], true),
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("functions.get_weather:2", `{"city":"Bern"}`)}},
		result("functions.get_weather:2", contents[2], false),
		lathe.Assistant("Cold."), lathe.User("Thanks."),
	}}
	for _, name := range writable() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, ok := dialect.Lookup(name)
			if !ok {
				t.Fatal("no such dialect")
			}
			heard := readText(d, d.Rewrite(req))
			if len(heard.Tools) != 1 || heard.Tools[0].Name != "get_weather" || !strings.Contains(heard.Tools[0].Description, "weather") {
				t.Fatalf("tools %v", heard.Tools)
			}
			params := parameters(heard.Tools[0].Schema)
			if len(params) != 4 || params[0].name != "city" || !params[0].required || params[1].required || len(params[1].enum) != 2 {
				t.Errorf("parameters %+v of %s", params, heard.Tools[0].Schema)
			}
			var cities, got []string
			for _, m := range heard.Messages {
				for _, p := range m.Parts {
					switch p := p.(type) {
					case lathe.ToolCall:
						var args struct{ City string }
						if err := json.Unmarshal([]byte(p.Arguments), &args); err != nil {
							t.Errorf("arguments %q: %v", p.Arguments, err)
						}
						cities = append(cities, args.City)
					case lathe.ToolResult:
						got = append(got, p.Content)
					}
				}
			}
			if s := strings.Join(cities, " "); s != "Oslo Rome Bern" {
				t.Errorf("heard calls for %q", s)
			}
			if a, b := strings.Join(got, "|"), strings.Join(contents, "|"); a != b {
				t.Errorf("heard results %q, want %q", a, b)
			}
			if c := readConversation(heard); c.prompt != "Thanks." || c.total != 3 || c.asked != 0 {
				t.Errorf("conversation %+v", c)
			}
		})
	}
}

func TestDefinitionsAreFoundInText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`Tools: [{"type":"function","function":{"name":"a","description":"b","parameters":{"type":"object"}}}] {broken`,
		"{\"x\":1}\n{\"name\":\"a\",\"description\":\"b\",\"input_schema\":{\"type\":\"object\"}}",
		"TOOLS:\n- name: a\n  description: b\n  schema: {\"type\":\"object\"}\nEND TOOLS\nMore.",
	} {
		got := readTools([]lathe.Message{lathe.System(text)})
		if len(got) != 1 || got[0].Name != "a" || got[0].Description != "b" || string(got[0].Schema) != `{"type":"object"}` {
			t.Errorf("%q gives %v", text, got)
		}
	}
	if got := readTools([]lathe.Message{lathe.User(`{"name":"a","parameters":{}}`)}); got != nil {
		t.Errorf("a user's text gives tools: %v", got)
	}
}

func TestUnknownDialectIsAnError(t *testing.T) {
	t.Parallel()
	s := New(nil)
	for _, err := range s.Model("sim/demo+esperanto").Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
		if lathe.CodeOf(err) != lathe.CodeInvalidRequest || !strings.Contains(err.Error(), "harmony, tags") {
			t.Errorf("error %v", err)
		}
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"sim/demo+auto","messages":[{"role":"user","content":"hi"}]}`)))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `no dialect \"auto\"`) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if sp, err := s.parse("sim/slow+native"); err != nil || sp.dialect != nil || !sp.slow {
		t.Errorf("native: %+v, %v", sp, err)
	}
}

// readText does not panic on any text of the system, the user, the assistant or a tool.
func FuzzHear(f *testing.F) {
	f.Add("TOOLS:\n- name: a\n  schema: {}\nEND TOOLS", `<tool name="a" args>{}</tool>`, `<tool_result name="a">1</tool_result>`, uint8(1))
	f.Add("namespace functions {\ntype a = (_: {\nb?: string, // default: 1\n}) => any;\n} // namespace functions", "<|call|>", "x", uint8(0))
	names := writable()
	f.Fuzz(func(t *testing.T, system, said, answer string, n uint8) {
		d, err := findDialect(names[int(n)%len(names)])
		if err != nil {
			t.Fatal(err)
		}
		readText(d, &lathe.Request{Messages: []lathe.Message{lathe.System(system), lathe.User("x"), lathe.Assistant(said), lathe.User(answer)}})
	})
}
