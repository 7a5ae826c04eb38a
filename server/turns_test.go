package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// turns is a model server that streams these deltas, one list for each request, and counts n*100 and n tokens for request n.
func turns(deltas ...[]string) func(n int, r *http.Request) (*http.Response, error) {
	return func(n int, r *http.Request) (*http.Response, error) {
		body, finish := "", `"stop"`
		for _, d := range deltas[min(n, len(deltas))-1] {
			if strings.Contains(d, "tool_calls") {
				finish = `"tool_calls"`
			}
			body += chunk(d, "null")
		}
		body += chunk(`{}`, finish) + fmt.Sprintf(`data: {"id":"up-1","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, n*100, n, n*101) + "\n\ndata: [DONE]\n\n"
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func deltaCall(id, name, arguments string) string {
	return `{"role":"assistant","tool_calls":[{"index":0,"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` + quote(arguments) + `}}]}`
}

func deltaText(text string) string { return `{"role":"assistant","content":` + quote(text) + `}` }

type counted struct {
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	Choices []struct {
		Message struct{ Content string }
		Delta   struct{ Content string }
	}
	Lathe struct {
		Usage struct {
			Input int `json:"input_tokens"`
			Total int `json:"total_tokens"`
		}
	}
}

// readCounted joins the chunks of a stream, or reads a whole answer.
func readCounted(t *testing.T, body string) (content string, last counted) {
	t.Helper()
	if !strings.HasPrefix(body, "data: ") {
		if err := json.Unmarshal([]byte(body), &last); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return last.Choices[0].Message.Content, last
	}
	for _, frame := range strings.Split(body, "\n\n") {
		frame = strings.TrimPrefix(frame, "data: ")
		if frame == "" || frame == "[DONE]" {
			continue
		}
		var c counted
		if err := json.Unmarshal([]byte(frame), &c); err != nil {
			t.Fatalf("%v: %s", err, frame)
		}
		for _, choice := range c.Choices {
			content += choice.Delta.Content
		}
		if c.Usage.Total > 0 {
			last = c
		}
	}
	return content, last
}

// usage is that of the last model call, and lathe.usage the sum; with SumUsage both are.
func TestUsageIsOfTheLastCall(t *testing.T) {
	t.Parallel()
	for _, sum := range []bool{false, true} {
		for _, stream := range []bool{false, true} {
			f := serve(t, &setting{instead: turns([]string{deltaCall("c1", "calculator", `{"expression":"6*7"}`)}, []string{deltaText("42")}),
				opts: func(o *server.Options) { o.SumUsage = sum }})
			_, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", fmt.Sprintf(`,"stream":%v,"stream_options":{"include_usage":true}`, stream)))
			_, got := readCounted(t, body)
			want := 200
			if sum {
				want = 300
			}
			if got.Usage.Prompt != want || got.Lathe.Usage.Input != 300 || got.Lathe.Usage.Total != 303 {
				t.Errorf("sum %v, stream %v: usage %+v, lathe.usage %+v", sum, stream, got.Usage, got.Lathe.Usage)
			}
		}
	}
}

// Where response_format asks for JSON, the content is the text of the last turn and nothing else.
func TestStructuredAnswerIsTheLastTurnAlone(t *testing.T) {
	t.Parallel()
	for _, format := range []string{`{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}`, `{"type":"text"}`} {
		for _, stream := range []bool{false, true} {
			f := serve(t, &setting{instead: turns([]string{deltaText("Let me "), deltaText("calculate."), deltaCall("c1", "calculator", `{"expression":"6*7"}`)}, []string{deltaText(`{"a"`), deltaText(`:42}`)})})
			_, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", fmt.Sprintf(`,"stream":%v,"response_format":%s`, stream, format)))
			want := `{"a":42}`
			if strings.Contains(format, "text") {
				want = "Let me calculate.\n\n" + want
			}
			if got, _ := readCounted(t, body); got != want {
				t.Errorf("%s, stream %v: %q, want %q", format, stream, got, want)
			}
		}
	}
}

// Arguments in a fence or written as a JSON string reach the client as an object, as they reach a tool of this server.
func TestArgumentsOfClientToolsAreUnwrapped(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		`"{\"city\":\"Oslo\"}"`:             `{"city":"Oslo"}`,
		"```json\n{\"city\":\"Oslo\"}\n```": `{"city":"Oslo"}`,
		`  {"city":"Oslo"}`:                 `  {"city":"Oslo"}`,
		`[1, 2, 3]`:                         `[1, 2, 3]`,
	} {
		for _, stream := range []bool{false, true} {
			pieces := []string{deltaCall("c1", "weather", said[:3])}
			for _, b := range []string{said[3:5], said[5:]} {
				pieces = append(pieces, `{"tool_calls":[{"index":0,"function":{"arguments":`+quote(b)+`}}]}`)
			}
			f := serve(t, &setting{instead: turns(pieces, []string{deltaText("It rains.")})})
			more := fmt.Sprintf(`,"stream":%v,"tools":[%s]`, stream, weatherTool)
			_, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "x", more))
			var got string
			if stream {
				if s := readStream(t, body); len(s.ToolCalls) == 1 && s.finish == "tool_calls" {
					got = s.ToolCalls[0].Function.Arguments
				}
			} else {
				var c completion
				if err := json.Unmarshal([]byte(body), &c); err == nil && len(c.Choices) == 1 && len(c.Choices[0].Message.ToolCalls) == 1 {
					got = c.Choices[0].Message.ToolCalls[0].Function.Arguments
				}
			}
			if got != want {
				t.Errorf("stream %v: %q becomes %q, want %q: %s", stream, said, got, want, body)
			}
		}
	}
	off := serve(t, &setting{settings: lathe.Settings{Repair: lathe.RepairOff}, instead: turns([]string{deltaCall("c1", "weather", `"{}"`)})})
	if c := off.complete(ask("sim/demo", "x", `,"tools":[`+weatherTool+`]`)); c.Choices[0].Message.ToolCalls[0].Function.Arguments != `"{}"` {
		t.Errorf("with repair off: %+v", c.Choices[0].Message)
	}
}

// A turn whose call was handed over unwrapped is found again by the results of the client.
func TestUnwrappedCallsAreJoined(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{instead: turns([]string{deltaCall("s1", "calculator", `{"expression":"6*7"}`)}, []string{deltaCall("c1", "weather", `"{\"city\":\"Oslo\"}"`)}, []string{deltaText("It rains.")})})
	first := f.complete(ask("sim/demo", "x", `,"tools":[`+weatherTool+`]`)).Choices[0].Message
	message, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	f.complete(`{"model":"sim/demo","tools":[` + weatherTool + `],"messages":[{"role":"user","content":"x"},` + string(message) + `,{"role":"tool","tool_call_id":"c1","content":"rain"}]}`)
	if sent := f.seen.all(); !strings.Contains(sent[len(sent)-1], `"s1"`) {
		t.Errorf("the model does not see what the server's tool said: %s", sent[len(sent)-1])
	}
}

// A blank answer to the results of the client's tools is asked for once more.
func TestBlankAnswerToClientResultsIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{instead: turns([]string{deltaText(" ")}, []string{deltaText("It rains.")})})
	c := f.complete(`{"model":"sim/demo","tools":[` + weatherTool + `],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"rain"}]}`)
	if got := c.Choices[0].Message.Content; !strings.HasSuffix(got, "It rains.") || len(f.seen.all()) != 2 {
		t.Errorf("%q after %d requests", got, len(f.seen.all()))
	}
}
