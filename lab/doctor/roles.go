package doctor

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/lathe-run/lathe"
)

// roleTests are conversations that clients send and chat templates may refuse, each with the setting with which Lathe sends it in another
// form.
var roleTests = []struct {
	finding  string
	messages []lathe.Message
	mend     Setting
}{
	{"developer-refused", []lathe.Message{{Role: lathe.RoleDeveloper, Parts: []lathe.Part{lathe.Text{Text: "Be brief."}}}, lathe.User(echoPrompt)},
		Setting{Key: "accepts.developer", Value: "no"}},
	{"late-system-refused", []lathe.Message{lathe.System("Be brief."), lathe.User("Hello."), lathe.Assistant("Hello."), lathe.System("Be exact."), lathe.User(echoPrompt)},
		Setting{Key: "accepts.system", Value: "one"}},
}

// answerFormat is a response format that no tool call matches.
const answerFormat = `{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}}}`

// probeTakes tests the rules of docs/internals/destinations.md: roles, and a response format together with a tool that the model should call.
func probeTakes(ctx context.Context, x *examiner) {
	for _, t := range roleTests {
		req := x.request("")
		req.Messages = t.messages
		expectAccepted(ctx, x, req, t.finding, t.mend)
	}
	if x.ownCall == nil { // a response format can only suppress native calls
		return
	}
	req := x.request(notePrompt, saveNote)
	req.Sampling.ResponseFormat = json.RawMessage(answerFormat)
	e := x.post(ctx, req, unstreamed)
	refused := e.status >= 400 && !isTemporary(e.status)
	_, fin, err := x.codec.NewAssembler(nil).Complete(nil, e.body)
	if refused || e.status == http.StatusOK && err == nil && len(fin.Message.Calls()) == 0 {
		detail := ""
		if refused {
			detail = e.explain()
		}
		x.findAndMend("format-beside-tools", "accepts.format", "alone", detail)
	}
}
