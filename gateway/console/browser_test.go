package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/gateway/console"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// A stage plays the server of the page: it answers the requests that the page makes, and lets a script of
// the test into the page, which drives it and reports what it saw.
type stage struct {
	script   string
	asked    chan string // bodies that the page sent to api/chat
	reported chan map[string]string
	strange  chan string // requests that it should not make
}

const poison = `<img src=x onerror=document.title='owned'><b>bold</b>`

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	events := func(parts ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Lathe-Run-Id", "run_1")
		for _, p := range parts {
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
	case "GET /api/tools":
		answer(map[string]any{"data": []any{map[string]any{"name": "keep", "description": poison, "effect": "writes", "policy": "ask", "advertised": true, "parameters": map[string]any{}}}})
	case "GET /api/runs":
		answer(map[string]any{"data": []any{map[string]any{"run_id": "run_1", "model": poison, "status": "completed", "reason": "answered", "turns": 1, "tool_calls": 0,
			"started": "2026-01-02T03:04:05Z", "usage": map[string]any{"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}}})
	case "GET /api/runs/run_1/events":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\n", `{"time":"2026-01-02T03:04:05Z","type":"RunStarted","data":{"model":`+string(text)+`},"content":{"text":`+string(text)+`}}`) // the page left
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
		case strings.Contains(body.String(), "approval-responded"):
			events(`{"type":"start","messageId":"m1"}`, `{"type":"tool-output-available","toolCallId":"c1","output":{"note":`+string(text)+`}}`,
				`{"type":"tool-input-start","toolCallId":"__proto__","toolName":"constructor"}`, `{"type":"tool-input-available","toolCallId":"__proto__","toolName":"constructor","input":{"__proto__":{"owned":true}}}`,
				`{"type":"tool-output-available","toolCallId":"__proto__","output":{"__proto__":{"owned":true},"constructor":{"prototype":{"owned":true}}}}`,
				`{"type":"start-step"}`, `{"type":"text-start","id":"t2"}`, `{"type":"text-delta","id":"t2","delta":"It is kept."}`, `{"type":"text-end","id":"t2"}`,
				`{"type":"finish-step"}`, `{"type":"finish","finishReason":"stop","messageMetadata":{"runId":"run_1","reason":"answered","turns":2,"toolCalls":1,"usage":{"inputTokens":1,"outputTokens":2}}}`)
		case strings.Contains(body.String(), "fail"):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadGateway)
			answer(map[string]any{"detail": poison, "code": "upstream_5xx"})
		default:
			events(`{"type":"start","messageId":"m1","messageMetadata":{"runId":"run_1","model":"sim/demo"}}`, `{"type":"start-step"}`, `{"type":"text-start","id":"t1"}`,
				`{"type":"text-delta","id":"t1","delta":`+string(text)+`}`, `{"type":"text-end","id":"t1"}`, `{"type":"tool-input-start","toolCallId":"c1","toolName":"keep"}`,
				`{"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{\"text\":"}`, `{"type":"tool-input-available","toolCallId":"c1","toolName":"keep","input":{"text":`+string(text)+`}}`,
				`{"type":"tool-approval-request","approvalId":"d1","toolCallId":"c1"}`, `{"type":"finish-step"}`, `{"type":"finish","finishReason":"tool-calls","messageMetadata":{"runId":"run_1","reason":"awaiting_approval"}}`)
		}
	case "POST /report":
		var report map[string]string
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			report = map[string]string{"error": err.Error()}
		}
		s.reported <- report
	case "GET /":
		page, err := os.ReadFile("page/index.html")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		rec := httptest.NewRecorder()
		console.Handler().ServeHTTP(rec, r)
		w.Header().Set("Content-Security-Policy", rec.Header().Get("Content-Security-Policy"))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, strings.Replace(string(page), "</head>", `<script type="module" src="driver.js"></script></head>`, 1)) // the page left
	default:
		if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") {
			console.Handler().ServeHTTP(w, r)
			return
		}
		s.strange <- r.Method + " " + r.URL.Path
		http.NotFound(w, r)
	}
}

const driver = `
const report = {};
const until = async (what, f) => {
  for (let i = 0; i < 500; i++) {
    const v = f();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 10));
  }
  throw new Error("waited for " + what);
};
const $ = (s) => document.querySelector(s);
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const violations = [];
document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI));
try {
  await until("the page", () => document.documentElement.dataset.ready);
  report.model = $("#model option:nth-child(2)").textContent;
  report.tool = $("#tools .row").textContent;
  $("#prompt").focus();
  $("#prompt").value = "keep it";
  press("Enter");
  await until("the question", () => $(".ask") && $("#stop").hidden);
  report.text = $(".said").textContent === "keep it" ? document.querySelectorAll(".said")[1].textContent : "?";
  report.args = $(".tool pre").textContent;
  report.asks = $(".ask").textContent;
  report.focusable = [...document.querySelectorAll(".ask button")].map((b) => b.tabIndex).join();
  $(".ask button").focus();
  $(".ask button").click();
  await until("the result", () => document.body.textContent.includes("It is kept.") && $("#stop").hidden);
  report.result = [...document.querySelectorAll(".tool pre")].map((p) => p.textContent).join("|");
  report.meta = $(".assistant .meta").textContent;
  $("#runs button.row").click();
  await until("the timeline", () => $(".events li"));
  report.timeline = $(".events").textContent;
  $("#timeline button").click();
  $("#fresh").click();
  $("#prompt").value = "fail";
  $("#form").requestSubmit();
  report.problem = (await until("the problem", () => $("#talk .problem"))).textContent;
  $("#prompt").value = "once more, with fail in its past";
  $("#form").requestSubmit();
  await until("the second problem", () => document.querySelectorAll("#talk .problem").length === 2 && $("#stop").hidden);
  report.unnamed = [...document.querySelectorAll("button, input, select, textarea")].filter((n) => !n.textContent.trim() && !n.labels?.length && !n.ariaLabel).map((n) => n.outerHTML).join();
  report.wide = String(document.documentElement.scrollWidth > document.documentElement.clientWidth);
} catch (e) {
  report.error = e.message;
}
report.images = String(document.querySelectorAll("img[src=x]").length);
report.bold = String(document.querySelectorAll("#talk b b, #talk .said b, pre b, small b").length);
report.title = document.title;
report.owned = String(({}).owned) + String([].owned);
report.names = String(document.body.textContent.includes("constructor"));
report.violations = violations.join();
await fetch("report", { method: "POST", body: JSON.stringify(report) });
`

// The page in a real browser: it streams, asks, goes on, fails and shows a run, by keyboard too; what comes
// from outside is text wherever it is shown, names that mean something to its language are names like any
// other, and the browser's guards have nothing to refuse.
func TestT27_T41_PageInABrowser(t *testing.T) {
	t.Parallel()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium not found: install it to test the page in a browser")
	}
	for _, size := range []string{"1280,860", "640,430"} { // the second is the first at 200 % zoom
		s := &stage{script: driver, asked: make(chan string, 10), reported: make(chan map[string]string, 1), strange: make(chan string, 10)}
		srv := httptest.NewServer(s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
			"--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", "--window-size="+size, srv.URL)
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var report map[string]string
		select {
		case report = <-s.reported:
		case <-ctx.Done():
			t.Error("the browser did not report in time")
		}
		cancel()
		_ = cmd.Wait() // it was ended
		srv.Close()
		if report == nil {
			return
		}
		for name, want := range map[string]string{
			"error": "", "images": "0", "bold": "0", "title": "Lathe", "violations": "", "model": poison, "text": poison, "unnamed": "", "wide": "false", "focusable": "0,0", "owned": "undefinedundefined",
		} {
			if report[name] != want {
				t.Errorf("%s: %s is %q, want %q", size, name, report[name], want)
			}
		}
		for name, want := range map[string]string{"tool": poison, "asks": "changes something", "meta": "2 model calls", "problem": poison, "timeline": "RunStarted"} {
			if !strings.Contains(report[name], want) {
				t.Errorf("%s: %s has no %q: %q", size, name, want, report[name])
			}
		}
		if !strings.Contains(report["tool"], "asks first") {
			t.Errorf("%s: the tool is shown as %q", size, report["tool"])
		}
		if !strings.Contains(report["args"], "onerror") || !strings.Contains(report["result"], "onerror") {
			t.Errorf("%s: args %q, result %q", size, report["args"], report["result"])
		}
		<-s.asked
		if second := <-s.asked; !strings.Contains(second, `"approval":{"id":"d1","approved":true}`) || !strings.Contains(second, `"runId":"run_1"`) {
			t.Errorf("%s: the answer was sent as %s", size, second)
		}
		select {
		case r := <-s.strange:
			t.Errorf("%s: the page asked for what it should not: %s", size, r)
		default:
		}
	}
}
