package sim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/sim"
)

func TestServerRefusesHistoriesThatModelServersRefuse(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(sim.New(nil).Handler())
	t.Cleanup(srv.Close)
	const (
		user = `{"role":"user","content":"hi"}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		tool = `{"role":"tool","tool_call_id":"call_1","content":"ok"}`
		text = `{"role":"assistant","content":"done"}`
	)
	withArgs := func(args string) string {
		quoted, _ := json.Marshal(args) //nolint:errchkjson // a string
		return user + "," + strings.Replace(call, `"{}"`, string(quoted), 1) + "," + tool
	}
	for name, c := range map[string]struct{ model, messages, want string }{
		"good":                {"sim/demo", user + "," + call + "," + tool, ""},
		"good, any order":     {"sim/demo", user + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":""},{"role":"tool","tool_call_id":"a","content":""}`, ""},
		"call not answered":   {"sim/demo", user + "," + call, "must be followed by tool messages"},
		"user before answer":  {"sim/demo", user + "," + call + "," + user + "," + tool, "must be followed by tool messages"},
		"answered twice":      {"sim/demo", user + "," + call + "," + tool + "," + tool, "must be a response to a preceding message"},
		"answer without call": {"sim/demo", user + "," + tool, "must be a response to a preceding message"},
		"no arguments":        {"sim/demo", withArgs(""), "invalid tool call arguments"},
		"cut arguments":       {"sim/demo", withArgs(`{"a":"6 * 7`), "invalid tool call arguments"},
		"arguments a list":    {"sim/demo", withArgs(`[1]`), "invalid tool call arguments"},
		"arguments a string":  {"sim/demo", withArgs(`"{}"`), "invalid tool call arguments"},
		"arguments null":      {"sim/demo", withArgs(`null`), "invalid tool call arguments"},
		"dialect":             {"sim/demo+hermes", user + "," + call, "must be followed by tool messages"},
		"user after tool":     {"sim/demo", user + "," + call + "," + tool + "," + user, ""},

		"strict, user after tool":      {"sim/fault-strict-roles", user + "," + call + "," + tool + "," + user, "must alternate"},
		"strict, two users":            {"sim/fault-strict-roles", user + "," + user, "must alternate"},
		"strict, two users, dialect":   {"sim/fault-strict-roles+hermes", user + "," + user, "must alternate"},
		"strict, assistant first":      {"sim/fault-strict-roles", text + "," + user, "must alternate"},
		"strict, system later":         {"sim/fault-strict-roles", user + `,{"role":"system","content":"x"}`, "must alternate"},
		"strict, good":                 {"sim/fault-strict-roles", `{"role":"system","content":"x"},` + user + "," + call + "," + tool, ""},
		"strict, good, several rounds": {"sim/fault-strict-roles", user + "," + call + "," + tool + "," + text + "," + user, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+c.model+`","messages":[`+c.messages+`]}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && resp.StatusCode != http.StatusOK:
				t.Errorf("HTTP %d %s", resp.StatusCode, body)
			case c.want != "" && (resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), c.want)):
				t.Errorf("HTTP %d %s, want 400 with %q", resp.StatusCode, body, c.want)
			}
		})
	}
}

func TestModelRefusesUnansweredCalls(t *testing.T) {
	t.Parallel()
	history := []lathe.Message{lathe.User("hi"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "f", Arguments: "{}"}}}}
	for _, name := range []string{"sim/demo", "sim/demo+tags", "sim/fault-crlf"} {
		_, _, err := turn(t, sim.New(nil).Model(name), &lathe.Request{Model: name, Messages: history})
		if code := lathe.CodeOf(err); code != lathe.CodeUpstream || !strings.Contains(err.Error(), "400") {
			t.Errorf("%s: %v, want a refusal with 400", name, err)
		}
	}
}
