package server_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
)

var idOfAnswer = regexp.MustCompile(`"(?:id|responseId)":"(chatcmpl-[^"]*|resp_[^"]*|msg_[^"]*|[0-9A-Z]{26}[^"]*)"`)

// answerID is the id of an answer on the wire.
func (c *wireClient) answerID(a *wireAnswer) string {
	m := idOfAnswer.FindStringSubmatch(a.body)
	if m == nil {
		return ""
	}
	return m[1]
}

// The answers of one run, which waits twice, have different ids on each wire.
func TestAnswersOfOneRunHaveIDsOfTheirOwn(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		f, _ := asking(t, store.NewMemory(nil))
		tools := []*lathe.ToolSpec{weatherSpec()}
		a := c.ask(f, stream, tools, lathe.User("hi"))
		result := c.gives(a.message.Calls()[0].ID)
		history := []lathe.Message{lathe.User("hi"), c.back(a.message), result}
		b := c.ask(f, stream, tools, history...)
		again := c.ask(f, stream, tools, history...)
		f.approveOnly(a.header.Get("X-Lathe-Run-Id"))
		d := c.ask(f, stream, tools, history...)
		if d.err != nil || !strings.HasPrefix(d.message.Text(), "Done: ") {
			t.Fatalf("%v: %s", d.err, d.body)
		}
		seen := map[string]bool{}
		for i, one := range []*wireAnswer{a, b, again, d} {
			id := c.answerID(one)
			if id == "" || seen[id] || one.header.Get("X-Lathe-Run-Id") != a.header.Get("X-Lathe-Run-Id") {
				t.Errorf("answer %d has the id %q, after %v: %s", i, id, seen, one.body)
			}
			seen[id] = true
		}
	})
}

// The stored responses of one run stay what they were: each is read and continued under its own id.
func TestStoredResponsesOfOneRun(t *testing.T) {
	t.Parallel()
	const weather = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	for how, stream := range bothWays {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f, model := asking(t, store.NewMemory(nil))
			one, text := f.respond(stream, `"input":"hi",`+weather)
			if one == nil {
				t.Fatal(text)
			}
			call := one.Output[len(one.Output)-1]
			output := func(text string) string {
				return fmt.Sprintf(`[{"type":"function_call_output","call_id":%q,"output":%q}]`, call.CallID, text)
			}
			two, text := f.respond(stream, fmt.Sprintf(`"previous_response_id":%q,"input":%s,`, one.ID, output("rain"))+weather)
			if two == nil || two.ID == one.ID || !strings.Contains(two.text(), "This waits for an approval") {
				t.Fatal(text)
			}
			run := regexp.MustCompile(`run_[0-9A-Z]+`).FindString(two.text())
			if resp, body := f.do("POST", "/v1/responses/"+one.ID+"/cancel", ""); resp.StatusCode != 200 || parse[response](t, body).ID != one.ID { // it has ended, and the run goes on
				t.Errorf("the first response is cancelled: %d %s", resp.StatusCode, body)
			}
			f.approveOnly(run)
			read := func(id string) (*response, string) {
				_, body := f.do("GET", "/v1/responses/"+id, "")
				return parse[response](t, body), body
			}
			if got, body := read(one.ID); got.ID != one.ID || got.text() != one.text() || strings.Contains(body, "Done") || len(got.Output) == 0 || got.Output[len(got.Output)-1].CallID != call.CallID {
				t.Errorf("the first response is %s, was %s", body, text)
			}
			if got, body := read(two.ID); got.ID != two.ID || !strings.Contains(got.text(), `Done: {"result":42,"exact":true} rain`) || strings.Contains(body, "function_call\"") {
				t.Errorf("the second response is %s", body)
			}
			if none, body := f.respond(stream, fmt.Sprintf(`"previous_response_id":%q,"input":"and?",`, one.ID)+weather); none != nil || !strings.Contains(body, "missing_tool_result") {
				t.Errorf("the first response without the result of its call: %s", body)
			}
			if three, body := f.respond(stream, fmt.Sprintf(`"previous_response_id":%q,"input":"and?",`, two.ID)+weather); three == nil || three.text() != "user assistant tool tool assistant user" {
				t.Errorf("after the second response: %s", body)
			}
			if four, body := f.respond(stream, fmt.Sprintf(`"previous_response_id":%q,"input":%s,`, one.ID, output("sun"))+weather); four == nil || four.text() != `Done: {"result":42,"exact":true} sun` {
				t.Errorf("another result for the first response: %s", body)
			}
			all := model.all()
			if got := transcript(all[len(all)-1].Messages); strings.Count(got, "=c1") != 1 || strings.Count(got, "=s1") != 1 {
				t.Errorf("the model was sent\n%s", got)
			}
			refer := func(id, kind string) string {
				return fmt.Sprintf(`{"type":"item_reference","id":"%s_%s_0"}`, kind, strings.TrimPrefix(id, "resp_"))
			}
			input := `[{"role":"user","content":"hi"},` + refer(one.ID, "fc") + "," + strings.Trim(output("rain"), "[]") + "," + refer(two.ID, "msg") + `,{"role":"user","content":"and?"}]`
			if five, body := f.respond(stream, `"input":`+input+","+weather); five == nil || five.text() != "user assistant tool tool assistant user" {
				t.Errorf("items of both responses by reference: %s", body)
			}
		})
	}
}

// A decision that a console brings does not end a response whose client handles approvals as items: what the run does after it
// belongs to the response. So does what follows a decision in a request that a message ends, since that message is answered.
func TestDecisionFromElsewhereEndsNoResponse(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"a console", "a request with a message"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			var model *listened
			h := open(t, func(s *setting) {
				model = &listened{Model: s.model}
				s.model = model
			})
			const question = `{"role":"user","content":"write {\"n\":1}"}`
			one, whole := h.respond(false, `"input":[`+question+`]`+showItems)
			if one == nil {
				t.Fatal(whole)
			}
			items := parse[struct{ Output []json.RawMessage }](t, whole).Output
			if from == "a console" {
				h.answerOnly("approve")
			} else if other, text := h.respond(false, fmt.Sprintf(`"input":[%s,%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true},{"role":"user","content":"And?"}]`,
				question, joinItems(items), approvalIn(t, items))+showItems); other == nil {
				t.Fatal(text)
			}
			for way, input := range map[string]string{
				"previous_response_id": fmt.Sprintf(`"previous_response_id":%q,"input":"What is 7 + 35?"`, one.ID),
				"item_reference":       `"input":[` + question + "," + references(t, whole) + `,{"role":"user","content":"What is 7 + 35?"}]`,
			} {
				if next, text := h.respond(false, input+showItems); next == nil {
					t.Fatal(text)
				}
				asked := ""
				for _, got := range model.all() {
					if strings.Contains(got, "7 + 35") {
						asked = got // of the last one
					}
				}
				if strings.Count(asked, "The tools said") != 1 || strings.Contains(asked, "has not decided") {
					t.Errorf("%s: the model got %s", way, asked)
				}
			}
			if _, body := h.do("GET", "/v1/responses/"+one.ID, ""); !strings.Contains(body, "The tools said") || parse[response](t, body).Status != "completed" {
				t.Errorf("the response is %s", body)
			}
		})
	}
}

func joinItems(items []json.RawMessage) string {
	var all []string
	for _, item := range items {
		all = append(all, string(item))
	}
	return strings.Join(all, ",")
}

// Results of the client's calls of a run are taken under the ids that the client got, and under those of the log.
func TestToolResultsUnderTheIDsOfTheClient(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"of the client", "of the log", "of another run"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			f, _ := asking(t, store.NewMemory(nil))
			c := wireClients["chat"]
			tools := []*lathe.ToolSpec{weatherSpec()}
			a := c.ask(f, false, tools, lathe.User("hi"))
			if a.err != nil || len(a.message.Calls()) != 1 {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			id := a.message.Calls()[0].ID
			if got := parse[struct{ Lathe struct{ Pending []string } }](t, a.body).Lathe.Pending; fmt.Sprint(got) != fmt.Sprint([]string{"s1", id}) {
				t.Errorf("pending are %v, and the client's call is %s", got, id)
			}
			run := a.header.Get("X-Lathe-Run-Id")
			status := 200
			switch which {
			case "of the log":
				id = "c1"
			case "of another run":
				run, status = c.ask(f, false, tools, lathe.User("hi again")).header.Get("X-Lathe-Run-Id"), 400
			}
			give := func(more string) (int, string) {
				resp, body := f.do("POST", "/api/runs/"+run+"/tool_results", fmt.Sprintf(`{"results":[{"tool_call_id":%q,"content":"rain"}%s]}`, id, more))
				return resp.StatusCode, body
			}
			if got, body := give(`,{"tool_call_id":"c1","content":"rain"}`); got != 400 {
				t.Errorf("twice: %d %s", got, body)
			}
			if got, body := give(""); got != status {
				t.Errorf("%d %s", got, body)
			}
		})
	}
}

// The id of a response has one spelling, and an event in it is one at which the run waited.
func TestOneSpellingOfAResponse(t *testing.T) {
	t.Parallel()
	f, _ := asking(t, store.NewMemory(nil))
	one, text := f.respond(false, `"input":"hi",`+weatherItem)
	if one == nil {
		t.Fatal(text)
	}
	two, text := f.respond(false, waysToContinue["previous_response_id"](t, one, "")+","+weatherItem)
	if two == nil {
		t.Fatal(text)
	}
	run, event, found := strings.Cut(strings.TrimPrefix(two.ID, "resp_"), "_")
	if !found || "resp_"+run != one.ID {
		t.Fatalf("the ids are %s and %s", one.ID, two.ID)
	}
	for _, id := range []string{run, run + "_" + event} {
		if resp, body := f.do("GET", "/v1/responses/resp_"+id, ""); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", id, resp.StatusCode, body)
		}
	}
	for _, id := range []string{run + "_", run + "_0", run + "_1", run + "_+" + event, run + "_0" + event, run + "_-1", run + "_" + event + "_", run + "_x", strings.ToLower(run), "run_" + run} {
		if resp, body := f.do("GET", "/v1/responses/resp_"+id, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d %s", id, resp.StatusCode, body)
		}
	}
}

// A run may wait twice in one turn, for two results that come one by one. Each answer can be read and continued.
func TestResponsesBetweenTwoWaitsOfOneTurn(t *testing.T) {
	t.Parallel()
	model := &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		if last := req.Messages[len(req.Messages)-1]; last.Role == lathe.RoleTool {
			return says(lathe.Text{Text: "Done."})
		} else if last.Text() == "and?" {
			return says(lathe.Text{Text: "More."})
		}
		return says(calls("s1", "calculator", `{"expression":"6 * 7"}`), calls("c1", "weather", `{"city":"Oslo"}`), calls("c2", "weather", `{"city":"Rome"}`))
	}}
	f := serve(t, &setting{model: model, approvals: approval.NewQueue(nil), policy: policy.Effects{ReadOnly: lathe.Ask}})
	output := func(r *response, i int) string {
		return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"rain %d"}`, r.Output[len(r.Output)-2+i].CallID, i)
	}
	one, text := f.respond(false, `"input":"hi",`+weatherItem)
	if one == nil || len(one.Output) < 2 || one.Output[len(one.Output)-2].CallID == "" {
		t.Fatal(text)
	}
	two, text := f.respond(false, fmt.Sprintf(`"previous_response_id":%q,"input":[%s],`, one.ID, output(one, 0))+weatherItem)
	if two == nil {
		t.Fatal(text)
	}
	three, text := f.respond(false, fmt.Sprintf(`"previous_response_id":%q,"input":[%s],`, two.ID, output(one, 1))+weatherItem)
	if three == nil || !strings.Contains(three.text(), "This waits for an approval") {
		t.Fatal(text)
	}
	f.approveOnly(regexp.MustCompile(`run_[0-9A-Z]+`).FindString(three.text()))
	for i, r := range []*response{one, two, three} {
		resp, body := f.do("GET", "/v1/responses/"+r.ID, "")
		if got := strings.Count(body, "Done."); resp.StatusCode != 200 || got > 0 != (i == 2) {
			t.Errorf("response %d: %d %s", i, resp.StatusCode, body)
		}
	}
	for i, input := range []string{
		fmt.Sprintf(`"previous_response_id":%q,"input":[%s,%s,{"role":"user","content":"and?"}]`, one.ID, output(one, 0), strings.Replace(output(one, 1), "rain", "sun", 1)),
		fmt.Sprintf(`"previous_response_id":%q,"input":[%s,{"role":"user","content":"and?"}]`, two.ID, strings.Replace(output(one, 1), "rain", "sun", 1)),
		fmt.Sprintf(`"previous_response_id":%q,"input":"and?"`, three.ID),
	} {
		next, body := f.respond(false, input+","+weatherItem)
		if next == nil || next.text() != "More." {
			t.Errorf("after response %d: %s", i, body)
			continue
		}
		all := model.all()
		if got := fmt.Sprint(all[len(all)-1].Messages); i < 2 && strings.Contains(got, "rain 1") {
			t.Errorf("after response %d the model got the result of the later response: %s", i, got)
		}
		want := "user \"hi\"\nassistant calculator:s1 weather:c1 weather:c2\ntool =s1\ntool =c1\ntool =c2\n"
		if got := transcript(all[len(all)-1].Messages); !strings.HasPrefix(got, want) || strings.Count(got, "=c1") != 1 {
			t.Errorf("after response %d the model was sent\n%s", i, got)
		}
	}
}
