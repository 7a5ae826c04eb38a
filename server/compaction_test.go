package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// A compactionBody is the answer to a request to compact a conversation.
type compactionBody struct {
	ID, Object string
	Created    int64 `json:"created_at"`
	Output     []json.RawMessage
	Usage      struct {
		Input, Total int64
		Details      json.RawMessage `json:"input_tokens_details"`
	}
}

// summarizer answers a request to summarize with "Summary N.", and all other requests with "Answer.".
func summarizer(summary func(n int) lathe.Message) *fake {
	return &fake{turn: func(n int, req *lathe.Request) lathe.Message {
		if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text(), "Summarize this conversation") {
			return summary(n)
		}
		return says(lathe.Text{Text: "Answer."})
	}}
}

func plainSummary(n int) lathe.Message { return says(lathe.Text{Text: fmt.Sprintf("Summary %d.", n)}) }

func (f *fixture) compact(body string, header ...string) (*compactionBody, string) {
	f.t.Helper()
	resp, text := f.do("POST", "/v1/responses/compact", body, header...)
	if resp.StatusCode != 200 {
		return nil, text
	}
	if resp.Header.Get("X-Lathe-Run-Id") == "" {
		f.t.Error("the answer does not name its run")
	}
	return parse[compactionBody](f.t, text), text
}

const toolRound = `{"role":"user","content":"Weather?"},{"type":"function_call","call_id":"c1","name":"weather","arguments":"{}"},` +
	`{"type":"function_call_output","call_id":"c1","output":"rain"},{"role":"assistant","content":"It rains."}`

// The output of a compaction is the input of the next request: the model gets the summary as a message of the user at its place,
// nothing sealed, and a second compaction covers the first.
func TestCompactionStandsForTheConversation(t *testing.T) {
	t.Parallel()
	model := summarizer(plainSummary)
	f := serve(t, &setting{model: model})
	one, text := f.compact(`{"model":"sim/demo","instructions":"Be brief.","prompt_cache_key":"k","tools":[{"type":"function","name":"weather"}],"input":[` + toolRound + `]}`)
	if one == nil || one.Object != "response.compaction" || !strings.HasPrefix(one.ID, "resp_") || one.Created == 0 || len(one.Output) != 2 ||
		!strings.Contains(string(one.Output[0]), "Weather?") || !strings.Contains(string(one.Output[1]), `"type":"compaction"`) ||
		strings.Contains(text, "Summary") || strings.Contains(text, "It rains") {
		t.Fatal(text)
	}
	all := model.all()
	asked := all[len(all)-1]
	if got := transcript(asked.Messages); len(asked.Tools) != 0 || !strings.Contains(got, `system "Be brief."`) || !strings.Contains(got, "weather:c1") || !strings.Contains(got, "=c1") {
		t.Errorf("the model was asked with %d tools:\n%s", len(asked.Tools), got)
	}
	items := string(one.Output[0]) + "," + string(one.Output[1])
	next, text := f.respond(true, `"input":[`+items+`,{"role":"assistant","content":"Go on."},{"role":"user","content":"And?"}]`)
	if next == nil || next.text() != "Answer." {
		t.Fatal(text)
	}
	all = model.all()
	want := "user \"Weather?\"\nuser \"Summary of the conversation so far, which was compacted:\\n\\nSummary 1.\"\nassistant \"Go on.\"\nuser \"And?\""
	if got := transcript(all[len(all)-1].Messages); got != want {
		t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
	}
	again, text := f.compact(`{"model":"sim/demo","previous_response_id":"` + next.ID + `"}`)
	if again == nil || len(again.Output) != 4 { // both messages of the user, the summary, which is one too, and the new item
		t.Fatal(text)
	}
	all = model.all()
	if got := transcript(all[len(all)-1].Messages); !strings.Contains(got, "Summary 1.") || !strings.Contains(got, `assistant "Answer."`) {
		t.Errorf("the model was asked with\n%s", got)
	}
	for _, body := range []string{`"input":[` + items + `]`, `"previous_response_id":"` + next.ID + `","input":"x"`} {
		resp, count := f.do("POST", "/v1/responses/input_tokens", `{"model":"sim/demo",`+body+`}`)
		if n := parse[struct {
			Object string
			Tokens int `json:"input_tokens"`
		}](t, count); resp.StatusCode != 200 || n.Object != "response.input_tokens" || n.Tokens < 20 || n.Tokens > 60 {
			t.Errorf("%s: %d %s", body, resp.StatusCode, count)
		}
	}
}

// A compaction item of another key or server, or one that was changed, is refused and reaches no model; one of a vendor is kept.
func TestCompactionItemBelongsToItsKey(t *testing.T) {
	t.Parallel()
	model := summarizer(plainSummary)
	keys := func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	f, other := serve(t, &setting{model: model, opts: keys}), serve(t, &setting{model: model, opts: keys})
	made, text1 := f.compact(`{"model":"sim/demo","input":"hi"}`)
	if made == nil {
		t.Fatal(text1)
	}
	item := string(made.Output[len(made.Output)-1])
	before := len(model.all())
	changed := strings.Replace(item, "lathe1.A", "lathe1.B", 1)
	if changed == item {
		changed = strings.Replace(item, "lathe1.", "lathe1.A", 1)
	}
	for name, c := range map[string]struct {
		at   *fixture
		item string
		key  string
		code string
	}{
		"another key":        {f, item, "bob", "invalid_encrypted_content"},
		"another server":     {other, item, "ann", "invalid_encrypted_content"},
		"changed":            {f, changed, "ann", "invalid_encrypted_content"},
		"within a call":      {f, `{"type":"function_call","call_id":"c1","name":"w","arguments":"{}"},` + item + `,{"type":"function_call_output","call_id":"c1","output":"x"}`, "ann", "invalid_encrypted_content"},
		"more than are read": {f, strings.Repeat(item+",", 64) + item, "ann", "invalid_request"},
	} {
		for _, path := range []string{"/v1/responses", "/v1/responses/compact", "/v1/responses/input_tokens"} {
			resp, body := c.at.do("POST", path, `{"model":"sim/demo","input":[`+c.item+`,{"role":"user","content":"x"}]}`, "Authorization", "Bearer "+text(c.key))
			if resp.StatusCode != 400 || !strings.Contains(body, `"`+c.code+`"`) || strings.Contains(body, "lathe1.") {
				t.Errorf("%s at %s: %d %s", name, path, resp.StatusCode, body)
			}
		}
	}
	if n := len(model.all()); n != before {
		t.Errorf("the model was called %d times", n-before)
	}
	if one, body := f.respond(false, `"input":[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"},{"role":"user","content":"x"}]`); one == nil {
		t.Errorf("an item of a vendor: %s", body)
	}
	if one, body := f.respond(false, `"input":[`+item+`,{"role":"user","content":"x"}]`); one == nil {
		t.Errorf("the item of the key: %s", body)
	}
}

// A summary that is missing, cut off or too long is an error, and so is a request that cannot be compacted.
func TestCompactionFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    string
		summary lathe.Message
		status  int
		want    string
	}{
		"no model":   {`{"input":"hi"}`, says(), 400, `"model"`},
		"no input":   {`{"model":"sim/demo"}`, says(), 400, `"input"`},
		"streamed":   {`{"model":"sim/demo","input":"hi","stream":true}`, says(), 400, "unsupported_parameter"},
		"background": {`{"model":"sim/demo","input":"hi","background":true}`, says(), 400, "unsupported_parameter"},
		"detached":   {`{"model":"sim/demo","input":"hi","lathe":{"detach":true}}`, says(), 400, "lathe.detach"},
		"unknown id": {`{"model":"sim/demo","previous_response_id":"resp_1"}`, says(), 400, "previous_response_not_found"},
		"open call":  {`{"model":"sim/demo","input":[{"type":"function_call","call_id":"c1","name":"w","arguments":"{}"}]}`, says(), 400, "missing_tool_result"},
		"blank":      {`{"model":"sim/demo","input":"hi"}`, says(lathe.Text{Text: " "}), 502, "compaction_failed"},
		"too long":   {`{"model":"sim/demo","input":"hi"}`, says(lathe.Text{Text: strings.Repeat("x", 256<<10+1)}), 502, "compaction_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &setting{model: summarizer(func(int) lathe.Message { return c.summary })})
			if resp, body := f.do("POST", "/v1/responses/compact", c.body); resp.StatusCode != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, body, c.status, c.want)
			}
		})
	}
}

// The repeated messages of the user are the last ones, within their limit.
func TestCompactionKeepsTheLastInput(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{model: summarizer(plainSummary)})
	long := func(name string) string {
		return fmt.Sprintf(`{"role":"user","content":"%s %s"}`, name, strings.Repeat("x", 20<<10))
	}
	made, text := f.compact(`{"model":"sim/demo","input":[{"role":"user","content":"first"},` + long("second") + "," + long("third") + `,{"role":"developer","content":"rule"},{"role":"user","content":"fourth"}]}`)
	if made == nil || len(made.Output) != 3 || !strings.Contains(string(made.Output[0]), "third") || !strings.Contains(string(made.Output[1]), "fourth") {
		t.Fatal(text)
	}
}
