package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// The same mistake in a request for a run gets the same answer on every wire, and the same member is named.
func TestEveryWireRefusesTheSameRequests(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{limits: lathe.Limits{MaxIterations: 5}, opts: func(o *server.Options) {
		narrow := key("a")
		narrow.Models = []string{"sim/demo"}
		o.Setup.Keys = []server.Key{narrow}
	}})
	labels := map[string]string{}
	for i := range 40 {
		labels[fmt.Sprint("label", i)] = "x"
	}
	many, _ := json.Marshal(labels)
	const tool = `[{"type":"function","function":{"name":"calculator","parameters":{"type":"object"}}}]`
	for name, c := range map[string]struct {
		model, options, tools string
		status                int
		param                 string // without the name of the object that has it
	}{
		"a model of another key":   {model: "sim/other", status: 403, param: "model"},
		"too many labels":          {options: `"labels":` + string(many), status: 400, param: "labels"},
		"a label of the server":    {options: `"labels":{"lathe_request_sha256":"x"}`, status: 400, param: "labels"},
		"labels that are no texts": {options: `"labels":{"a":1}`, status: 400, param: "labels"},
		"an unknown tool":          {options: `"tools":["calculators"]`, status: 400, param: "tools"},
		"a limit above":            {options: `"limits":{"max_iterations":6}`, status: 400, param: "limits.max_iterations"},
		"an unknown mode":          {options: `"tool_use_mode":"relaxd"`, status: 400, param: "tool_use_mode"},
		"the name of a tool":       {tools: tool, status: 400, param: "tools[0].function.name"},
	} {
		model := c.model
		if model == "" {
			model = "sim/demo"
		}
		member := func(name, value string) string {
			if value == "" {
				return ""
			}
			return fmt.Sprintf(`,%q:%s`, name, value)
		}
		object := ""
		if c.options != "" {
			object = "{" + c.options + "}"
		}
		own := ""
		if c.options != "" {
			own = "," + c.options
		}
		answers := map[string]string{}
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"` + model + `","messages":[{"role":"user","content":"x"}]` + member("tools", c.tools) + member("lathe", object) + "}",
			"/api/chat": `{"id":"c1","model":"` + model + `","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"x"}]}]` +
				member("tools", c.tools) + member("lathe", object) + "}",
			"/api/runs": `{"model":"` + model + `","prompt":"x"` + member("client_tools", c.tools) + own + "}",
		} {
			if c.tools != "" && path == "/api/chat" {
				continue // a page's tools have a form of their own
			}
			resp, text := f.do("POST", path, body)
			var said struct {
				Code, Param, Detail string
				Error               struct{ Code, Param, Message string }
			}
			if err := json.Unmarshal([]byte(text), &said); err != nil {
				t.Fatalf("%s at %s: %s", name, path, text)
			}
			if said.Code == "" {
				said.Code, said.Param, said.Detail = said.Error.Code, said.Error.Param, said.Error.Message
			}
			param := strings.TrimPrefix(strings.TrimPrefix(said.Param, "lathe."), "client_")
			if resp.StatusCode != c.status || param != c.param {
				t.Errorf("%s at %s: status %d, param %q, want %d, %q: %s", name, path, resp.StatusCode, said.Param, c.status, c.param, text)
			}
			answers[said.Code+": "+strings.ReplaceAll(said.Detail, "lathe.", "")] = path
		}
		if len(answers) != 1 {
			t.Errorf("%s: the wires answer %v", name, answers)
		}
	}
}
