package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// When a client changes an older message, turns after one that is in its place stay; those that cannot be placed are counted.
func TestLostJoinsAreCounted(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{instead: func(n int, r *http.Request) (*http.Response, error) {
		id := fmt.Sprint(n)
		if n%2 == 1 { // each run: a call of this server, then one of the client
			return turns([]string{deltaCall("s"+id, "calculator", `{"expression":"6*7"}`)})(1, r)
		}
		return turns([]string{deltaCall("c"+id, "weather", `{"n":`+id+`}`)})(1, r)
	}, opts: func(*server.Options) {}})
	messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":"first"}`)}
	post := func() (*http.Response, string, int) {
		t.Helper()
		list, err := json.Marshal(messages)
		if err != nil {
			t.Fatal(err)
		}
		resp, body := f.do("POST", "/v1/chat/completions", `{"model":"sim/demo","tools":[`+weatherTool+`],"messages":`+string(list)+`}`)
		var got struct {
			Choices []struct{ Message json.RawMessage }
			Lathe   struct {
				Lost int `json:"lost_joins"`
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		sent := f.seen.all()
		last := sent[len(sent)-2] // the first request of this run
		var m struct {
			Calls []struct{ ID string } `json:"tool_calls"`
		}
		if err := json.Unmarshal(got.Choices[0].Message, &m); err != nil || len(m.Calls) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		messages = append(messages, got.Choices[0].Message, json.RawMessage(`{"role":"tool","tool_call_id":"`+m.Calls[0].ID+`","content":"rain"}`))
		return resp, last, got.Lathe.Lost
	}
	for range 3 {
		if _, _, lost := post(); lost != 0 {
			t.Fatalf("%d joins are lost in a conversation that goes on", lost)
		}
	}
	messages[2] = json.RawMessage(strings.Replace(string(messages[2]), `"rain"`, `"[Old tool result content cleared]"`, 1))
	resp, sent, lost := post()
	for _, id := range []string{`"s1"`, `"s3"`, `"s5"`} {
		if !strings.Contains(sent, id) {
			t.Errorf("%s is lost after an older result was cleared: %s", id, sent)
		}
	}
	if lost != 0 || resp.Header.Get("X-Lathe-Lost-Joins") != "" {
		t.Errorf("%d joins are counted as lost", lost)
	}
	messages[0] = json.RawMessage(`{"role":"user","content":"another beginning"}`)
	resp, sent, lost = post()
	for _, id := range []string{`"s1"`, `"s3"`, `"s5"`, `"s7"`} {
		if !strings.Contains(sent, id) {
			t.Errorf("%s is lost in a conversation with another beginning: %s", id, sent)
		}
	}
	if lost != 0 || resp.Header.Get("X-Lathe-Lost-Joins") != "" {
		t.Errorf("%d joins are counted as lost", lost)
	}
}
