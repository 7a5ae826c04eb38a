package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// Reasoning goes back to the entry that wrote it, in the member that it came in, and to no other.
func TestReasoningGoesBackWhereItCameFrom(t *testing.T) {
	t.Parallel()
	think := `{"role":"assistant","reasoning":"hm \u00e9"}`
	for _, relayed := range []bool{false, true} {
		for _, stream := range []bool{false, true} {
			set := &setting{instead: turns([]string{think, deltaText("Answer.")})}
			if relayed {
				set.opts = func(o *server.Options) { o.Setup.Tools = nil }
			}
			f := serve(t, set)
			f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", fmt.Sprintf(`,"stream":%v`, stream)))
			again := func(model, member, text, dropped string) string {
				resp, _ := f.do("POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Answer.","`+member+`":"`+text+`"},{"role":"user","content":"y"}]}`)
				if got := resp.Header.Get("X-Lathe-Dropped"); got != dropped {
					t.Errorf("relayed %v, stream %v: %s: X-Lathe-Dropped is %q, want %q", relayed, stream, model, got, dropped)
				}
				sent := f.seen.all()
				return sent[len(sent)-1]
			}
			if sent := again("sim/demo", "reasoning_content", "hm é", ""); !strings.Contains(sent, `"reasoning":"hm é"`) || strings.Contains(sent, "reasoning_content") {
				t.Errorf("relayed %v, stream %v: its own entry is sent %s", relayed, stream, sent)
			}
			if sent := again("sim/other", "reasoning_content", "hm é", "messages[1].reasoning_content"); strings.Contains(sent, "reasoning") || !strings.Contains(sent, "Answer.") {
				t.Errorf("relayed %v, stream %v: another entry is sent %s", relayed, stream, sent)
			}
			if sent := again("sim/other", "reasoning_content", "from elsewhere", ""); !strings.Contains(sent, `"reasoning_content":"from elsewhere"`) {
				t.Errorf("relayed %v, stream %v: reasoning from elsewhere is not sent: %s", relayed, stream, sent)
			}
		}
	}
}

// Within a run, reasoning goes back beside the calls that it led to.
func TestReasoningStaysWithinARun(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{instead: turns([]string{`{"role":"assistant","reasoning_content":"need a tool"}`, deltaCall("c1", "calculator", `{"expression":"6*7"}`)}, []string{deltaText("42")})})
	f.complete(ask("sim/demo", "x", ""))
	if sent := f.seen.all(); len(sent) != 2 || !strings.Contains(sent[1], `"reasoning_content":"need a tool"`) {
		t.Errorf("the second turn is sent %s", sent)
	}
}

// The same holds for clients of other wires, whose messages have no such member.
func TestReasoningOfOtherWiresGoesBackInItsMember(t *testing.T) {
	t.Parallel()
	for client, again := range map[string]string{
		"responses": respHead + `[{"role":"user","content":"x"},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Answer."}]},{"role":"user","content":"y"}]}`,
		"messages":  msgHead + `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"Answer."}]},{"role":"user","content":"y"}]}`,
	} {
		f := serve(t, &setting{instead: turns([]string{`{"role":"assistant","reasoning":"hm"}`, deltaText("Answer.")}), opts: func(o *server.Options) { o.Setup.Tools = nil }})
		c := wireClients[client]
		c.ask(f, false, nil, lathe.User("x"))
		a := c.send(t.Context(), f, false, again)
		sent := f.seen.all()
		if last := sent[len(sent)-1]; a.status != 200 || !strings.Contains(last, `"reasoning":"hm"`) {
			t.Errorf("%s: %d, its own entry is sent %s", client, a.status, last)
		}
		c.send(t.Context(), f, false, strings.ReplaceAll(strings.Replace(again, "sim/demo", "sim/other", 1), `"y"`, `"z"`))
		if sent := f.seen.all(); strings.Contains(sent[len(sent)-1], `"hm"`) {
			t.Errorf("%s: another entry is sent %s", client, sent[len(sent)-1])
		}
	}
}
