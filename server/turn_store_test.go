package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
)

const weatherTool = `{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`

// A client that declares a tool of its own, in a turn in which the model calls both sides' tools.
func mixed() *fake {
	return &fake{turn: func(n int, req *lathe.Request) lathe.Message {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == lathe.RoleUser:
			return says(lathe.Text{Text: "First I compute."}, calls("s1", "calculator", `{"expression":"7 + 35"}`))
		case strings.Contains(transcript(req.Messages), "weather:c1"):
			return says(lathe.Text{Text: "It is done."})
		}
		return says(lathe.Text{Text: "Now both."}, calls("s2", "calculator", `{"expression":"6 * 7"}`), calls("c1", "weather", `{"city":"Oslo"}`),
			calls("s3", "calculator", `{"expression":"1 + 1"}`))
	}}
}

// transcript is the shape of a history: roles, calls and what answers them.
func transcript(messages []lathe.Message) string {
	var out []string
	for _, m := range messages {
		s := string(m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				s += " " + p.Name + ":" + p.ID
			case lathe.ToolResult:
				s += " =" + p.CallID
			case lathe.Text:
				s += fmt.Sprintf(" %q", p.Text)
			case lathe.Reasoning, lathe.Blob, lathe.Refusal:
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func TestChatHandsOverClientCallsAndJoinsTheRest(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			model := mixed()
			f := serve(t, &setting{model: model})
			more := fmt.Sprintf(`,"tools":[%s],"stream":%v`, weatherTool, stream)
			m, finish := f.answer(`{"model":"sim/x","messages":[{"role":"system","content":"It is noon."},{"role":"user","content":"hi"}]`+more+`}`, stream)
			if finish != "tool_calls" || len(m.ToolCalls) != 1 || !isGatewayID(m.ToolCalls[0].ID) || m.ToolCalls[0].Function.Name != "weather" ||
				m.ToolCalls[0].Function.Arguments != `{"city":"Oslo"}` || m.ToolCalls[0].Type != "function" {
				t.Fatalf("got %+v (%s), want the client's one call", m, finish)
			}
			if m.Content != "First I compute.\n\nNow both." {
				t.Errorf("content %q", m.Content)
			}
			m.ToolCalls[0].Index = nil
			m.ToolCalls[0].Function.Arguments = `{ "city" : "Oslo" }` // clients write them anew
			said, _ := json.Marshal(m)
			// The system text changes between requests, as the time of day does.
			messages := `{"role":"system","content":"It is one."},{"role":"user","content":"hi"},` + string(said) + `,{"role":"tool","tool_call_id":"` + m.ToolCalls[0].ID + `","content":"rain"}`
			m, finish = f.answer(`{"model":"sim/x","messages":[`+messages+`]`+more+`}`, stream)
			if finish != "stop" || m.Content != "It is done." {
				t.Fatalf("got %+v (%s), want the answer", m, finish)
			}
			want := strings.Join([]string{
				`system "It is one."`, `user "hi"`,
				`assistant "First I compute." calculator:s1`, `tool =s1`,
				`assistant "Now both." calculator:s2 weather:c1 calculator:s3`, `tool =s2`, `tool =c1`, `tool =s3`,
			}, "\n")
			reqs := model.all()
			if got := transcript(reqs[len(reqs)-1].Messages); got != want {
				t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
			}
			// A later question of the same conversation still has it.
			messages += `,{"role":"assistant","content":"It is done."},{"role":"user","content":"and again?"}`
			f.answer(`{"model":"sim/x","messages":[`+messages+`]`+more+`}`, stream)
			if got := transcript(model.all()[len(reqs)].Messages); !strings.HasPrefix(got, want) {
				t.Errorf("later the model was sent\n%s\nwant it to begin with\n%s", got, want)
			}
		})
	}
}

// answer returns the message and the finish reason, in whichever form it came.
func (f *fixture) answer(body string, stream bool) (message, string) {
	f.t.Helper()
	if stream {
		s := f.streamed(body)
		if !s.done {
			f.t.Errorf("the stream has no end: %v", s.frames)
		}
		return s.message, s.finish
	}
	c := f.complete(body)
	return c.Choices[0].Message, *c.Choices[0].FinishReason
}

// What was kept for one is not joined for others: not of another key, another end user, another
// conversation, or after its time. The conversation is valid all the same.
func TestKeptTurnsAreBound(t *testing.T) { // T25
	t.Parallel()
	first := `{"role":"user","content":"hi"}`
	for name, c := range map[string]struct {
		key, user, first string
		model, args      string
		later            time.Duration
		joined           bool
	}{
		"another model":        {key: "a", user: "u", first: first, model: "sim/y"},
		"other arguments":      {key: "a", user: "u", first: first, args: `{\"city\":\"Rome\"}`},
		"the same":             {key: "a", user: "u", first: first, joined: true},
		"another key":          {key: "b", user: "u", first: first},
		"another end user":     {key: "a", user: "v", first: first},
		"another conversation": {key: "a", user: "u", first: `{"role":"user","content":"hello"}`},
		"too late":             {key: "a", user: "u", first: first, later: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := mixed()
			now := newHandClock()
			f := serve(t, &setting{model: model, now: now.now, opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }})
			tools := `,"tools":[` + weatherTool + `]`
			f.complete(`{"model":"sim/x","user":"u","messages":[` + first + `]` + tools + `}`)
			now.add(c.later)
			said := `{"role":"assistant","content":"x","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"` + cmp.Or(c.args, `{ \"city\": \"Oslo\" }`) + `"}}]}`
			f.complete(`{"model":"`+cmp.Or(c.model, "sim/x")+`","user":"`+c.user+`","messages":[`+c.first+`,`+said+`,{"role":"tool","tool_call_id":"c1","content":"rain"}]`+tools+`}`,
				"Authorization", "Bearer "+text(c.key))
			reqs := model.all()
			got := transcript(reqs[len(reqs)-1].Messages)
			if joined := strings.Contains(got, "=s1"); joined != c.joined {
				t.Errorf("joined %v, want %v:\n%s", joined, c.joined, got)
			}
		})
	}
}

// Whatever calls the model mixes, what it is sent is always valid, the client never sees a call of the
// server, and every call is answered once.
func TestMixedTurnsKeepTheHistoryValid(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	var turns [][]string // of the conversation that is being tried: the names of the calls of each turn
	model := &fake{}
	model.turn = func(n int, req *lathe.Request) lathe.Message {
		done := 0
		for _, m := range req.Messages {
			if m.Role == lathe.RoleAssistant {
				done++
			}
		}
		if done >= len(turns) {
			return says(lathe.Text{Text: "end"})
		}
		m := says(lathe.Text{Text: fmt.Sprintf("turn %d", done)})
		for i, name := range turns[done] {
			args := `{"city":"x"}`
			if name == "calculator" {
				args = `{"expression":"1 + 1"}`
			}
			m.Parts = append(m.Parts, calls(fmt.Sprintf("call_%d_%d", done, i), name, args))
		}
		return m
	}
	f := serve(t, &setting{model: model, limits: lathe.Limits{MaxIterations: 20, MaxRepeatedCalls: 1000, MaxUnknownTools: 1000}})
	rapid.Check(t, func(rt *rapid.T) {
		turns = rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"calculator", "weather", "invented"}), 1, 4), 0, 5).Draw(rt, "turns")
		stream := rapid.Bool().Draw(rt, "stream")
		messages := []string{`{"role":"user","content":` + quote(fmt.Sprint("try ", turns)) + `}`}
		for range len(turns) + 1 {
			m, finish := f.answer(fmt.Sprintf(`{"model":"sim/x","messages":[%s],"tools":[%s],"stream":%v}`, strings.Join(messages, ","), weatherTool, stream), stream)
			if finish != "tool_calls" {
				break
			}
			for i := range m.ToolCalls {
				if m.ToolCalls[i].Function.Name != "weather" {
					rt.Fatalf("the client was handed a call of the server: %+v", m)
				}
				m.ToolCalls[i].Index = nil
			}
			said, _ := json.Marshal(m)
			messages = append(messages, string(said))
			for _, call := range slices.Backward(m.ToolCalls) { // in any order
				messages = append(messages, `{"role":"tool","tool_call_id":`+quote(call.ID)+`,"content":"rain"}`)
			}
		}
		reqs := model.all()
		for _, r := range reqs {
			if why := invalid(r.Messages); why != "" {
				rt.Fatalf("%s:\n%s", why, transcript(r.Messages))
			}
		}
		want := 0
		for _, names := range turns {
			want += len(names)
		}
		got := 0
		for _, m := range reqs[len(reqs)-1].Messages {
			got += len(m.Calls())
		}
		if got != want {
			rt.Fatalf("the last request has %d calls, want all %d:\n%s", got, want, transcript(reqs[len(reqs)-1].Messages))
		}
		model.mu.Lock()
		model.reqs = nil
		model.mu.Unlock()
	})
}

// invalid says why no model server would take the messages; "" where one would.
func invalid(messages []lathe.Message) string {
	var open []string
	for i, m := range messages {
		if m.Role == lathe.RoleTool {
			r := m.Parts[0].(lathe.ToolResult)
			if len(open) == 0 || open[0] != r.CallID {
				return fmt.Sprintf("message %d answers %s, open are %v", i, r.CallID, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("before message %d, %v have no answer", i, open)
		}
		for _, c := range m.Calls() {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("at the end, %v have no answer", open)
	}
	return ""
}

func TestChatRefusesHistoriesThatAreNotValid(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"weather","arguments":"{}"}}]}`
	result := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"x"}` }
	for name, c := range map[string]struct{ messages, code, param string }{
		"no answer":         {call, "missing_tool_result", "messages[0]"},
		"one answer":        {call + "," + result("c1"), "missing_tool_result", "messages[0]"},
		"answered twice":    {call + "," + result("c1") + "," + result("c1"), "missing_tool_result", "messages[0]"},
		"a third":           {call + "," + result("c2") + "," + result("c1") + "," + result("c1"), "unexpected_tool_result", "messages[3]"},
		"an answer alone":   {result("c1"), "unexpected_tool_result", "messages[0]"},
		"a user in between": {call + "," + result("c1") + `,{"role":"user","content":"x"},` + result("c2"), "missing_tool_result", "messages[0]"},
	} {
		resp, body := f.do("POST", "/v1/chat/completions", `{"model":"sim/demo","messages":[`+c.messages+`]}`)
		checkError(t, name, resp, body, 400, c.code, c.param)
	}
}

// A call without arguments is {} on the wire, and joined all the same.
func TestJoinWithoutArguments(t *testing.T) {
	t.Parallel()
	model := &fake{turn: func(n int, req *lathe.Request) lathe.Message {
		if n == 1 {
			return says(calls("s1", "get_current_time", "{}"), calls("c1", "weather", ""))
		}
		return says(lathe.Text{Text: "done"})
	}}
	f := serve(t, &setting{model: model})
	tools := `,"tools":[` + weatherTool + `]`
	m, _ := f.answer(ask("sim/x", "hi", tools), false)
	said, _ := json.Marshal(m)
	f.complete(`{"model":"sim/x","messages":[{"role":"user","content":"hi"},` + string(said) + `,{"role":"tool","tool_call_id":"c1","content":"rain"}]` + tools + `}`)
	if got := transcript(model.all()[1].Messages); !strings.Contains(got, "=s1") {
		t.Errorf("the model was sent\n%s", got)
	}
}
