package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// again is the request with which a client comes back with the results of the calls in m.
func again(m message, results ...string) string {
	for i := range m.ToolCalls {
		m.ToolCalls[i].Index = nil
	}
	said, _ := json.Marshal(m)
	body := `{"role":"user","content":"hi"},` + string(said)
	for i, r := range results {
		body += `,{"role":"tool","tool_call_id":` + quote(m.ToolCalls[i].ID) + `,"content":` + quote(r) + `}`
	}
	return body
}

// What a client did not see of a turn is joined again by a later process, from the store, for the same
// key alone.
func TestHiddenTurnsSurviveARestart(t *testing.T) { // T25
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, who := range []string{"a", "b"} {
			t.Run(fmt.Sprint("stream ", stream, " key ", who), func(t *testing.T) {
				t.Parallel()
				kept := store.NewMemory(nil)
				keys := func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }
				more := fmt.Sprintf(`,"user":"u","tools":[%s],"stream":%v`, weatherTool, stream)
				first := serve(t, &setting{model: mixed(), store: kept, opts: keys})
				m, finish := first.answer(`{"model":"sim/x","messages":[{"role":"user","content":"hi"}]`+more+`}`, stream)
				if finish != "tool_calls" {
					t.Fatalf("finish %s", finish)
				}
				model := mixed()
				second := serve(t, &setting{model: model, store: kept, opts: keys})
				second.key = text(who)
				m, _ = second.answer(`{"model":"sim/x","messages":[`+again(m, "rain")+`]`+more+`}`, stream)
				got := transcript(model.all()[0].Messages)
				want := strings.Join([]string{`user "hi"`, `assistant "First I compute." calculator:s1`, `tool =s1`,
					`assistant "Now both." calculator:s2 weather:c1 calculator:s3`, `tool =s2`, `tool =c1`, `tool =s3`}, "\n")
				if joined := got == want; joined != (who == "a") {
					t.Errorf("joined %v: the model was sent\n%s", joined, got)
				}
				if who == "a" && m.Content != "It is done." {
					t.Errorf("got %+v", m)
				}
				// A conversation that the store does not know is looked for, and goes on as it is.
				second.answer(`{"model":"sim/x","messages":[`+again(message{Role: "assistant", ToolCalls: []wireCall{call("x9")}}, "sun")+`]`+more+`}`, stream)
			})
		}
	}
}

func call(id string) wireCall {
	c := wireCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = "weather", `{"city":"Oslo"}`
	return c
}

// asksAndHands asks for a server's tool that a person must approve, and for one of the client, in one turn.
func asksAndHands() *fake {
	return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		got := transcript(req.Messages)
		if req.Messages[len(req.Messages)-1].Text() == "and?" {
			roles := []string{}
			for i := range req.Messages {
				roles = append(roles, string(req.Messages[i].Role))
			}
			return says(lathe.Text{Text: strings.Join(roles, " ")})
		}
		if strings.Contains(got, "=c1") && strings.Contains(got, "=s1") {
			last := req.Messages[len(req.Messages)-2:]
			return says(lathe.Text{Text: "Done: " + last[0].Parts[0].(lathe.ToolResult).Content + " " + last[1].Parts[0].(lathe.ToolResult).Content})
		}
		return says(calls("s1", "calculator", `{"expression":"6 * 7"}`), calls("c1", "weather", `{"city":"Oslo"}`))
	}}
}

// A run that asks a person and hands a call over waits for both, in whichever order they come, also over
// a restart; it is gone on with as the same run.
func TestRunWithClientToolsAndAnApprovalIsResumable(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"person first", "client first"} {
		for _, restart := range []bool{false, true} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprint(order, " restart ", restart, " stream ", stream), func(t *testing.T) {
					t.Parallel()
					kept := store.NewMemory(nil)
					open := func() *fixture {
						approvals := approval.NewQueue(nil)
						return serve(t, &setting{model: asksAndHands(), store: kept, approvals: approvals, policy: policy.Effects{ReadOnly: lathe.Ask}})
					}
					f := open()
					body := func(messages string) string {
						return fmt.Sprintf(`{"model":"sim/x","messages":[%s],"tools":[%s],"stream":%v,"lathe":{}}`, messages, weatherTool, stream)
					}
					m, finish := f.answer(body(`{"role":"user","content":"hi"}`), stream)
					if finish != "tool_calls" || len(m.ToolCalls) != 1 || !isGatewayID(m.ToolCalls[0].ID) {
						t.Fatalf("got %+v (%s), want the client's call", m, finish)
					}
					rows, _, _ := kept.Runs(t.Context(), &store.RunFilter{})
					if len(rows) != 1 || rows[0].Reason != lathe.ReasonAwaitingApproval || !rows[0].Resumable {
						t.Fatalf("runs %+v, want one that waits for an approval", rows)
					}
					id := rows[0].RunID
					if restart {
						f = open()
					}
					approve := func() {
						_, got := f.do("GET", "/api/runs/"+id, "")
						var r struct {
							Open []struct {
								ID     string `json:"tool_call_id"`
								Digest string `json:"args_digest"`
							} `json:"open_calls"`
						}
						if err := json.Unmarshal([]byte(got), &r); err != nil || r.Open[0].Digest == "" {
							t.Fatalf("%v: %s", err, got)
						}
						if resp, got := f.do("POST", "/api/runs/"+id+"/approvals/s1", `{"decision":"approve","digest":"`+r.Open[0].Digest+`"}`); resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
							t.Fatalf("status %d: %s", resp.StatusCode, got)
						}
					}
					if order == "person first" {
						approve()
					}
					conversation := again(m, "rain")
					m, finish = f.answer(body(conversation), stream)
					if order == "client first" {
						waits := func(m message) bool {
							return finish == "stop" && strings.Contains(m.Content, "waits for an approval") && strings.Contains(m.Content, id) && len(m.ToolCalls) == 0
						}
						if !waits(m) {
							t.Errorf("got %+v (%s), want that it waits", m, finish)
						}
						said := m
						if m, finish = f.answer(body(conversation), stream); !waits(m) {
							t.Errorf("asked again: got %+v (%s), want that it waits", m, finish)
						}
						approve()
						f.crew.Drain(t.Context())
						if m, finish = f.answer(body(conversation), stream); m.Content != `Done: {"result":42,"exact":true} rain` {
							t.Errorf("after the approval: got %+v (%s), want the answer and nothing else", m, finish)
						}
						next := conversation + `,{"role":"assistant","content":` + quote(said.Content) + `},{"role":"user","content":"and?"}`
						if m, _ = f.answer(body(next), stream); m.Content != "user assistant tool tool assistant user" {
							t.Errorf("the next turn is sent as %s", m.Content)
						}
						return
					} else if finish != "stop" || m.Content != `Done: {"result":42,"exact":true} rain` {
						t.Errorf("got %+v (%s), want the answer", m, finish)
					}
					rows, _, _ = kept.Runs(t.Context(), &store.RunFilter{})
					if len(rows) != 1 || rows[0].Reason != lathe.ReasonAnswered {
						t.Errorf("runs %+v, want the one, answered", rows)
					}
				})
			}
		}
	}
}
