package sim

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// evalRequest returns a request whose system text says what to set; the model is asked for its next step.
func evalRequest(prompt string, history ...lathe.Message) *lathe.Request {
	return &lathe.Request{
		Messages: append([]lathe.Message{lathe.System(prompt + " Reply with exactly this text: Done."), lathe.User("workspace_id=w-1")}, history...),
		Tools:    []*lathe.ToolSpec{{Name: "state_get"}, {Name: "state_patch"}},
	}
}

func called(id, name string) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: id, Name: name, Arguments: "{}"}}}
}

func told(id, content string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: content}}}
}

func TestEvalModelFollowsItsInstructions(t *testing.T) {
	t.Parallel()
	const set = `Set it up: set /draft/foo to "bar".`
	read := []lathe.Message{called("c1", "state_get"), told("c1", `{"draft":{}}`)}
	refused := append(append([]lathe.Message{}, read...), called("c2", "state_patch"), told("c2", `{"ok":false,"error":{"code":"invalid_arguments"}}`))
	changed := append(append([]lathe.Message{}, read...), called("c2", "state_patch"), told("c2", `{"draft_etag":"draft:2","applied":1}`))
	const good = `{"workspace_id":"w-1","request_id":"r1","ops":[{"op":"set","path":"/draft/foo","value":"bar"}]}`
	for name, c := range map[string]struct {
		how  string
		req  *lathe.Request
		want string // calls as "name arguments", or the text
	}{
		"reads first":           {"", evalRequest(set), `state_get {"workspace_id":"w-1"}`},
		"then changes":          {"", evalRequest(set, read...), "state_patch " + good},
		"then says so":          {"", evalRequest(set, changed...), "Done."},
		"repairs":               {"", evalRequest(set, refused...), "state_patch " + strings.Replace(good, "r1", "r2", 1)},
		"leaves the id out":     {"", evalRequest(set + " never pass workspace_id"), "state_get {}"},
		"errs when told":        {"", evalRequest(set+" give ops as a string", read...), `state_patch {"workspace_id":"w-1","request_id":"r1","ops":"set /draft/foo"}`},
		"both at once":          {"", evalRequest(set + " both of these calls in one message"), `state_get {"workspace_id":"w-1"}; state_patch ` + good},
		"a wrong path":          {"", evalRequest(`set /draft/locked to "bar" on purpose, then `+set, read...), "state_patch " + strings.Replace(good, "/foo", "/locked", 1)},
		"too long":              {"", evalRequest(set+" 3 times the letter x", read...), "state_patch " + strings.Replace(good, `"bar"`, `"xxx"`, 1)},
		"never-calls":           {"never-calls", evalRequest(set), "Done."},
		"never-calls elsewhere": {"never-calls", &lathe.Request{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}, Tools: []*lathe.ToolSpec{{Name: "calculator"}}}, "Done."},
		"wrong-order":           {"wrong-order", evalRequest(set), "state_patch " + good},
		"never-repairs":         {"never-repairs", evalRequest(set, refused...), "Done."},
		"no tools, so words":    {"", &lathe.Request{Messages: []lathe.Message{lathe.User("Reply exactly with: Yes.")}}, "Yes."},
		"other prompts as demo": {"", &lathe.Request{Messages: []lathe.Message{lathe.User("Hello.")}}, chat("Hello.")},
	} {
		turn := evaluated(c.req, c.how)
		var got []string
		for _, call := range turn.Calls {
			got = append(got, call.Name+" "+call.Arguments)
		}
		if len(got) == 0 {
			got = []string{turn.Text}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "; "), c.want)
		}
	}
}

func TestEvalModelsAreKnownByName(t *testing.T) {
	t.Parallel()
	s := New(nil)
	for _, m := range Misbehaviours() {
		if sp, err := s.parse(EvalModel + "-" + m.Name); err != nil || sp.how != m.Name || m.Does == "" {
			t.Errorf("%s: %+v, %v", m.Name, sp, err)
		}
	}
	if _, err := s.parse(EvalModel + "-unheard-of"); err == nil {
		t.Error("a misbehaviour that is not there is a model")
	}
}
