package server_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A uiTurns is a model that says one after the other, and remembers what it was asked.
type uiTurns struct {
	say   []lathe.Finish
	fail  error // after what was said
	asked chan []lathe.Message
	at    int
}

func (*uiTurns) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *uiTurns) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if m.asked != nil {
			m.asked <- append([]lathe.Message(nil), req.Messages...)
		}
		if m.at >= len(m.say) {
			yield(lathe.Delta{}, m.fail)
			return
		}
		f := m.say[m.at]
		m.at++
		if text := f.Message.Text(); text != "" && !yield(lathe.Delta{Kind: lathe.DeltaText, Text: text}, nil) {
			return
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &f}, nil)
	}
}

func uiSays(text string, calls ...lathe.ToolCall) lathe.Finish {
	f := lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant}}
	if text != "" {
		f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: text})
	}
	for _, c := range calls {
		f.Reason = lathe.FinishToolCalls
		f.Message.Parts = append(f.Message.Parts, c)
	}
	return f
}

type uiNote struct {
	Text string `json:"text"`
}

// uiKeeper is a tool that writes.
func uiKeeper(kept *[]string) lathe.Tool {
	return tool.Func("keep", "Keeps a note.", func(_ context.Context, in uiNote) (string, error) {
		*kept = append(*kept, in.Text)
		return "kept " + in.Text, nil
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
}

const uiHello = `{"id":"chat-1","model":"sim/demo","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"What is 7 + 35?"}]}]}`

func (f *fixture) uiPage(body, query string) string {
	f.t.Helper()
	resp, text := f.do("POST", "/api/chat"+query, body)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	return text
}

func uiFind(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return m[1]
}

func TestChatSpeaksEachProtocol(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, tt := range []struct{ protocol, contentType, header, call, end string }{
		{"", "text/event-stream; charset=utf-8", "X-Vercel-Ai-Ui-Message-Stream", `{"type":"tool-input-start"`, "data: [DONE]\n\n"},
		{"ui-message-stream-v5", "text/event-stream; charset=utf-8", "X-Vercel-Ai-Ui-Message-Stream", `{"type":"tool-input-start"`, "data: [DONE]\n\n"},
		{"data-stream", "text/plain; charset=utf-8", "X-Vercel-Ai-Data-Stream", "\na:{", "}\n"},
		{"assistant-transport", "text/event-stream; charset=utf-8", "", `"type":"result"`, "data: [DONE]\n\n"},
		{"ag-ui", "text/event-stream; charset=utf-8", "", `"TOOL_CALL_RESULT"`, `"outcome":{"type":"success"}}` + "\n\n"},
	} {
		for _, header := range []bool{false, true} {
			query, head := "?protocol="+tt.protocol, []string(nil)
			if header {
				query, head = "", []string{"X-Lathe-Protocol", tt.protocol}
			}
			resp, text := f.do("POST", "/api/chat"+query, uiHello, head...)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != tt.contentType || tt.header != "" && resp.Header.Get(tt.header) != "v1" {
				t.Errorf("%s: %d %v", tt.protocol, resp.StatusCode, resp.Header)
			}
			if !strings.Contains(text, "42") || !strings.Contains(text, tt.call) || !strings.HasSuffix(text, tt.end) {
				t.Errorf("%s:\n%s", tt.protocol, text)
			}
			if resp.Header.Get("X-Lathe-Run-Id") == "" {
				t.Errorf("%s: no run id", tt.protocol)
			}
		}
	}
}

// uiApprove makes the request that answers the approval of a stream.
func uiApprove(t *testing.T, stream string, yes bool) string {
	t.Helper()
	id := uiFind(t, `"approvalId":"([^"]+)"`, stream)
	answer := map[string]any{"id": id, "approved": yes}
	return uiContinued(t, stream, map[string]any{"type": "tool-keep", "toolCallId": uiFind(t, `"toolCallId":"([^"]+)"`, stream),
		"state": "approval-responded", "input": map[string]any{"text": "x"}, "approval": answer})
}

// uiContinued returns the request that continues the message of a stream.
func uiContinued(t *testing.T, stream string, parts ...map[string]any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"id": "chat-1", "model": "sim/demo", "messages": []any{
		map[string]any{"id": "m1", "role": "user", "parts": []any{map[string]any{"type": "text", "text": "keep x"}}},
		map[string]any{"id": uiFind(t, `"messageId":"([^"]+)"`, stream), "role": "assistant", "parts": parts,
			"metadata": map[string]any{"runId": uiFind(t, `"runId":"([^"]+)"`, stream)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestChatGoesOnAfterApproval(t *testing.T) {
	t.Parallel()
	for _, yes := range []bool{true, false} {
		var kept []string
		f := serve(t, &setting{approvals: approval.NewQueue(nil), tools: []lathe.Tool{uiKeeper(&kept)},
			policy: policy.Effects{ReadOnly: lathe.Allow, Writes: lathe.Ask},
			model:  &uiTurns{say: []lathe.Finish{uiSays("I keep it.", lathe.ToolCall{ID: "c1", Name: "keep", Arguments: `{"text":"x"}`}), uiSays("Done.")}}})
		asked := f.uiPage(uiHello, "")
		if !strings.Contains(asked, `"tool-approval-request"`) || !strings.Contains(asked, `"finishReason":"tool-calls"`) || len(kept) > 0 {
			t.Fatalf("kept %v:\n%s", kept, asked)
		}
		request := uiApprove(t, asked, yes)
		rest := f.uiPage(request, "")
		want := `{"type":"tool-output-available","toolCallId":"c1","output":"kept x"}`
		if !yes {
			want = `{"type":"tool-output-denied","toolCallId":"c1"}`
		}
		if !strings.Contains(rest, want) || !strings.Contains(rest, "Done.") || !strings.Contains(rest, `"finishReason":"stop"`) || (len(kept) == 1) != yes {
			t.Errorf("approved %v, kept %v:\n%s", yes, kept, rest)
		}
		if a, b := uiFind(t, `"messageId":"([^"]+)"`, asked), uiFind(t, `"messageId":"([^"]+)"`, rest); a != b {
			t.Errorf("the message is %s, then %s", a, b)
		}
		// The run has ended: the same answer is refused with the first one, and begins no run.
		resp, again := f.do("POST", "/api/chat", request)
		if word := map[bool]string{true: "approved", false: "denied"}[yes]; resp.StatusCode != http.StatusConflict ||
			!strings.Contains(again, `"code":"already_decided"`) || !strings.Contains(again, `"decision":"`+word+`"`) || !strings.Contains(again, `"by":"http"`) {
			t.Errorf("sent again: %d %s", resp.StatusCode, again)
		}
		// So is an approval that was made up, and one of a run that there is not.
		id := uiFind(t, `"approvalId":"([0-9a-f]{64})"`, asked)
		for name, forged := range map[string]string{"made up": strings.ReplaceAll(request, id, strings.Repeat("0", 64)),
			"of no run": strings.ReplaceAll(request, uiFind(t, `(run_[0-9A-Z]+)`, request), "run_01")} {
			resp, got := f.do("POST", "/api/chat", forged)
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"code":"approval_not_found"`) || (len(kept) == 1) != yes {
				t.Errorf("%s: %d %s", name, resp.StatusCode, got)
			}
		}
		if rows, _, err := f.index.Runs(t.Context(), &store.RunFilter{}); err != nil || len(rows) != 1 || (len(kept) == 1) != yes {
			t.Errorf("kept %v, %d runs, %v", kept, len(rows), err)
		}
	}
}

func TestChatResumesOverAGUI(t *testing.T) {
	t.Parallel()
	var kept []string
	f := serve(t, &setting{approvals: approval.NewQueue(nil), tools: []lathe.Tool{uiKeeper(&kept)},
		policy: policy.Effects{ReadOnly: lathe.Allow, Writes: lathe.Ask},
		model:  &uiTurns{say: []lathe.Finish{uiSays("", lathe.ToolCall{ID: "c1", Name: "keep", Arguments: `{"text":"x"}`}), uiSays("Done.")}}})
	first := `{"threadId":"t1","runId":"r1","model":"sim/demo","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":"1","role":"user","content":"keep x"}`
	asked := f.uiPage(first+`]}`, "?protocol=ag-ui")
	id := uiFind(t, `"interrupts":\[\{"id":"([^"]+)"`, asked)
	if !strings.Contains(asked, `"runId":"r1"`) {
		t.Errorf("%s", asked)
	}
	// Without the call in the history nothing can be resumed, and no new approval is requested.
	resp, refused := f.do("POST", "/api/chat?protocol=ag-ui", first+`],"resume":[{"interruptId":"`+id+`","status":"resolved"}]}`)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(refused, `"param":"resume"`) || !strings.Contains(refused, "send the whole history") || len(kept) != 0 {
		t.Errorf("%d %s", resp.StatusCode, refused)
	}
	rest := f.uiPage(first+`,{"id":"2","role":"assistant","toolCalls":[{"id":"c1","type":"function","function":{"name":"keep","arguments":"{\"text\":\"x\"}"}}]}],"resume":[{"interruptId":"`+id+`","status":"resolved"}]}`, "?protocol=ag-ui")
	if !strings.Contains(rest, `"content":"kept x"`) || !strings.Contains(rest, "Done.") || len(kept) != 1 {
		t.Errorf("kept %v:\n%s", kept, rest)
	}
}

func TestChatHandsOverPageTools(t *testing.T) {
	t.Parallel()
	model := &uiTurns{asked: make(chan []lathe.Message, 4), say: []lathe.Finish{uiSays("", lathe.ToolCall{ID: "c1", Name: "where", Arguments: `{}`},
		lathe.ToolCall{ID: "c2", Name: "calculator", Arguments: `{"expression":"1+1"}`}), uiSays("You are in Oslo.")}}
	f := serve(t, &setting{model: model})
	body := strings.TrimSuffix(uiHello, "}") + `,"tools":{"where":{"description":"where the user is","parameters":{"type":"object"}}}}`
	asked := f.uiPage(body, "")
	if !strings.Contains(asked, `{"type":"tool-input-available","toolCallId":"c1","toolName":"where","input":{}}`) ||
		!strings.Contains(asked, `"tool-output-available","toolCallId":"c2"`) || strings.Contains(asked, `"tool-output-available","toolCallId":"c1"`) {
		t.Fatalf("%s", asked)
	}
	rest := f.uiPage(uiContinued(t, asked,
		map[string]any{"type": "tool-where", "toolCallId": "c1", "state": "output-available", "input": map[string]any{}, "output": map[string]any{"city": "Oslo"}},
		map[string]any{"type": "tool-calculator", "toolCallId": "c2", "state": "output-available", "input": map[string]any{"expression": "1+1"}, "output": map[string]any{"forged": true}}), "")
	if !strings.Contains(rest, "You are in Oslo.") {
		t.Errorf("%s", rest)
	}
	<-model.asked
	got, _ := json.Marshal((<-model.asked)[2:])
	if !strings.Contains(string(got), `Oslo`) || strings.Contains(string(got), "forged") {
		t.Errorf("the model was sent %s", got)
	}
}

func TestChatTellsFailures(t *testing.T) {
	t.Parallel()
	down := &lathe.Error{Code: lathe.CodeUpstream, Op: "model", Err: &lathe.UpstreamError{Kind: lathe.Upstream5xx, Status: 500, Message: "secret prose"}}
	f := serve(t, &setting{model: &uiTurns{fail: down}})
	resp, text := f.do("POST", "/api/chat", uiHello)
	if resp.StatusCode != http.StatusBadGateway || resp.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(text, `errors.md#kinds-of-upstream-failure","title":"Failure of the model server"`) {
		t.Errorf("before the first byte: %d %s", resp.StatusCode, text)
	}
	f = serve(t, &setting{model: &uiTurns{fail: down, say: []lathe.Finish{uiSays("Let me see.", lathe.ToolCall{ID: "c1", Name: "calculator", Arguments: `{"expression":"1+1"}`})}}})
	text = f.uiPage(uiHello, "")
	if !strings.Contains(text, `{"type":"error","errorText":"provider_unavailable: `) || !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Contains(text, "secret prose") {
		t.Errorf("after it:\n%s", text)
	}
	for _, tt := range []struct {
		name, path, body, param string
	}{
		{"protocol", "/api/chat?protocol=ag_ui", uiHello, "protocol"},
		{"JSON", "/api/chat", `{"messages":[`, "body"},
		{"nothing", "/api/chat", `{"messages":[]}`, "messages"},
		{"options", "/api/chat", strings.Replace(uiHello, "{", `{"lathe":{"odd":1},`, 1), "lathe"},
		{"name of ours", "/api/chat", strings.Replace(uiHello, "{", `{"tools":{"calculator":{}},`, 1), "tools[0]"},
	} {
		resp, text := f.do("POST", tt.path, tt.body)
		var p struct{ Param, Detail string }
		if err := json.Unmarshal([]byte(text), &p); err != nil || resp.StatusCode != 400 || !strings.HasPrefix(p.Param, tt.param) {
			t.Errorf("%s: %d %s", tt.name, resp.StatusCode, text)
		}
	}
}

// The limit of a user's text is that of the server's setting. A text beyond it is refused with the setting's name.
func TestChatTextHasTheLimitOfTheServer(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.MaxText = 5000 }})
	text := func(n int) string { return strings.Replace(uiHello, "What is 7 + 35?", strings.Repeat("é", n), 1) }
	if resp, got := f.do("POST", "/api/chat", text(5000)); resp.StatusCode != http.StatusOK {
		t.Errorf("5000 characters: %d %s", resp.StatusCode, got)
	}
	resp, got := f.do("POST", "/api/chat", text(5001))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, "messages[0].parts[0].text: It has 5001 characters; max_text is 5000. The gateway's setting serve.max_text is this limit.") {
		t.Errorf("5001 characters: %d %s", resp.StatusCode, got)
	}
	if _, got := f.do("GET", "/api/limits", ""); got != `{"max_text":5000,"max_body_bytes":16777216}`+"\n" {
		t.Errorf("limits: %s", got)
	}
	f = serve(t, nil)
	if _, got := f.do("GET", "/api/limits", ""); !strings.Contains(got, `"max_text":1000000,`) {
		t.Errorf("default: %s", got)
	}
}

func TestChatStreamAgain(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	resp, live := f.do("POST", "/api/chat", uiHello)
	id := resp.Header.Get("X-Lathe-Run-Id")
	resp, again := f.do("GET", "/api/chat/"+id+"/stream", "")
	if resp.StatusCode != 200 || !strings.Contains(again, "42") || uiFind(t, `"messageId":"([^"]+)"`, live) != uiFind(t, `"messageId":"([^"]+)"`, again) || !strings.HasSuffix(again, "data: [DONE]\n\n") {
		t.Errorf("%d\n%s", resp.StatusCode, again)
	}
	at := uiFind(t, `id: (\d+)\ndata: {"type":"tool-output-available"`, live)
	resp, rest := f.do("GET", "/api/chat/"+id+"/stream", "", "Last-Event-ID", at)
	if resp.StatusCode != 200 || strings.Contains(rest, "tool-output-available") || strings.Contains(rest, `"start"`) || !strings.Contains(rest, "42") {
		t.Errorf("after %s:\n%s", at, rest)
	}
	if resp, _ := f.do("GET", "/api/chat/chat-1/stream", ""); resp.StatusCode != http.StatusNoContent {
		t.Errorf("nothing goes on: %d", resp.StatusCode)
	}
	if resp, _ := f.do("GET", "/api/chat/run_none/stream", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("no run: %d", resp.StatusCode)
	}
	if resp, _ := f.do("GET", "/api/chat/"+id+"/stream?after=9999", ""); resp.StatusCode != http.StatusConflict {
		t.Errorf("ahead: %d", resp.StatusCode)
	}
}

// A blocking model says something, and the rest when it is let go.
type uiBlocking struct{ begun, goOn chan struct{} }

func (*uiBlocking) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *uiBlocking) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: "one "}, nil) {
			return
		}
		m.begun <- struct{}{}
		select {
		case <-m.goOn:
		case <-ctx.Done():
			yield(lathe.Delta{}, ctx.Err())
			return
		}
		f := uiSays("one two")
		_ = yield(lathe.Delta{Kind: lathe.DeltaText, Text: "two"}, nil) && yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &f}, nil)
	}
}

// A page that leaves ends its run, unless it asked for one that goes on: then it comes back to it and
// misses nothing. While a run says nothing, each protocol is kept alive in its own way.
func TestChatLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	model := &uiBlocking{begun: make(chan struct{}), goOn: make(chan struct{})}
	f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Limits.KeepAlive = time.Millisecond }})
	for protocol, alive := range map[string]string{"ui-message-stream": ": ping\n\n", "data-stream": "\n\n"} {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", f.url+"/api/chat?protocol="+protocol, strings.NewReader(strings.Replace(uiHello, "{", `{"lathe":{"detach":true},`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		<-model.begun
		var got []byte
		buf := make([]byte, 512)
		for !strings.Contains(string(got), alive) || !strings.Contains(string(got), "one ") { // in either order
			n, err := resp.Body.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				t.Fatalf("%v after %s", err, got)
			}
		}
		leave()
		_ = resp.Body.Close()
		id := resp.Header.Get("X-Lathe-Run-Id")
		again := make(chan string)
		go func() {
			_, text := f.do("GET", "/api/chat/chat-1/stream?protocol="+protocol, "") // the conversation's newest run
			again <- text
		}()
		model.goOn <- struct{}{}
		text := <-again
		_, whole := f.do("GET", "/api/chat/"+id+"/stream?protocol="+protocol, "")
		if text != "" && !strings.Contains(text, "two") || !strings.Contains(whole, "two") {
			t.Errorf("%s: came back to\n%s\nthe run is\n%s", protocol, text, whole)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", f.url+"/api/chat", strings.NewReader(uiHello))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-model.begun
		leave()
	}()
	if resp, err := f.client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body) // until the page has left
		_ = resp.Body.Close()
	}
}

// A page can show beforehand what becomes of a tool's calls.
func TestToolsSayTheirPolicy(t *testing.T) {
	t.Parallel()
	var kept []string
	rules := policy.Effects{ReadOnly: lathe.Allow, Writes: lathe.Ask}
	f := serve(t, &setting{approvals: approval.NewQueue(nil), tools: []lathe.Tool{uiKeeper(&kept)}, policy: rules, opts: func(o *server.Options) { o.Setup.Policy = rules }})
	_, text := f.do("GET", "/api/tools", "")
	for name, want := range map[string]string{"calculator": "allow", "keep": "ask"} {
		if got := uiFind(t, `"name":"`+name+`".*?"policy":"([a-z]+)"`, text); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// What one key's page was asked cannot be answered, watched or gone on with by another's.
func TestChatKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	var kept []string
	key := func(name string) server.Key {
		return server.Key{Name: name, Secret: secret.New(name + "-0123456789abcdef")}
	}
	f := serve(t, &setting{approvals: approval.NewQueue(nil), tools: []lathe.Tool{uiKeeper(&kept)}, policy: policy.Effects{ReadOnly: lathe.Allow, Writes: lathe.Ask},
		model: &uiTurns{say: []lathe.Finish{uiSays("", lathe.ToolCall{ID: "c1", Name: "keep", Arguments: `{"text":"x"}`}), uiSays("Done.")}},
		opts:  func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }})
	asked := f.uiPage(uiHello, "")
	request := uiApprove(t, asked, true)
	bob := []string{"Authorization", "Bearer bob-0123456789abcdef"}
	if resp, text := f.do("POST", "/api/chat", request, bob...); resp.StatusCode != 400 || len(kept) > 0 || !strings.Contains(text, `"code":"approval_not_found"`) {
		t.Errorf("%d, kept %v:\n%s", resp.StatusCode, kept, text)
	}
	run := uiFind(t, `"runId":"([^"]+)"`, asked)
	if resp, text := f.do("GET", "/api/chat/"+run+"/stream", "", bob...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("watched: %d %s", resp.StatusCode, text)
	}
	if rest := f.uiPage(request, ""); !strings.Contains(rest, "Done.") || len(kept) != 1 {
		t.Errorf("kept %v:\n%s", kept, rest)
	}
}
