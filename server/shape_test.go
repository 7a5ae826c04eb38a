package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
)

// A wireCase is a body of a model server in one of the shapes that there are.
type wireCase struct {
	ID, Protocol, Case, Body string
}

func wireCases(t *testing.T, protocol string) (cases []wireCase) {
	t.Helper()
	file, err := os.Open(testdata.Own(t, "internal", "wire", "openai", "testdata", "wire-cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c wireCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(c.Protocol, protocol) {
			cases = append(cases, c)
		}
	}
	if len(cases) < 20 {
		t.Fatalf("%d cases of %s", len(cases), protocol)
	}
	return cases
}

// Whatever shape a model server's stream has, the client of the gateway gets one that it can read, relayed
// or not, over each endpoint.
func TestEveryShapeGivesAValidStream(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	declare := func(name string) string {
		return `{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object"}}}`
	}
	tools := `,"tools":[` + declare("w") + "," + declare("x") + "," + declare("now") + "," + declare("zzz") + `]`
	calls := map[string]string{"parallelInterleaved": `w {"city":"SF"} x {"k":1}`, "interleaved": `w {"city":"SF"} w {"city":"NY"}`,
		"noIndex": `w {"city":"SF"}`, "argsObject": `w {"city":"SF"}`, "comments": `w {"city":"SF"}`, "one": `w {"city":"SF"}`, "wholeInOne": `w {"city":"SF"}`,
		"noId": `w {"city":"SF"}`, "repeatName": `w {"city":"SF"}`, "legacyFn": `w {"city":"SF"}`, "emptyArgs": "now {}", "stopReason": "w {}", "unknownTool": "zzz {}"}
	same := map[string]bool{"comments": true, "one": true, "refusal": true, "reasoning": true, "reasoning2": true, "openai-chat-stream-with-role/noDone": true, "parallelInterleaved": false}
	for _, c := range wireCases(t, "openai-chat-stream") {
		for _, relayed := range []bool{true, false} {
			t.Run(fmt.Sprint(c.ID, " relayed ", relayed), func(t *testing.T) {
				t.Parallel()
				set := upstreamSays("text/event-stream", c.Body)
				if !relayed {
					set.opts = nil
				}
				f := serve(t, set)
				resp, body := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", `,"stream":true,"stream_options":{"include_usage":true}`+tools))
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d: %s", resp.StatusCode, body)
				}
				if is := relayed && (same[c.Case] || same[c.ID]); (body == c.Body) != is {
					t.Errorf("the same bytes: %v, want %v\n%s", body == c.Body, is, body)
				}
				s := readStream(t, body)
				var got []string
				ids := map[string]bool{}
				for _, call := range s.ToolCalls {
					if call.ID == "" || ids[call.ID] || call.Type != "function" {
						t.Errorf("call %+v", call)
					}
					ids[call.ID] = true
					got = append(got, call.Function.Name+" "+call.Function.Arguments)
				}
				switch want := calls[c.Case]; {
				case c.Case == "errMid" || c.Case == "eventErr":
					if s.err == "" || s.done || strings.Contains(body, "boom") {
						t.Errorf("got %+v, want an error of ours", s)
					}
				case c.Case == "badJson" && !relayed:
					if s.errCode != "tool_call_withdrawn" || s.finish != "" || s.done {
						t.Errorf("got %+v, want an error: the run does not contain the call", s)
					}
				case c.Case == "badJson":
					if s.finish != "length" {
						t.Errorf("got %+v, want what was cut off", s)
					}
				case want != "":
					if strings.Join(got, " ") != want || s.finish != "tool_calls" {
						t.Errorf("calls %q, finish %s, want %s", got, s.finish, want)
					}
				default:
					if s.finish != "stop" || len(got) > 0 || !s.done && body != c.Body {
						t.Errorf("got %+v, want an answer", s)
					}
				}
			})
		}
		t.Run(c.ID+" to pages", func(t *testing.T) {
			t.Parallel()
			f := serve(t, upstreamSays("text/event-stream", c.Body))
			for _, protocol := range []string{"ui-message-stream", "ui-message-stream-v5", "data-stream", "assistant-transport", "ag-ui"} {
				resp, body := f.do("POST", "/api/chat?protocol="+protocol, `{"id":"c","threadId":"c","runId":"r","model":"sim/x","messages":[{"id":"m1","role":"user","content":"hi"}]`+tools+`}`)
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d: %s", resp.StatusCode, body)
				}
				checkPage(t, protocol, body, c.Case == "errMid" || c.Case == "eventErr")
			}
		})
	}
}

// checkPage holds the stream of a chat page to what all of its clients ask for: frames of JSON, one end, and
// an error where there was one.
func checkPage(t *testing.T, protocol, body string, fails bool) {
	t.Helper()
	end := map[string]string{"data-stream": "d:", "ag-ui": "data: {\"type\":\"RUN_"}[protocol]
	last, failed := "", false
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, ":") || strings.HasPrefix(line, "id: ") {
			continue
		}
		if last == "data: [DONE]" {
			t.Errorf("a line after the end: %s", line)
		}
		last = line
		_, data, ok := strings.Cut(line, ":")
		if data = strings.TrimSpace(data); !ok || data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Errorf("a line that is no JSON: %s", line)
		}
		failed = failed || strings.HasPrefix(line, "3:") || strings.Contains(line, `"type":"error"`) || strings.Contains(line, `"type":"RUN_ERROR"`)
	}
	if end == "" {
		end = "data: [DONE]"
	}
	if !strings.HasPrefix(last, end) {
		t.Errorf("it ends with %s", last)
	}
	if failed != fails || strings.Contains(body, "boom") || strings.Contains(body, canary) {
		t.Errorf("an error: %v, want %v: %s", failed, fails, body)
	}
}

// Each way in which a model server fails, at each place, over the endpoint of chat pages, and where the
// bytes are relayed.
func TestUpstreamErrorMatrixElsewhere(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	for a, u := range upstreamFaults {
		for b, place := range []string{"before", "middle", "between rounds"} {
			instead := func(n int, r *http.Request) (*http.Response, error) {
				switch {
				case place == "before" && n == 1, place == "between rounds" && n == 2:
					return u.response(r)
				case place == "middle" && n == 1:
					return u.middle(r)
				}
				return nil, nil
			}
			for i, protocol := range []string{"ui-message-stream", "data-stream", "assistant-transport", "ag-ui"} {
				if !testdata.All() && (a+b)%4 != i {
					continue // another of the four for each
				}
				t.Run(fmt.Sprint(u.name, " ", place, " ", protocol), func(t *testing.T) {
					t.Parallel()
					f := serve(t, &setting{silence: u.silence(), instead: instead})
					resp, body := f.do("POST", "/api/chat?protocol="+protocol, `{"id":"c","threadId":"c","runId":"r","model":"sim/demo","messages":[{"id":"m1","role":"user","content":"What is 7 + 35?"}]}`)
					if place != "before" {
						if resp.StatusCode != http.StatusOK {
							t.Fatalf("status %d: %s", resp.StatusCode, body)
						}
						checkPage(t, protocol, body, true)
						return
					}
					var p struct {
						Status int
						Code   string
					}
					if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != u.want || p.Status != u.want || p.Code != u.code || strings.Contains(body, canary) {
						t.Errorf("status %d: %s, want %d %s", resp.StatusCode, body, u.want, u.code)
					}
				})
			}
			if place == "between rounds" {
				continue // what is relayed is one round
			}
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprint(u.name, " ", place, " relayed, stream ", stream), func(t *testing.T) {
					t.Parallel()
					f := serve(t, &setting{silence: u.silence(), instead: instead, opts: func(o *server.Options) { o.Setup.Tools = nil }})
					resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "hi", fmt.Sprintf(`,"stream":%v`, stream)))
					if strings.Contains(body, canary) {
						t.Errorf("the client is told what the model server said to its operator: %s", body)
					}
					if stream && place == "middle" {
						s := readStream(t, body)
						if s.errCode != u.inBand || s.done || s.finish != "" || s.Content != "Well, " {
							t.Errorf("got %+v, want text, then an error of code %s, and no more", s, u.inBand)
						}
						return
					}
					code := u.code
					if place == "middle" {
						code = u.inBand
					}
					checkError(t, u.name, resp, body, u.want, code, "")
				})
			}
		}
	}
}

// The stream of a chat page that is cut after each event, and asked for again from there, is the unbroken
// one, byte for byte.
func TestPageIsCutAtEveryEvent(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.begin("look {\"n\":1}\nlook {\"n\":2}\n\nlook {\"n\":3}")
	h.rest(r.ID)
	for _, protocol := range []string{"ui-message-stream", "ui-message-stream-v5", "assistant-transport", "ag-ui"} {
		_, whole := h.do("GET", "/api/chat/"+r.ID+"/stream?protocol="+protocol, "")
		frames := strings.SplitAfter(whole, "\n\n")
		cuts := 0
		for i, frame := range frames {
			id, _, ok := strings.Cut(strings.TrimPrefix(frame, "id: "), "\n")
			if !ok || !strings.HasPrefix(frame, "id: ") {
				continue
			}
			cuts++
			_, rest := h.do("GET", "/api/chat/"+r.ID+"/stream?protocol="+protocol, "", "Last-Event-ID", id)
			got := strings.Join(frames[:i+1], "") + rest
			if rest == "" && frames[i+1] == "data: [DONE]\n\n" { // it has seen all: there is no stream
				got += frames[i+1]
			}
			if got != whole {
				t.Errorf("%s, cut after event %s:\n%s\nwant\n%s", protocol, id, got, whole)
			}
		}
		if cuts < 8 {
			t.Errorf("%s: only %d events can be gone on from", protocol, cuts)
		}
	}
}

// A page that is cut while the run goes on, after each event, and comes back with the last id that it has
// seen, has the unbroken stream in the end: what came after the id it drops.
func TestPageIsCutWhileTheRunGoesOn(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	h.model.step = make(chan struct{})
	r := h.begin("look {\"n\":1}\n\nlook {\"n\":2}")
	stepped := make(chan struct{})
	go func() {
		defer close(stepped)
		for range 3 {
			h.model.step <- struct{}{}
		}
	}()
	var got strings.Builder
	after, ended := "", false
	for !ended {
		path := "/api/chat/" + r.ID + "/stream"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if after != "" {
			req.Header.Set("Last-Event-ID", after)
		}
		resp, err := h.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if ended = resp.StatusCode == http.StatusNoContent; ended {
			got.WriteString("data: [DONE]\n\n")
		}
		for br := bufio.NewReader(resp.Body); !ended; {
			frame, err := readFrame(br)
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(frame)
			if ended = frame == "data: [DONE]\n\n"; ended {
				break
			}
			if id, ok := strings.CutPrefix(frame, "id: "); ok {
				after, _, _ = strings.Cut(id, "\n")
				break // killed here
			}
		}
		_ = resp.Body.Close()
	}
	<-stepped
	_, whole := h.do("GET", "/api/chat/"+r.ID+"/stream", "")
	if a, b := told2(t, got.String()), told2(t, whole); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

func readFrame(br *bufio.Reader) (string, error) {
	frame := ""
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return frame, fmt.Errorf("%w after %q", err, frame)
		}
		if frame += line; line == "\n" {
			if strings.HasPrefix(frame, ":") {
				frame = ""
				continue
			}
			return frame, nil
		}
	}
}

// told2 is what a stream of UI messages says, with the pieces of each text put together.
func told2(t *testing.T, stream string) string {
	t.Helper()
	var out []string
	text := ""
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var p struct{ Type, Delta string }
		if data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &p); err != nil {
				t.Fatal(err)
			}
		}
		if p.Type == "text-delta" {
			text += p.Delta
			continue
		}
		if text != "" {
			out, text = append(out, "text: "+text), ""
		}
		out = append(out, data)
	}
	return strings.Join(out, "\n")
}
