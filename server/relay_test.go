package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// upstreamSays is a setting of a gateway without tools whose model server answers with that body.
func upstreamSays(contentType, body string) *setting {
	return &setting{opts: func(o *server.Options) { o.Setup.Tools = nil }, instead: func(_ int, r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}}
}

const chunkHead = `data: {"id":"up-1","object":"chat.completion.chunk","created":9,"model":"up","system_fingerprint":"fp","choices":[{"index":0,"delta":`

// chunk is one event of a stream as a model server writes it, with members that this server does not know.
func chunk(delta, finish string) string {
	return chunkHead + delta + `,"finish_reason":` + finish + `,"x":[1]}]}` + "\n\n"
}

const (
	roleChunk  = `{"role":"assistant","content":""}`
	usageChunk = `data: {"id":"up-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7},"y":true}` + "\n\n"
)

var soundStreams = map[string]string{
	"text":     chunk(roleChunk, "null") + chunk(`{"content":"hel"}`, "null") + chunk(`{"content":"lo \u00e9"}`, "null") + chunk(`{}`, `"stop"`) + usageChunk + "data: [DONE]\n\n",
	"crlf":     strings.ReplaceAll(": warm\n\nid: 4\n"+chunk(roleChunk, "null")+chunk(`{"content":"x"}`, `"length"`)+"data: [DONE]\n\n", "\n", "\r\n"),
	"no done":  chunk(`{"role":"assistant","content":"x"}`, `"stop"`),
	"trailing": chunk(`{"role":"assistant","content":"x"}`, `"stop"`) + "data: [DONE]\n\n\n: bye\n\n",
	"calls": chunk(roleChunk, "null") + chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"invented","arguments":"{\"a\":1}"}}]}`, "null") +
		chunk(`{}`, `"tool_calls"`) + usageChunk + "data: [DONE]\n\n",
}

// What no tool of this server has a part in is answered with the bytes of the model server, and is
// recorded, counted and logged like every other run.
func TestRelayGivesTheServersBytes(t *testing.T) {
	t.Parallel()
	for name, body := range soundStreams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, upstreamSays("text/event-stream", body))
			resp, got := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", `,"stream":true,"stream_options":{"include_usage":true},"tools":[`+weatherTool+`],"top_k":3,"store":true`))
			if got != body {
				t.Errorf("got\n%q\nwant\n%q", got, body)
			}
			if resp.Header.Get("X-Lathe-Passed") != "top_k" || resp.Header.Get("X-Lathe-Ignored") != "store" {
				t.Errorf("passed %q, ignored %q", resp.Header.Values("X-Lathe-Passed"), resp.Header.Values("X-Lathe-Ignored"))
			}
			if sent := f.seen.all()[0]; !strings.Contains(sent, `"top_k":3`) || !strings.Contains(sent, `"stream":true`) || strings.Contains(sent, `"store"`) {
				t.Errorf("the model server was sent %s", sent)
			}
			checkRelayed(t, f, resp.Header.Get("X-Lathe-Run-Id"), name)
		})
	}
}

func checkRelayed(t *testing.T, f *fixture, id, name string) {
	t.Helper()
	rows := f.stored(&store.RunFilter{RunID: id})
	if len(rows) != 1 || rows[0].Turns != 1 {
		t.Fatalf("runs %+v, want the one of a turn", rows)
	}
	want, calls := lathe.ReasonAnswered, 0
	switch name {
	case "calls":
		want, calls = lathe.ReasonClientToolCalls, 2
	case "one call":
		want, calls = lathe.ReasonClientToolCalls, 1
	case "crlf":
		want = lathe.ReasonLength
	}
	if rows[0].Reason != want || rows[0].ToolCalls != calls {
		t.Errorf("it ended %s after %d calls, want %s after %d", rows[0].Reason, rows[0].ToolCalls, want, calls)
	}
	if strings.Contains(soundStreams[name], "usage") && rows[0].Usage.TotalTokens != 7 {
		t.Errorf("usage %+v", rows[0].Usage)
	}
}

// A whole answer, too; it is asked for whole.
func TestRelayGivesAWholeAnswer(t *testing.T) {
	t.Parallel()
	body := `{"id":"up-1", "object":"chat.completion","created":9,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":null,` +
		`"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Oslo\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7},"service_tier":"x"}` + "\n"
	f := serve(t, upstreamSays("application/json", body))
	resp, got := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", `,"tools":[`+weatherTool+`],"min_p":0.1`))
	if got != body || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("X-Lathe-Passed") != "min_p" {
		t.Errorf("got %q with %v", got, resp.Header)
	}
	if sent := f.seen.all()[0]; strings.Contains(sent, `"stream"`) {
		t.Errorf("the model server was sent %s", sent)
	}
	checkRelayed(t, f, resp.Header.Get("X-Lathe-Run-Id"), "one call")
}

// Recorded answers of real servers that clients can read are given byte for byte; the others are mended.
func TestRelayRecordedStreams(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "recorded-streams")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	identical := map[string]bool{"alibaba__alibaba-tool-call.chunks.txt": true, "openai-compatible__chat__xai-tool-call.chunks.txt": true,
		"xai__xai-tool-call.chunks.txt": true, "alibaba__alibaba-tool-call.json": true, "openai-compatible__chat__xai-tool-call.json": true, "xai__xai-tool-call.json": true}
	seen := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(raw, []byte(`"chat.completion`)) || strings.HasPrefix(filepath.Base(file), "llamacpp-") {
			continue // another wire, or among the project's own recordings
		}
		name := filepath.Base(file)
		body, stream := string(raw), !strings.HasSuffix(name, ".json")
		if strings.HasSuffix(name, ".chunks.txt") {
			body = ""
			for line := range strings.Lines(string(raw)) {
				body += "data: " + strings.TrimSpace(line) + "\n\n"
			}
			body += "data: [DONE]\n\n"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := "application/json"
			if stream {
				kind = "text/event-stream"
			}
			f := serve(t, upstreamSays(kind, body))
			resp, got := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", fmt.Sprintf(`,"stream":%v,"stream_options":{"include_usage":true}`, stream)))
			if resp.StatusCode != 200 {
				t.Fatalf("status %d: %s", resp.StatusCode, got)
			}
			if same := got == body; same != identical[name] {
				t.Errorf("identical %v, want %v\n%s", same, identical[name], got)
			}
			var m message
			if stream {
				s := readStream(t, got)
				if m = s.message; s.finish != "tool_calls" || !s.done {
					t.Errorf("finish %q, done %v", s.finish, s.done)
				}
			} else {
				var c completion
				if err := json.Unmarshal([]byte(got), &c); err != nil {
					t.Fatal(err)
				}
				m = c.Choices[0].Message
			}
			if len(m.ToolCalls) != 1 || m.ToolCalls[0].ID == "" || m.ToolCalls[0].Type != "function" || !json.Valid([]byte(m.ToolCalls[0].Function.Arguments)) {
				t.Errorf("calls %+v, want one that a client can read", m.ToolCalls)
			}
		})
		seen++
	}
	if seen < 6 {
		t.Errorf("only %d recorded answers are of this wire", seen)
	}
}

// The streams that llama.cpp sent are valid and are relayed byte for byte, although calls in them need not
// be valid. A stream that ends in an error gets the gateway's form of the error.
func TestRelayRecordedLlamaCpp(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(testdata.Own(t, "internal", "wire", "openai", "testdata", "llamacpp"), "*.txt"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := serve(t, upstreamSays("text/event-stream", string(raw)))
			resp, got := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", `,"stream":true,"stream_options":{"include_usage":true}`))
			if resp.StatusCode != 200 {
				t.Fatalf("status %d: %s", resp.StatusCode, got)
			}
			fails := strings.Contains(name, "-error-")
			if same := got == string(raw); same == fails {
				t.Errorf("identical %v, want %v\n%s", same, !fails, got)
			}
			if s := readStream(t, got); (s.err != "") != fails || s.done == fails {
				t.Errorf("error %q, done %v", s.err, s.done)
			}
		})
	}
}

// A client that did not ask for the usage does not get the chunk that has nothing else, which many stumble
// over; the server is asked for it all the same.
func TestRelayKeepsTheUsageToItself(t *testing.T) {
	t.Parallel()
	body := soundStreams["text"]
	f := serve(t, upstreamSays("text/event-stream", body))
	resp, got := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", `,"stream":true`))
	if want := strings.Replace(body, usageChunk, "", 1); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	checkRelayed(t, f, resp.Header.Get("X-Lathe-Run-Id"), "text")
}

// Damage that a client would stumble over is mended from where it begins: what was shown before stays
// as it was, and the whole is what the model said.
func TestRelayMendsDamage(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	call := func(piece string) string { return chunk(`{"tool_calls":[`+piece+`]}`, "null") }
	first := `{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}`
	more := `{"index":0,"function":{"arguments":"{\"city\":\"Oslo\"}"}}`
	end := chunk(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	for name, body := range map[string]string{
		"no role":            call(first) + call(more) + end,
		"index missing":      chunk(roleChunk, "null") + call(strings.Replace(first, `"index":0,`, "", 1)) + call(strings.Replace(more, `"index":0,`, "", 1)) + end,
		"index missing late": chunk(roleChunk, "null") + call(first) + call(strings.Replace(more, `"index":0,`, "", 1)) + end,
		"index from one":     chunk(roleChunk, "null") + call(strings.Replace(first, ":0", ":1", 1)) + call(strings.Replace(more, ":0", ":1", 1)) + end,
		"id missing":         chunk(roleChunk, "null") + call(strings.Replace(first, `"id":"c1",`, "", 1)) + call(more) + end,
		"id late":            chunk(roleChunk, "null") + call(strings.Replace(first, `"id":"c1",`, "", 1)) + call(strings.Replace(more, `{"index":0,`, `{"index":0,"id":"c1",`, 1)) + end,
		"name repeated":      chunk(roleChunk, "null") + call(first) + call(strings.Replace(more, `"arguments"`, `"name":"weather","arguments"`, 1)) + end,
		"type missing":       chunk(roleChunk, "null") + call(strings.Replace(first, `"type":"function",`, "", 1)) + call(more) + end,
		"arguments object":   chunk(roleChunk, "null") + call(first) + call(`{"index":0,"function":{"arguments":{"city":"Oslo"}}}`) + end,
		"placeholder":        chunk(roleChunk, "null") + call(strings.Replace(first, `""}`, `"{}"}`, 1)) + call(more) + end,
		"finish stop":        chunk(roleChunk, "null") + call(first) + call(more) + chunk(`{}`, `"stop"`) + "data: [DONE]\n\n",
		"finish twice":       chunk(roleChunk, "null") + call(first) + call(more) + chunk(`{}`, `"tool_calls"`) + end,
		"no finish":          chunk(roleChunk, "null") + call(first) + call(more) + "data: [DONE]\n\n",
		"a line of rubbish":  chunk(roleChunk, "null") + call(first) + "data: {oops\n\n" + call(more) + end,
		"an empty line":      chunk(roleChunk, "null") + "data:\n\n" + call(first) + call(more) + end,
		"an event of a name": chunk(roleChunk, "null") + call(first) + "event: chunk\n" + call(more) + end,
		"no arguments":       chunk(roleChunk, "null") + call(first) + end,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, upstreamSays("text/event-stream", body))
			s := f.streamed(ask("sim/x", "hi", `,"stream":true,"stream_options":{"include_usage":true},"tools":[`+weatherTool+`]`))
			ids := map[string]bool{}
			for _, frame := range s.frames {
				if frame != "[DONE]" {
					ids[parse[completion](t, frame).ID] = true
				}
			}
			if len(ids) != 1 { // openai-go refuses chunks of another id
				t.Errorf("the chunks have the ids %v", ids)
			}
			args := `{"city":"Oslo"}`
			if name == "no arguments" {
				args = "{}"
			}
			if s.finish != "tool_calls" || !s.done || s.err != "" || len(s.ToolCalls) != 1 || s.ToolCalls[0].Function.Name != "weather" ||
				s.ToolCalls[0].ID == "" || s.ToolCalls[0].Type != "function" || s.ToolCalls[0].Function.Arguments != args {
				t.Errorf("got %+v of %q", s, body)
			}
		})
	}
}

// The gateway reports what it ends itself as without relaying: a run that takes too long has a finish reason, a server
// that fails in the middle of a stream leads to an error.
func TestRelayEndsWithTheRun(t *testing.T) {
	t.Parallel()
	body := chunk(roleChunk, "null") + chunk(`{"content":"hello"}`, "null")
	f := serve(t, upstreamSays("text/event-stream", body))
	s := f.streamed(ask("sim/x", "hi", `,"stream":true`))
	if s.Content != "hello" || s.err == "" || s.done {
		t.Errorf("got %+v, want an error after the text", s)
	}
}

// With tools of this server, or where a request asks for the object `lathe`, nothing is relayed.
func TestRelayIsForPlainRequestsOnly(t *testing.T) {
	t.Parallel()
	with := upstreamSays("text/event-stream", soundStreams["text"])
	with.opts = nil
	f := serve(t, with)
	if s := f.streamed(ask("sim/x", "hi", `,"stream":true`)); s.report == nil || s.Content != "hello é" {
		t.Errorf("got %+v, want a report", s)
	}
	f = serve(t, upstreamSays("text/event-stream", soundStreams["text"]))
	if s := f.streamed(ask("sim/x", "hi", `,"stream":true,"lathe":{"session":"s"}`)); s.report == nil || s.report.Session != "s" {
		t.Errorf("got %+v, want a report", s)
	}
}
