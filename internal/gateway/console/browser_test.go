package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/gateway/console"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// A stage plays the server of the page: it answers the requests that the page makes, and lets a script of
// the test into the page, which drives it and reports what it saw.
type stage struct {
	script   string
	instead  func(w http.ResponseWriter, r *http.Request) bool // answers a request in place of the stage, where it is set
	asked    chan string                                       // bodies that the page sent to api/chat and to api/runs/run_1/approvals/c1
	decided  atomic.Bool
	began    atomic.Bool // a run waits for an approval
	reported chan map[string]string
	strange  chan string // requests that it should not make
}

// exact are arguments of which each character counts; a value made of them loses digits, order and repeated keys.
const exact = `{"b":12345678901234567890,"a":1e400,"10":"x","2":[],"note":"` + "\u202ehidden\u200b" + `\u202e <b>","2":{"text": "` + poisonText + `"}}`

// poisonText is poison as JSON's text has it.
const poisonText = `<img src=x onerror=document.title='owned'><b>bold</b>`

const digest = "00000000000000000000000000000000000000000000000000000000000000d1"

// waitingCall is the call of run_1 as the server tells it.
func waitingCall() map[string]any {
	return map[string]any{"run_id": "run_1", "session_id": "elsewhere", "model": "sim/demo", "started": "2026-01-02T03:04:05Z", "tool_call_id": "c1", "tool": "keep", "state": "awaiting_approval",
		"arguments": "what the model wrote", "exact_arguments": exact, "visible_arguments": approval.Visible(exact), "args_digest": digest, "origin": "mcp:notes", "effect": "writes",
		"rule": "effect.writes", "expires_at": time.Now().Add(time.Hour).Format(time.RFC3339), "facts": []any{map[string]any{"name": "why asked", "value": poison}}}
}

// run is run_1 as the server tells it.
func (s *stage) run() map[string]any {
	run := map[string]any{"run_id": "run_1", "status": "parked", "reason": "awaiting_approval", "last_event_id": 7, "open_calls": []any{waitingCall()}}
	if s.decided.Load() {
		run["status"], run["open_calls"] = "running", []any{}
		run["decisions"] = []any{map[string]any{"tool_call_id": "c1", "tool": "keep", "args_digest": digest, "decision": "approved", "by": "ann", "decided_at": "2026-01-02T03:04:06Z"}}
	}
	return run
}

// laid is what a card shows of exact: other white space between tokens, and escapes for what cannot be seen.
var laid = strings.NewReplacer("\u202e", `\u202e`, "\u200b", `\u200b`).Replace(`{
  "b": 12345678901234567890,
  "a": 1e400,
  "10": "x",
  "2": [],
  "note": "` + "\u202ehidden\u200b" + `\u202e <b>",
  "2": {
    "text": "` + poisonText + `"
  }
}`)

const poison = `<img src=x onerror=document.title='owned'><b>bold</b>`

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.instead != nil && s.instead(w, r) {
		return
	}
	events := func(parts ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Lathe-Run-Id", "run_1")
		for _, p := range parts {
			if strings.HasPrefix(p, `{"type":"tool-approval-request"`) {
				p = p + "\nid: 6"
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", p) // the page left
		}
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n") // the page left
	}
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the page left
	}
	text, _ := json.Marshal(poison)
	switch r.Method + " " + r.URL.Path {
	case "GET /driver.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprint(w, s.script) // the page left
	case "GET /v1/models":
		answer(map[string]any{"data": []any{map[string]any{"id": poison}, map[string]any{"id": "sim/demo"}}})
	case "GET /api/models":
		answer(map[string]any{"data": []any{map[string]any{"name": poison, "model": poison}}})
	case "GET /api/stats":
		answer(map[string]any{"total": map[string]any{}, "models": []any{map[string]any{"name": poison, "model_calls": map[string]any{"calls": 1, "errors": 0}}}})
	case "GET /api/servers":
		answer(map[string]any{"data": []any{}})
	case "GET /api/tools":
		answer(map[string]any{"data": []any{map[string]any{"name": "keep", "description": poison, "effect": "writes", "policy": "ask", "advertised": true, "parameters": map[string]any{}}}})
	case "GET /api/limits":
		answer(map[string]any{"max_text": 5000, "max_body_bytes": 1 << 20})
	case "GET /livez":
		_, _ = fmt.Fprintln(w, "ok") // the page left
	case "GET /api/approvals":
		calls := []any{}
		if !s.decided.Load() && s.began.Load() {
			calls = append(calls, waitingCall())
		}
		answer(map[string]any{"data": calls})
	case "GET /api/runs/run_1":
		answer(s.run())
	case "POST /api/runs/run_1/approvals/c1":
		b, _ := io.ReadAll(r.Body) // the page left
		s.asked <- string(b)
		s.decided.Store(true)
		answer(s.run())
	case "GET /api/chat/run_1/stream":
		if id := r.Header.Get("Last-Event-ID"); id != "6" {
			s.strange <- "the stream after " + id
		}
		events(`{"type":"tool-output-available","toolCallId":"c1","output":{"big":12345678901234567890,"note":`+string(text)+`}}`,
			`{"type":"tool-input-start","toolCallId":"__proto__","toolName":"constructor"}`, `{"type":"tool-input-available","toolCallId":"__proto__","toolName":"constructor","input":{"__proto__":{"owned":true}}}`,
			`{"type":"tool-output-available","toolCallId":"__proto__","output":{"__proto__":{"owned":true},"constructor":{"prototype":{"owned":true}}}}`,
			`{"type":"start-step"}`, `{"type":"text-start","id":"t2"}`, `{"type":"text-delta","id":"t2","delta":"It is kept."}`, `{"type":"text-end","id":"t2"}`,
			`{"type":"finish-step"}`, `{"type":"finish","finishReason":"stop","messageMetadata":{"runId":"run_1","reason":"answered","turns":2,"toolCalls":1,"usage":{"inputTokens":1,"outputTokens":2}}}`)
	case "GET /api/runs":
		if r.URL.Query().Has("session_id") {
			answer(map[string]any{"data": []any{}})
			return
		}
		answer(map[string]any{"data": []any{map[string]any{"run_id": "run_1", "model": poison, "status": "completed", "reason": "answered", "turns": 1, "tool_calls": 0,
			"started": "2026-01-02T03:04:05Z", "usage": map[string]any{"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}}})
	case "GET /api/runs/run_1/events":
		w.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Query().Get("after") != "0" { // the page waits for news
			_, _ = fmt.Fprint(w, ": none\n\n")
			_ = http.NewResponseController(w).Flush() // the page left
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, "id: 1\ndata: %s\n\n", `{"time":"2026-01-02T03:04:05Z","type":"RunStarted","data":{"model":`+string(text)+`},"content":{"text":`+string(text)+`}}`) // the page left
	case "POST /api/chat":
		var body strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buf)
			body.Write(buf[:n])
			if err != nil {
				break
			}
		}
		if _, err := uistream.ParseRequest([]byte(body.String()), nil); err != nil {
			s.strange <- err.Error()
		}
		s.asked <- body.String()
		switch {
		case strings.Contains(body.String(), "fail"):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadGateway)
			answer(map[string]any{"detail": poison, "code": "upstream_5xx"})
		case strings.Contains(body.String(), "keep it"):
			s.began.Store(true)
			events(`{"type":"start","messageId":"m1","messageMetadata":{"runId":"run_1","model":"sim/demo"}}`, `{"type":"start-step"}`, `{"type":"text-start","id":"t1"}`,
				`{"type":"text-delta","id":"t1","delta":`+string(text)+`}`, `{"type":"text-end","id":"t1"}`, `{"type":"tool-input-start","toolCallId":"c1","toolName":"keep"}`,
				`{"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{\"text\":"}`, `{"type":"tool-input-available","toolCallId":"c1","toolName":"keep","input":{"text":`+string(text)+`}}`,
				`{"type":"tool-approval-request","approvalId":"`+digest+`","toolCallId":"c1"}`, `{"type":"finish-step"}`, `{"type":"finish","finishReason":"tool-calls","messageMetadata":{"runId":"run_1","reason":"awaiting_approval"}}`)
		}
	case "POST /report":
		var report map[string]string
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			report = map[string]string{"error": err.Error()}
		}
		s.reported <- report
	case "GET /api/session":
		answer(map[string]any{"signed_in": true, "keys_required": false})
	case "GET /api/sessions":
		answer(map[string]any{"data": []any{}})
	case "GET /text/visible.js", "GET /text/jsontext.js", "GET /text/hidden.js":
		http.ServeFile(w, r, "web/src"+r.URL.Path)
	default:
		if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") {
			rec := httptest.NewRecorder()
			r.Header.Del("Accept-Encoding")
			console.Handler().ServeHTTP(rec, r)
			for name, values := range rec.Header() {
				if name != "Content-Length" && name != "Etag" {
					w.Header()[name] = values
				}
			}
			w.WriteHeader(rec.Code)
			_, _ = fmt.Fprint(w, strings.Replace(rec.Body.String(), "</head>", `<script type="module" src="/driver.js"></script></head>`, 1)) // the page left
			return
		}
		s.strange <- r.Method + " " + r.URL.Path
		http.NotFound(w, r)
	}
}

func newStage(script string) *stage {
	return &stage{script: script, asked: make(chan string, 10), reported: make(chan map[string]string, 1), strange: make(chan string, 10)}
}

// browse opens the page in a browser with a window of the size, and returns what the script reports.
func (s *stage) browse(t *testing.T, size string) map[string]string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium not found: install it to test the page in a browser")
	}
	srv := httptest.NewServer(s)
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the script reports before, also what it waited for in vain
	defer cancel()
	profile, err := os.MkdirTemp("", "lathe-browser-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(profile) }() // a child of the browser may still write to it
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+profile, "--remote-debugging-port=0", "--window-size="+size, srv.URL)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its children, which write to its folder
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was ended
		srv.CloseClientConnections()
	}()
	select {
	case report := <-s.reported:
		return report
	case <-ctx.Done():
		t.Fatal("the browser did not report in time")
	}
	return nil
}

// begin is how a script of a test begins: it can wait, and report.
const begin = `
const report = {};
const until = async (what, f) => {
  for (const start = performance.now(); performance.now() - start < 60000; ) {
    const v = f();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 10));
  }
  throw new Error("waited for " + what);
};
let answers = 0; // of the server, since a fast one is not seen in the page
const ask = window.fetch;
window.fetch = (...args) => ask(...args).finally(() => answers++);
const $ = (s) => document.querySelector(s);
const type = (text) => {
  $("#prompt").value = text;
  $("#prompt").dispatchEvent(new Event("input", { bubbles: true }));
};
const say = (text) => {
  type(text);
  $("#form").requestSubmit();
};
const began = () => until("the page", () => document.documentElement.dataset.ready && $("#prompt") && $("#health.up"));
const send = () => fetch("/report", { method: "POST", body: JSON.stringify(report) });
`

const driver = begin + `
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const violations = [];
document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI));
try {
  await began();
  await until("the models", () => !$("#model").disabled);
  $("#model").click();
  report.model = (await until("the list", () => $("[role=option]:nth-child(2) .pick-name"))).textContent;
  $("#model").click();
  $("#chat-menu").click();
  (await until("the menu", () => $("#options"))).click();
  report.tool = (await until("the tools", () => $("dialog fieldset input"))) && "";
  $("dialog fieldset input").click();
  report.tool = (await until("the tool", () => $("dialog .check + .check"))).textContent;
  $("dialog fieldset input").click();
  $("dialog .dialog-head button").click();
  await until("the end of the dialog", () => !$("dialog"));
  $("#prompt").focus();
  type("keep it");
  press("Enter");
  await until("the question", () => $("#talk .card") && $("#stop").hidden);
  report.path = location.pathname.replace(/[0-9a-f-]{36}/, "ID");
  report.text = $(".user .said").textContent === "keep it" ? $(".assistant .said").textContent : "?";
  report.args = $("#talk .card .exact").textContent;
  report.asks = $("#talk .card").textContent;
  report.escapes = [...document.querySelectorAll("#talk .escape")].map((n) => n.textContent).join(" ");
  report.focusable = [...document.querySelectorAll("#talk .card .answers button")].map((b) => b.tabIndex).join();
  report.loud = [...document.querySelectorAll("[aria-live=polite]")].filter((n) => n.contains($("#talk"))).length + " " + $("#talk").getAttribute("aria-live");
  report.spoken = $("#spoken").textContent;
  $("#talk .card .answers button").focus();
  $("#talk .card .answers button").click();
  await until("the result", () => document.body.textContent.includes("It is kept.") && $("#stop").hidden);
  report.focus = document.activeElement.tagName + " " + document.activeElement.textContent;
  $("#talk .tool summary").click();
  await until("the call", () => $("#talk .tool .json pre"));
  report.decided = $("#talk .tool").textContent;
  report.result = [...document.querySelectorAll("#talk .tool :is(pre, .result-view)")].map((p) => p.textContent).join("|");
  report.meta = $(".assistant > .meta").textContent;
  say("fail after the calls");
  await until("a problem after the calls", () => $("#talk .problem") && $("#stop").hidden);
  $("#fresh").click();
  await until("the new chat", () => $(".welcome"));
  type("x".repeat(5001));
  await until("the length", () => $("#too-long").textContent);
  $("#form").requestSubmit();
  report.long = [$("#too-long").textContent, $("#prompt").value.length, $("#send").disabled, document.querySelectorAll(".turn").length].join("|");
  say("fail");
  report.problem = (await until("the problem", () => $("#talk .problem"))).textContent;
  await until("the end of it", () => $("#stop").hidden);
  say("once more, with fail in its past");
  await until("the second problem", () => document.querySelectorAll("#talk .problem").length === 2 && $("#stop").hidden);
  const answered = answers;
  document.querySelectorAll("#talk .problem")[1].querySelectorAll("button")[0].click();
  await until("the third answer", () => answers > answered);
  await until("the third problem", () => !$("#talk").querySelector(".working") && document.querySelectorAll("#talk .problem").length === 2 && $("#stop").hidden);
  document.querySelectorAll("#talk .problem")[1].querySelectorAll("button")[1].click();
  report.edited = (await until("the question in its editor", () => $(".own-editor textarea"))).value;
  report.unnamed = [...document.querySelectorAll("button, input, select, textarea")].filter((n) => !n.textContent.trim() && !n.labels?.length && !n.ariaLabel).map((n) => n.outerHTML).join();
  report.wide = String(document.documentElement.scrollWidth > document.documentElement.clientWidth);
} catch (e) {
  report.error = e.message + e.stack;
}
report.images = String(document.querySelectorAll("img[src=x]").length);
report.bold = String(document.querySelectorAll("#talk b b, #talk .said b, pre b, .check b b").length);
report.title = String(document.title === "owned");
report.owned = String(({}).owned) + String([].owned);
report.names = String(document.body.textContent.includes("constructor"));
report.violations = violations.join();
await send();
`

// The page in a real browser: it streams, asks, goes on, fails and shows a run, by keyboard too; what comes
// from outside is text wherever it is shown, names that mean something to its language are names like any
// other, and the browser's guards have nothing to refuse.
func TestT27_T41_PageInABrowser(t *testing.T) {
	t.Parallel()
	testdata.NeedLong(t)
	for _, size := range []string{"1280,860", "640,430"} { // the second is the first at 200 % zoom
		s := newStage(driver)
		report := s.browse(t, size)
		for name, want := range map[string]string{
			"error": "", "images": "0", "bold": "0", "title": "false", "violations": "", "model": poison, "text": poison, "unnamed": "", "wide": "false", "focusable": "0,0,0,0,0", "path": "/chats/ID", "owned": "undefinedundefined",
			"args": laid, "escapes": `\u202e \u200b`, "loud": "0 off", "edited": "once more, with fail in its past",
			"long": "The message has 5,001 characters; this gateway takes 5,000. Shorten it, or raise the limit (serve.max_text in lathe.yaml). Nothing was cut off or sent.|5001|true|0",
		} {
			if report[name] != want {
				t.Errorf("%s: %s is %q, want %q", size, name, report[name], want)
			}
		}
		for name, want := range map[string]string{"tool": poison, "asks": fmt.Sprintf("These are all %d bytes", len(exact)), "focus": "SUMMARY keep", "decided": "This call was approved by you, just now.", "result": `big 12345678901234567890`, "spoken": "The call of keep awaits your approval.", "meta": "2 model calls", "problem": poison} {
			if !strings.Contains(report[name], want) {
				t.Errorf("%s: %s has no %q: %q", size, name, want, report[name])
			}
		}
		for _, want := range []string{"changes something", "mcp:notes", poison, digest, "in 59 min"} {
			if !strings.Contains(report["asks"], want) {
				t.Errorf("%s: the card has no %q: %q", size, want, report["asks"])
			}
		}
		<-s.asked
		if got := <-s.asked; got != `{"decision":"approve","digest":"`+digest+`"}` {
			t.Errorf("%s: the answer was sent as %s", size, got)
		}
		if got := <-s.asked; !strings.Contains(got, `\"big\":12345678901234567890`) {
			t.Errorf("%s: a result came back as %s", size, got)
		}
		select {
		case r := <-s.strange:
			t.Errorf("%s: the page asked for what it should not: %s", size, r)
		default:
		}
	}
}
