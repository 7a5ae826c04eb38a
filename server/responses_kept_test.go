package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A response is what a client reads of a response, whole.
type response struct {
	ID     string
	Status string
	Store  bool
	Error  json.RawMessage
	Output []struct {
		Type, Name, Arguments, Output string
		CallID                        string `json:"call_id"`
		Content                       []struct{ Text string }
	}
}

func (r *response) text() (text string) {
	for _, item := range r.Output {
		for _, part := range item.Content {
			text += part.Text
		}
	}
	return text
}

// respond posts a request, streamed or not, and returns the response that it comes to.
func (f *fixture) respond(stream bool, body string) (*response, string) {
	f.t.Helper()
	resp, text := f.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim/demo","stream":%v,%s}`, stream, body))
	if resp.StatusCode != http.StatusOK {
		return nil, text
	}
	if !stream {
		return parse[response](f.t, text), text
	}
	var last *response
	for line := range strings.Lines(text) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {"); ok {
			if e := parse[struct{ Response *response }](f.t, "{"+data); e.Response != nil {
				last = e.Response
			}
		}
	}
	return last, text
}

// A request that goes on from a response gives the model the input and the output of that response, calls of the server
// included, and the instructions of its own alone.
func TestPreviousResponseIsTheContext(t *testing.T) {
	t.Parallel()
	const weather = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	for how, stream := range bothWays {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			model := mixed()
			f := serve(t, &setting{model: model})
			one, text := f.respond(stream, `"instructions":"Be brief.","input":"hi",`+weather)
			if one == nil || !one.Store || one.Status != "completed" {
				t.Fatal(text)
			}
			call := one.Output[len(one.Output)-1]
			two, text := f.respond(stream, fmt.Sprintf(`"instructions":"Be long.","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"rain"}],%s`, one.ID, call.CallID, weather))
			if two == nil || two.text() != "It is done." {
				t.Fatal(text)
			}
			all := model.all()
			want := strings.Join([]string{`system "Be long."`, `user "hi"`, `assistant "First I compute." calculator:s1`, `tool =s1`,
				`assistant "Now both." calculator:s2 weather:c1 calculator:s3`, `tool =s2`, `tool =c1`, `tool =s3`}, "\n")
			if got := transcript(all[len(all)-1].Messages); got != want {
				t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
			}
			three, text := f.respond(stream, fmt.Sprintf(`"previous_response_id":%q,"input":"And?"`, two.ID))
			if three == nil {
				t.Fatal(text)
			}
			all = model.all()
			last := all[len(all)-1].Messages
			if got := transcript(last); strings.Contains(got, "Be ") || !strings.Contains(got, `assistant "It is done."`) || last[len(last)-1].Role == lathe.RoleSystem {
				t.Errorf("the model was sent\n%s", got)
			}
			if none, text := f.respond(stream, fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, one.ID)); none != nil || !strings.Contains(text, "missing_tool_result") {
				t.Errorf("without the result of its call: %s", text)
			}
		})
	}
}

// A response can be read, listed and deleted by its owner alone, and is gone for every request after that.
func TestStoredResponseBelongsToItsKey(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }})
	one, text1 := f.respond(false, `"instructions":"Be brief.","input":"What is 7 + 35?"`)
	if one == nil {
		t.Fatal(text1)
	}
	path := "/v1/responses/" + one.ID
	for _, c := range []struct{ method, path, body string }{{"GET", path, ""}, {"DELETE", path, ""}, {"POST", path + "/cancel", ""}, {"GET", path + "/input_items", ""}} {
		for id, header := range map[string][]string{"of ann": {"Authorization", "Bearer " + text("bob")}, "unknown": nil} {
			at := c.path
			if id == "unknown" {
				at = strings.Replace(at, "resp_", "resp_0", 1)
			}
			if resp, body := f.do(c.method, at, c.body, header...); resp.StatusCode != 404 || !strings.Contains(body, "previous_response_not_found") {
				t.Errorf("%s %s %s: %d %s", c.method, c.path, id, resp.StatusCode, body)
			}
		}
	}
	for _, own := range []string{path, path + "/cancel"} {
		method := "GET"
		if own != path {
			method = "POST"
		}
		resp, body := f.do(method, own, "")
		again := parse[response](t, body)
		if resp.StatusCode != 200 || again.ID != one.ID || again.Status != "completed" || again.text() != one.text() || strings.Count(body, `"mcp_call"`) != 1 || !strings.Contains(body, `"instructions":"Be brief."`) {
			t.Errorf("%s: %d %s, want %s", own, resp.StatusCode, body, text1)
		}
	}
	if resp, body := f.do("GET", path+"/input_items?order=asc", ""); resp.StatusCode != 200 || strings.Count(body, `"id"`) != 1 || !strings.Contains(body, "What is 7 + 35?") || strings.Contains(body, "Be brief") {
		t.Errorf("the input: %d %s", resp.StatusCode, body)
	}
	if resp, body := f.do("DELETE", path, ""); resp.StatusCode != 200 || !strings.Contains(body, `"deleted":true`) {
		t.Errorf("deleted: %d %s", resp.StatusCode, body)
	}
	if none, body := f.respond(false, fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, one.ID)); none != nil || !strings.Contains(body, "previous_response_not_found") {
		t.Errorf("after it was deleted: %s", body)
	}
}

// With store false, and without a store, a response is not kept, and says so.
func TestResponseThatIsNotStored(t *testing.T) {
	t.Parallel()
	for name, nothing := range map[string]bool{"store false": false, "no store": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &setting{nothing: nothing, opts: func(o *server.Options) {
				if nothing {
					o.Index, o.Supervisor = nil, nil
				}
			}})
			keep := `"store":false,`
			if nothing {
				keep = `"store":true,`
			}
			one, text := f.respond(true, keep+`"input":"What is 7 + 35?"`)
			if one == nil || one.Store {
				t.Fatal(text)
			}
			if none, body := f.respond(true, fmt.Sprintf(`"previous_response_id":%q,"input":"x"`, one.ID)); none != nil || !strings.Contains(body, "previous_response_not_found") {
				t.Errorf("got %s", body)
			}
			if resp, body := f.do("GET", "/v1/responses/"+one.ID, ""); resp.StatusCode != 404 && resp.StatusCode != 501 {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

// A response that failed, or waits, is shown as it is.
func TestStoredResponseSaysHowItEnded(t *testing.T) {
	t.Parallel()
	m := &mailer{}
	m.fail.Store(1)
	r := serveRetries(t, m, &postOffice{}, newMortal(store.NewMemory(nil)), nil)
	failed, text := r.respond(true, `"input":"mail ann"`)
	if failed == nil || failed.Status != "failed" {
		t.Fatal(text)
	}
	if _, body := r.do("GET", "/v1/responses/"+failed.ID, ""); parse[response](t, body).Status != "failed" {
		t.Errorf("got %s", body)
	}

	h := open(t, nil)
	waits, text := h.respond(false, `"input":"write {\"n\":1}"`+showItems)
	if waits == nil {
		t.Fatal(text)
	}
	if _, body := h.do("GET", "/v1/responses/"+waits.ID, ""); !strings.Contains(body, "mcp_approval_request") {
		t.Errorf("got %s", body)
	}
	if _, body := h.do("POST", "/v1/responses/"+waits.ID+"/cancel", ""); parse[response](t, body).Status != "cancelled" {
		t.Errorf("got %s", body)
	}
}
