package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// An answer to an approval that contradicts the decision about the call is refused with 409, which says what was decided and by
// whom, whether the run has read the decision or not; the same answer again is a repetition. In the history of a later request
// it changes nothing.
func TestContradictingApprovalResponseIsRefused(t *testing.T) {
	t.Parallel()
	c := wireClients["responses"]
	for how, stream := range bothWays {
		for decided, approve := range map[string]bool{"approve": false, "deny": true} {
			for _, first := range []string{"a person", "the client"} {
				t.Run(fmt.Sprint(how, " ", decided, " by ", first), func(t *testing.T) {
					t.Parallel()
					h := open(t, nil)
					post := func(input string) *wireAnswer {
						return c.send(t.Context(), h.fixture, stream, fmt.Sprintf(`{"model":"sim/demo","stream":%v,"input":[%s],"tools":[{"type":"mcp","server_label":"lathe","require_approval":"always"}]}`, stream, input))
					}
					ask := `{"type":"message","role":"user","content":"write {\"n\":1}"}`
					a := post(ask)
					id := ""
					if i := strings.Index(a.body, `"mcpr_`); i >= 0 {
						id, _, _ = strings.Cut(a.body[i+1:], `"`)
					}
					if a.err != nil || id == "" {
						t.Fatalf("%v: %s", a.err, a.body)
					}
					response := func(approve bool) string {
						return fmt.Sprintf(`,{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v}`, id, approve)
					}
					if first == "a person" {
						h.answerOnly(decided)
					} else if b := post(ask + response(!approve)); b.err != nil {
						t.Fatalf("%v: %s", b.err, b.body)
					}
					past := map[string]string{"approve": "approved", "deny": "denied"}[decided]
					for range 2 {
						b := post(ask + response(approve))
						if b.status != 409 || b.code() != "already_decided" || !strings.Contains(b.body, "The call was "+past) || strings.Contains(b.body, "mcp_call") {
							t.Errorf("a contradicting answer: %d %s", b.status, b.body)
						}
					}
					if b := post(ask + response(!approve)); b.err != nil || !strings.Contains(b.message.Text(), "The tools said") {
						t.Errorf("the same answer: %v %s", b.err, b.body)
					}
					if b := post(ask + response(approve) + `,{"type":"message","role":"user","content":"look {}"}`); b.err != nil {
						t.Errorf("as history: %d %s", b.status, b.body)
					}
					if n := h.log.wrote.Load(); (n == 1) != (decided == "approve") || n > 1 {
						t.Errorf("written %d times", n)
					}
				})
			}
		}
	}
}
