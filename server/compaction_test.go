package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
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

// An item compaction_trigger at the end of the input has the model write a summary without tools, whatever its wire: the answer is one
// compaction item, streamed or not, which stands for the conversation in the next request. A model server that speaks Responses gets the
// item itself.
func TestCompactionTrigger(t *testing.T) {
	t.Parallel()
	const begins = `"reasoning":{"effort":"low"},"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}],"text":{"format":{"type":"json_object"}},"input":[` + toolRound
	const trigger = begins + `,{"type":"compaction_trigger"}]`
	for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireMessages, lathe.WireGemini} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%t", w, stream), func(t *testing.T) {
				t.Parallel()
				f, m := modelOn(t, w, provider.Options{})
				resp, text := f.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim/demo","stream":%t,`, stream)+trigger+"}")
				sent := *m.sent.Load()
				if resp.StatusCode != 200 || strings.Count(sent, "Summarize this conversation") != 1 || strings.Contains(sent, "compaction_trigger") ||
					strings.Contains(sent, `"tools"`) || strings.Contains(sent, "json_object") || !strings.Contains(sent, "rain") {
					t.Fatalf("%d %s\nthe model server got %s", resp.StatusCode, text, sent)
				}
				if stream {
					order := regexp.MustCompile(`(?s)event: response\.compaction\.compacting\ndata: \{[^\n]*"item_id":"cmp_[^\n]*"output_index":0.*event: response\.output_item\.added.*event: response\.output_item\.done.*event: response\.completed\ndata: `)
					if !order.MatchString(text) {
						t.Fatal(text)
					}
					text = text[strings.LastIndex(text, `"response":{`)+len(`"response":`):]
					text = text[:strings.Index(text, "\n")-1]
				}
				one := parse[struct {
					Status string
					Output []json.RawMessage
				}](t, text)
				if one.Status != "completed" || len(one.Output) != 1 || !strings.HasPrefix(string(one.Output[0]), `{"id":"cmp_`) || strings.Contains(string(one.Output[0]), `"ok"`) {
					t.Fatal(text)
				}
				if next, text := f.respond(false, `"input":[`+string(one.Output[0])+`,{"role":"user","content":"And?"}]`); next == nil {
					t.Fatal(text)
				}
				if sent := *m.sent.Load(); !strings.Contains(sent, `which was compacted:\n\nok`) || strings.Contains(sent, "Weather?") {
					t.Errorf("the model server got %s", sent)
				}
			})
		}
	}
	for name, tools := range map[string]bool{"relayed": false, "with a tool of the server": true} {
		t.Run("responses "+name, func(t *testing.T) {
			t.Parallel()
			m := &modelServer{stream: okStreams[lathe.WireResponses]}
			model, err := provider.New(lathe.WireResponses, "up-model", &provider.Options{Name: "up", BaseURL: "http://up.invalid", Transport: m, Entry: "entry"})
			if err != nil {
				t.Fatal(err)
			}
			f := serve(t, &setting{model: model, opts: func(o *server.Options) {
				if !tools {
					o.Setup.Tools = nil
				}
			}})
			resp, text := f.do("POST", "/v1/responses", `{"model":"sim/demo","store":false,"stream":true,`+trigger+"}")
			if sent := *m.sent.Load(); resp.StatusCode != 200 || !strings.Contains(sent, `{"type":"compaction_trigger"}`) || strings.Contains(sent, "Summarize this") {
				t.Errorf("%d %s\nthe model server got %s", resp.StatusCode, text, sent)
			}
		})
	}
	f := serve(t, &setting{model: summarizer(func(int) lathe.Message { return says(lathe.Text{Text: " "}) })})
	if resp, text := f.do("POST", "/v1/responses", `{"model":"sim/demo","stream":true,`+trigger+"}"); resp.StatusCode != 502 || !strings.Contains(text, "compaction_failed") {
		t.Errorf("a blank summary: %d %s", resp.StatusCode, text)
	}
	f, _ = modelOn(t, lathe.WireOpenAIChat, provider.Options{})
	if resp, text := f.do("POST", "/v1/responses", `{"model":"sim/demo",`+begins+`,{"type":"compaction_trigger"},{"role":"user","content":"x"}]}`); resp.StatusCode != 400 || !strings.Contains(text, "input[5]") {
		t.Errorf("a trigger that is not the last item: %d %s", resp.StatusCode, text)
	}
}

// The settings that an item configuration_update changes hold for models of each wire: the last ones. A model server that speaks
// Responses gets the items, and the settings of the request.
func TestConfigurationUpdateIsApplied(t *testing.T) {
	t.Parallel()
	const body = `{"model":"sim/demo","store":false,"reasoning":{"effort":"low"},"input":[{"role":"user","content":"one"},{"type":"configuration_update","reasoning":{"effort":"medium"}},` +
		`{"role":"assistant","content":"two"},{"type":"configuration_update","reasoning":{"effort":"high"},"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"kind":{"type":"string"}}}}}},` +
		`{"role":"user","content":"three"}]}`
	for w, want := range map[lathe.Wire][]string{
		lathe.WireOpenAIChat: {`"reasoning_effort":"high"`, `"kind"`},
		lathe.WireMessages:   {`"effort":"high"`, `"kind"`},
		lathe.WireGemini:     {`"kind"`},
		lathe.WireResponses:  {`"effort":"low"`, `{"type":"configuration_update","reasoning":{"effort":"medium"}}`, `{"type":"configuration_update","reasoning":{"effort":"high"}`},
	} {
		f, m := modelOn(t, w, provider.Options{})
		m.stream = strings.ReplaceAll(m.stream, `"ok"`, `"{}"`)
		resp, text := f.do("POST", "/v1/responses", body)
		sent := *m.sent.Load()
		for _, part := range want {
			if resp.StatusCode != 200 || !strings.Contains(sent, part) || w != lathe.WireResponses && strings.Contains(sent, "configuration_update") {
				t.Errorf("%s: %d %s\nthe model server got %s, want %s", w, resp.StatusCode, text, sent, part)
			}
		}
		if listed := resp.Header.Get("X-Lathe-Dropped") + resp.Header.Get("X-Lathe-Ignored"); listed != "" {
			t.Errorf("%s: %s is listed, and was applied", w, listed)
		}
	}
	f, _ := modelOn(t, lathe.WireOpenAIChat, provider.Options{})
	for item, want := range map[string]string{`{"type":"configuration_update","reasoning":{"effort":5}}`: `"input[0].reasoning.effort"`, `{"type":"configuration_update","reasoning":5}`: `"input[0].reasoning"`} {
		if resp, text := f.do("POST", "/v1/responses", `{"model":"sim/demo","input":[`+item+`,{"role":"user","content":"x"}]}`); resp.StatusCode != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", item, resp.StatusCode, text)
		}
	}
}
