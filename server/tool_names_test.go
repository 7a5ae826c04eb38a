package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// A set of allowed tools leaves the definitions as they are, since prompt caches depend on them, and is sent where the wire has a form
// for it; where it has none that is listed.
func TestAllowedToolsKeepTheDefinitions(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}},{"type":"function","name":"g","parameters":{"type":"object","properties":{}}},{"type":"function","name":"h","parameters":{"type":"object","properties":{}}}]`
	choice := func(mode string, names ...string) string {
		list := ""
		for _, name := range names {
			list += `,{"type":"function","name":"` + name + `"}`
		}
		return `"tool_choice":{"type":"allowed_tools","mode":"` + mode + `","tools":[` + list[1:] + `]}`
	}
	forms := map[lathe.Wire][3]string{ // one required, two required, two of which any may be called
		lathe.WireOpenAIChat: {`"tool_choice":{"type":"function","function":{"name":"g"}}`, `"tool_choice":"required"`, `"tool_choice":"auto"`},
		lathe.WireMessages:   {`"tool_choice":{"type":"tool","name":"g"`, `"tool_choice":{"type":"any"`, `"tool_choice":{"type":"auto"`},
		lathe.WireGemini:     {`"allowedFunctionNames":["g"]`, `"allowedFunctionNames":["g","h"]`, `"mode":"AUTO"`},
	}
	for w, want := range forms {
		for i, c := range []string{choice("required", "g"), choice("required", "g", "h"), choice("auto", "g", "h")} {
			f, up := modelOn(t, w, provider.Options{})
			a := wireClients["responses"].send(t.Context(), f, false, respHead+`"x",`+tools+`,`+c+`}`)
			if a.status != http.StatusOK {
				t.Fatalf("%s: %s", w, a.body)
			}
			sent := *up.sent.Load()
			for _, name := range []string{"f", "g", "h"} {
				if !strings.Contains(sent, `"name":"`+name+`"`) {
					t.Errorf("%s, %s: there is no definition of %s in %s", w, c, name, sent)
				}
			}
			if !strings.Contains(sent, want[i]) {
				t.Errorf("%s, %s: there is no %s in %s", w, c, want[i], sent)
			}
			told := i == 0 || i == 1 && w == lathe.WireGemini
			if listed := strings.Contains(a.body, `"dropped":["tool_choice.tools"]`); listed == told {
				t.Errorf("%s, %s: listed is %v:\n%s", w, c, listed, a.body)
			}
		}
	}
}

// The definitions of the server's own tools and of the vendor's stay as well. A call to one that the set leaves out is not made.
func TestAllowedToolsKeepTheDefinitionsOfTheServer(t *testing.T) {
	t.Parallel()
	const body = respHead + `"x","lathe":{"show":"items"},"tools":[{"type":"web_search"},{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]`
	for _, choice := range []string{"", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`} {
		for _, w := range []lathe.Wire{lathe.WireResponses, lathe.WireOpenAIChat} {
			up := &modelServer{stream: okStreams[w]}
			f := serve(t, &setting{model: up.model(t, w)})
			a := wireClients["responses"].send(t.Context(), f, false, body+choice+`}`)
			if a.status != http.StatusOK {
				t.Fatalf("%s: %s", w, a.body)
			}
			sent := *up.sent.Load()
			tools := sent[strings.Index(sent, `"tools":[`):]
			for _, name := range []string{`"calculator"`, `"f"`} {
				if !strings.Contains(tools, name) {
					t.Errorf("%s %s: there is no definition of %s in %s", w, choice, name, tools)
				}
			}
			if w == lathe.WireOpenAIChat {
				continue
			}
			if !strings.Contains(tools, `{"type":"web_search"}`) || strings.Contains(sent, "barred") {
				t.Errorf("%s: the vendor's tool is not sent as it is: %s", choice, sent)
			}
			if want := `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`; choice != "" && !strings.Contains(sent, want) {
				t.Errorf("there is no %s in %s", want, sent)
			}
		}
	}
	m := &scriptedServer{answers: []string{callStream("calculator", `{"expression":"1+1"}`), okStreams[lathe.WireOpenAIChat]}}
	model, err := provider.New(lathe.WireOpenAIChat, "m", &provider.Options{BaseURL: "http://up.invalid", Transport: m})
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, &setting{model: model})
	a := wireClients["responses"].send(t.Context(), f, false, body+`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`)
	if a.status != http.StatusOK || len(m.sent) != 2 || !strings.Contains(m.sent[1], "unknown_tool") {
		t.Errorf("status %d: %s\nthe model's server got %q", a.status, a.body, m.sent)
	}
}

// A call to a tool that the set leaves out is answered by the server and not handed over.
func TestToolsThatAreNotAllowedAreNotHandedOver(t *testing.T) {
	t.Parallel()
	m := &scriptedServer{answers: []string{callStream("f", `{}`), okStreams[lathe.WireOpenAIChat]}}
	f := m.serve(t)
	a := wireClients["responses"].send(t.Context(), f, false, respHead+`"x","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"},{"type":"function","name":"h"}],`+
		`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"},{"type":"function","name":"h"}]}}`)
	if a.status != http.StatusOK || len(a.message.Calls()) > 0 || a.message.Text() != "ok" || strings.Contains(a.body, "mcp_call") {
		t.Errorf("status %d:\n%s", a.status, a.body)
	}
	if len(m.sent) != 2 || !strings.Contains(m.sent[1], "unknown_tool") || strings.Contains(m.sent[1], `\"f\"`) {
		t.Errorf("the model's server got %q", m.sent)
	}
}

// A renamed tool is called by the client's name for it in any spelling that fits no other tool, and the client gets its own name.
func TestRenamedToolsAreCalledByTheClientsNames(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"namespace","name":"mcp__srv__","description":"T","tools":[{"type":"function","name":"add","parameters":{"type":"object"}},{"type":"function","name":"wait.agent","parameters":{"type":"object"}}]},` +
		`{"type":"namespace","name":"other","description":"T","tools":[{"type":"function","name":"list","parameters":{"type":"object"}}]},{"type":"namespace","name":"third","description":"T","tools":[{"type":"function","name":"list","parameters":{"type":"object"}}]},` +
		`{"type":"function","name":"functions.exec","parameters":{"type":"object"}}]`
	for model, want := range map[string]string{
		"functions.exec":  `"name":"functions.exec"`,
		"functions_exec":  `"name":"functions.exec"`,
		"functions/exec":  `"name":"functions.exec"`,
		"mcp__srv__add":   `"name":"add","namespace":"mcp__srv__"`,
		"add":             `"name":"add","namespace":"mcp__srv__"`,
		"wait_agent":      `"name":"wait.agent","namespace":"mcp__srv__"`,
		"other.list":      `"name":"list","namespace":"other"`,
		"list":            "", // two tools have it
		"something_else":  "",
		"mcp__srv____add": `"name":"add","namespace":"mcp__srv__"`,
	} {
		for _, stream := range []bool{false, true} {
			m := &scriptedServer{answers: []string{callStream(model, `{}`), okStreams[lathe.WireOpenAIChat]}}
			f := m.serve(t)
			a := wireClients["responses"].send(t.Context(), f, stream, respHead+`"x",`+tools+fmt.Sprintf(`,"stream":%v}`, stream))
			members := a.body
			found := want != "" && strings.Contains(members, want)
			if a.status != http.StatusOK || found != (want != "") || (len(a.message.Calls()) == 1) != (want != "") || strings.Contains(a.body, "mcp_call") {
				t.Errorf("%s, stream %v: status %d, want %s:\n%s", model, stream, a.status, want, a.body)
			}
		}
	}
}
