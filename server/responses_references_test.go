package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// references are items that refer to those of a response, as a client writes them that does not repeat stored items.
func references(t *testing.T, whole string, without ...string) string {
	t.Helper()
	var items []string
	for _, item := range parse[struct {
		Output []struct{ ID, Type string }
	}](t, whole).Output {
		if len(without) == 0 || item.Type != without[0] {
			items = append(items, fmt.Sprintf(`{"type":"item_reference","id":%q}`, item.ID))
		}
	}
	return strings.Join(items, ",")
}

// References to the items of a response give the model all that its run added, calls of the server included, once; a call of
// the client may stand before or after them, and is not repeated.
func TestItemReferencesAreResolved(t *testing.T) {
	t.Parallel()
	const weather = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	for _, beside := range []string{"no", "after", "before"} {
		t.Run("call="+beside, func(t *testing.T) {
			t.Parallel()
			model := mixed()
			f := serve(t, &setting{model: model})
			one, whole := f.respond(false, `"input":"hi",`+weather)
			if one == nil {
				t.Fatal(whole)
			}
			call := one.Output[len(one.Output)-1]
			input := `{"role":"user","content":"hi"},` + references(t, whole)
			if beside != "no" {
				items := []string{references(t, whole, "function_call"), fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"weather","arguments":%q}`, call.CallID, call.Arguments)}
				if beside == "before" {
					slices.Reverse(items)
				}
				input = `{"role":"user","content":"hi"},` + strings.Join(items, ",")
			}
			if none, text := f.respond(false, fmt.Sprintf(`"input":[%s,{"role":"user","content":"x"}],%s`, input, weather)); none != nil || !strings.Contains(text, "missing_tool_result") {
				t.Errorf("without the result of the call: %s", text)
			}
			input += fmt.Sprintf(`,{"type":"function_call_output","call_id":%q,"output":"rain"}`, call.CallID)
			two, text := f.respond(false, fmt.Sprintf(`"input":[%s],%s`, input, weather))
			if two == nil || two.text() != "It is done." {
				t.Fatal(text)
			}
			three, text := f.respond(true, fmt.Sprintf(`"input":[%s,%s,{"role":"user","content":"And?"}],%s`, input, references(t, text), weather))
			if three == nil {
				t.Fatal(text)
			}
			all := model.all()
			want := strings.Join([]string{`user "hi"`, `assistant "First I compute." calculator:s1`, `tool =s1`,
				`assistant "Now both." calculator:s2 weather:c1 calculator:s3`, `tool =s2`, `tool =c1`, `tool =s3`, `assistant "It is done."`, `user "And?"`}, "\n")
			if got := transcript(all[3].Messages); got != want { // the third run's first
				t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A reference to an item that the caller does not have is refused: the model is not asked without it.
func TestItemReferencesToNothingAreRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }})
	one, whole := f.respond(false, `"input":"What is 7 + 35?"`)
	if one == nil {
		t.Fatal(whole)
	}
	none, unkept := f.respond(false, `"store":false,"input":"What is 7 + 35?"`)
	if none == nil {
		t.Fatal(unkept)
	}
	for name, c := range map[string]struct{ items, header string }{
		"of another key": {references(t, whole), "Bearer " + text("bob")},
		"not stored":     {references(t, unkept), ""},
		"unknown":        {`{"type":"item_reference","id":"msg_01M82SHEVNBB634ZWSVWP464XQ_0"}`, ""},
		"odd":            {`{"type":"item_reference","id":"x"}`, ""},
	} {
		var header []string
		if c.header != "" {
			header = []string{"Authorization", c.header}
		}
		resp, text := f.do("POST", "/v1/responses", `{"model":"sim/demo","input":[`+c.items+`,{"role":"user","content":"And?"}]}`, header...)
		if resp.StatusCode != 404 || !strings.Contains(text, "item_not_found") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
}

// A call beside references is left out only if the responses that they refer to have it: ids of calls may repeat from turn to turn.
func TestCallBesideReferencesKeepsItsPlace(t *testing.T) {
	t.Parallel()
	model := mixed()
	f := serve(t, &setting{model: model})
	const weather = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	one, whole := f.respond(false, `"store":true,"input":"hi"`)
	if one == nil {
		t.Fatal(whole)
	}
	const round = `{"type":"function_call","call_id":"c9","name":"weather","arguments":"{}"},{"type":"function_call_output","call_id":"c9","output":"rain"}`
	two, text := f.respond(false, `"input":[{"role":"user","content":"a"},`+round+`,{"role":"user","content":"hi"},`+references(t, whole)+`,`+round+`,{"role":"user","content":"And?"}],`+weather)
	if two == nil {
		t.Fatal(text)
	}
	for _, req := range model.all() {
		if got := transcript(req.Messages); strings.Contains(got, `user "And?"`) {
			if n := strings.Count(got, "weather:c9"); n != 2 {
				t.Errorf("the model was sent %d calls of the client, want 2:\n%s", n, got)
			}
			return
		}
	}
	t.Error("the model was not asked")
}
