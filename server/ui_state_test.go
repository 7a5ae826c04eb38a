package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/store"
)

// apply applies the operations of a stream to a state, as a page does.
func apply(t *testing.T, state any, stream string) any {
	t.Helper()
	ended := false
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		if ended = data == "[DONE]"; ended {
			continue
		}
		var frame struct {
			Type       string
			Operations []struct {
				Type  string
				Path  []string
				Value any
			}
		}
		if err := json.Unmarshal([]byte(data), &frame); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, op := range frame.Operations {
			state = set(t, state, op.Path, func(old any) any {
				if op.Type == "append-text" {
					return old.(string) + op.Value.(string)
				}
				return op.Value
			})
		}
	}
	if !ended {
		t.Errorf("the stream has no end: %s", stream)
	}
	return state
}

func set(t *testing.T, at any, path []string, f func(any) any) any {
	t.Helper()
	if len(path) == 0 {
		return f(at)
	}
	if list, ok := at.([]any); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil || i > len(list) {
			t.Fatalf("index %s of %d", path[0], len(list))
		}
		if i == len(list) {
			list = append(list, nil)
		}
		list[i] = set(t, list[i], path[1:], f)
		return list
	}
	object, _ := at.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	object[path[0]] = set(t, object[path[0]], path[1:], f)
	return object
}

// shape is what a state came to: roles, texts, and calls with their states.
func shape(t *testing.T, state any) string {
	t.Helper()
	raw, _ := json.Marshal(state)
	var s struct {
		Messages []struct {
			ID, Role string
			Parts    []struct{ Type, Text, ToolName, State, ErrorText string }
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range s.Messages {
		line := m.Role
		for _, p := range m.Parts {
			switch p.Type {
			case "text":
				line += fmt.Sprintf(" %q", p.Text)
			case "dynamic-tool":
				line += " " + p.ToolName + ":" + p.State
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (f *fixture) transport(state any, commands, more string) string {
	f.t.Helper()
	raw, err := json.Marshal(state)
	if err != nil {
		f.t.Fatal(err)
	}
	resp, text := f.do("POST", "/api/chat", `{"threadId":"thread-1","state":`+string(raw)+`,"commands":[`+commands+`],"system":"Be brief.","config":{"modelName":"sim/x"}`+more+`}`)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	return text
}

func says2(text string) string {
	return `{"type":"add-message","message":{"role":"user","parts":[{"type":"text","text":` + quote(text) + `}]},"parentId":null,"sourceId":null}`
}

// A page of assistant-ui's transport holds nothing but the state that the streams make, and sends what is
// new: server tools, its own tools, further turns.
func TestTransportKeepsTheStateOfThePage(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("parked ", kept), func(t *testing.T) {
			t.Parallel()
			model := &uiTurns{asked: make(chan []lathe.Message, 10), say: []lathe.Finish{
				uiSays("First.", calls("s1", "calculator", `{"expression":"6 * 7"}`), calls("c1", "weather", `{"city":"Oslo"}`)),
				uiSays("It rains at 42."), uiSays("You are welcome."),
			}}
			set := &setting{model: model}
			if kept {
				set.approvals = approval.NewQueue(nil)
			}
			f := serve(t, set)
			tools := `,"tools":{"weather":{"description":"weather","parameters":{"type":"object"}}}`
			state := apply(t, map[string]any{"own": "kept"}, f.transport(map[string]any{"own": "kept"}, says2("hi"), tools))
			want := "user \"hi\"\nassistant \"First.\" calculator:output-available weather:input-available"
			if got := shape(t, state); got != want {
				t.Fatalf("the state is\n%s\nwant\n%s", got, want)
			}
			result := `{"type":"add-tool-result","toolCallId":"c1","toolName":"weather","result":{"sky":"rain"},"isError":false}`
			state = apply(t, state, f.transport(state, result, tools))
			want = "user \"hi\"\nassistant \"First.\" calculator:output-available weather:output-available \"It rains at 42.\""
			if got := shape(t, state); got != want {
				t.Fatalf("the state is\n%s\nwant\n%s", got, want)
			}
			state = apply(t, state, f.transport(state, says2("thanks"), tools))
			if got := shape(t, state); got != want+"\nuser \"thanks\"\nassistant \"You are welcome.\"" || state.(map[string]any)["own"] != "kept" {
				t.Errorf("the state is\n%s", got)
			}
			close(model.asked)
			var last []lathe.Message
			for m := range model.asked {
				last = m
			}
			sent := strings.Join([]string{`system "Be brief."`, `user "hi"`, `assistant "First." calculator:s1 weather:c1`, "tool =s1", "tool =c1",
				`assistant "It rains at 42."`, `user "thanks"`}, "\n")
			if got := transcript(last); got != sent {
				t.Errorf("the model was sent\n%s\nwant\n%s", got, sent)
			}
			rows, _, _ := f.store.Runs(t.Context(), &store.RunFilter{})
			if len(rows) != 2 {
				t.Errorf("%d runs, want two: the results went to the run that waited", len(rows))
			}
		})
	}
}

func TestTransportRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for body, where := range map[string]string{
		`{"commands":{}}`:                                                        "commands",
		`{"commands":[{"type":"dance"}]}`:                                        "commands[0].type",
		`{"commands":[],"state":3}`:                                              "state",
		`{"commands":[],"state":{"messages":[{}]}}`:                              "state.messages[0].role",
		`{"commands":[{"type":"add-message"}]}`:                                  "commands[0].message",
		`{"commands":[{"type":"add-tool-result","toolCallId":"c9","result":1}]}`: "commands[0].toolCallId",
		`{"commands":[{"type":"add-message","message":{"role":"assistant","parts":[{"type":"text","text":"I did"}]}}]}`: "commands[0].message.role",
		`{"commands":[]}`: "messages",
	} {
		resp, text := f.do("POST", "/api/chat", body)
		var p struct{ Param string }
		if err := json.Unmarshal([]byte(text), &p); err != nil || resp.StatusCode != 400 || p.Param != where {
			t.Errorf("%s: status %d: %s, want 400 at %s", body, resp.StatusCode, text, where)
		}
	}
}

// A page that lost its stream asks for it again with the state that it has by then.
func TestTransportResumes(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	model := &fake{turn: func(int, *lathe.Request) lathe.Message {
		close(began)
		<-goOn
		return says(lathe.Text{Text: "the whole answer"})
	}}
	f := serve(t, &setting{model: model})
	resp, text := f.do("POST", "/api/chat/resume", `{"threadId":"thread-1"}`)
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("status %d: %s, want nothing to resume", resp.StatusCode, text)
	}
	if resp, text = f.do("POST", "/api/chat/resume", `{}`); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d: %s", resp.StatusCode, text)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		f.transport(nil, says2("hi"), `,"lathe":{"detach":true}`)
	}()
	<-began
	state := map[string]any{"messages": []any{map[string]any{"role": "user", "parts": []any{map[string]any{"type": "text", "text": "hi"}}}}}
	resumed := make(chan string)
	go func() {
		raw, _ := json.Marshal(state)
		_, text := f.do("POST", "/api/chat/resume", `{"threadId":"thread-1","state":`+string(raw)+`}`)
		resumed <- text
	}()
	close(goOn)
	<-sent
	if text := <-resumed; text == "" {
		t.Log("the run had ended before it was asked for")
	} else if got := shape(t, apply(t, state, text)); got != "user \"hi\"\nassistant \"the whole answer\"" {
		t.Errorf("the state is\n%s", got)
	}
}
