package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
)

// frames writes parts of a stream. One that begins with a number and a blank ends the stored event of that id.
func frames(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Lathe-Run-Id", "run_1")
	for _, p := range parts {
		if id, part, ok := strings.Cut(p, " {"); ok && id != "" {
			_, _ = fmt.Fprintf(w, "id: %s\n", id) // the page left, here and below
			p = "{" + part
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", p)
	}
	_ = http.NewResponseController(w).Flush()
}

const (
	begins = `1 {"type":"start","messageId":"m1","messageMetadata":{"runId":"run_1","model":"sim/demo"}}`
	steps  = `2 {"type":"start-step"}`
	speaks = `{"type":"text-start","id":"t1-1"}`
	ends   = `5 {"type":"finish","finishReason":"stop","messageMetadata":{"runId":"run_1","reason":"answered","turns":1}}`
)

func delta(text string) string { return `{"type":"text-delta","id":"t1-1","delta":"` + text + `"}` }

const followDriver = begin + `
const cue = () => fetch("/cue", { method: "POST" });
const text = () => [...document.querySelectorAll(".assistant .said")].map((n) => n.textContent).join("|");
try {
  const kept = sessionStorage.getItem("driver");
  await began();
  if (!kept) {
    say("tell me");
    await until("the text", () => text().includes("Two."));
    const first = () => $(".assistant .md span").firstChild, node = first();
    getSelection().setBaseAndExtent(node, 0, node, 4);
    await cue();
    await until("more text", () => text().includes("Still"));
    report.selected = getSelection().toString();
    report.node = String(first() === node);
    await cue();
    report.lost = (await until("the loss", () => $(".working.lost"))).textContent;
    report.health = $("#health").className;
    report.during = text();
    await until("the text after the loss", () => text().includes("Three."));
    report.after = text();
    await until("the mark", () => $("#health.up"));
    report.working = $(".working").textContent;
    report.spoken = $("#spoken").textContent;
    report.unsent = $("#prompt").value;
    sessionStorage.setItem("driver", JSON.stringify(report));
    location.reload();
    await new Promise(() => {});
  }
  Object.assign(report, JSON.parse(kept));
  report.reloaded = text();
  report.behind = await until("the mark of the message", () => $(".working")?.textContent.includes(":") && $(".working").textContent);
  await cue();
  await until("the end", () => text().includes("End.") && $("#stop").hidden);
  report.final = text();
} catch (e) {
  report.error = e.message + " " + document.body.textContent;
}
await send();
`

// Text that was shown stays, in the same nodes, while more of it comes, when the connection is lost and when the page
// is loaded again; the run is followed from the last stored event; each sentence is read aloud once.
func TestPageFollowsARunOverLossAndReload(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	s := newStage(followDriver)
	cue := make(chan struct{}, 10)
	var streams, questions atomic.Int64
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		next := func() bool {
			select {
			case <-cue:
				return true
			case <-r.Context().Done():
				return false
			}
		}
		switch r.Method + " " + r.URL.Path {
		case "POST /cue":
			cue <- struct{}{}
		case "POST /api/chat":
			questions.Add(1)
			frames(w, begins, steps, speaks, delta("One. Two. "))
			if next() {
				frames(w, delta("Still "))
			}
			if next() {
				panic(http.ErrAbortHandler)
			}
		case "GET /api/chat/run_1/stream":
			if id := r.Header.Get("Last-Event-ID"); id != "2" {
				s.strange <- "the stream after " + id
			}
			switch streams.Add(1) {
			case 1:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				frames(w, speaks, delta("One. Two. "), delta("Still Three. "))
				<-r.Context().Done()
			default:
				if next() {
					frames(w, speaks, delta("One. Two. Still Three. End."), `4 {"type":"text-end","id":"t1-1"}`, ends, "[DONE]")
				}
			}
		default:
			return false
		}
		return true
	}
	report := s.browse(t, "1280,860")
	for name, want := range map[string]string{
		"error": "", "selected": "One.", "node": "true", "lost": "The connection to the gateway is lost. Trying again…", "health": "health lost", "during": "One. Two. Still",
		"after": "One. Two. Still Three.", "working": "working", "spoken": "One. Two. Still Three.", "unsent": "", "reloaded": "One. Two. Still Three.", "behind": "working: the rest of this text appears when the model call ends", "final": "One. Two. Still Three. End.",
	} {
		if report[name] != want {
			t.Errorf("%s is %q, want %q", name, report[name], want)
		}
	}
	if questions.Load() != 1 || streams.Load() != 3 {
		t.Errorf("%d questions and %d streams", questions.Load(), streams.Load())
	}
	select {
	case r := <-s.strange:
		t.Error(r)
	default:
	}
}

const elsewhereDriver = begin + `
try {
  await began();
  say("keep it");
  await until("the card", () => $("#talk .card") && $("#stop").hidden);
  if (CLICK) {
    $("#talk .card .answers button").focus();
    $("#talk .card .answers button").click();
  } else await fetch("/cue", { method: "POST" });
  await until("the end", () => document.body.textContent.includes("It was not kept.") && $("#stop").hidden);
  report.focus = document.activeElement.tagName;
  if (!$("#talk .tool").open) $("#talk .tool summary").click();
  report.said = (await until("the decision", () => $("#talk .tool .meta"))).textContent;
  report.state = $("#talk .tool .state").textContent;
} catch (e) {
  report.error = e.message + " " + document.body.textContent;
}
await send();
`

// A call that was decided elsewhere is shown with who decided and when, whether the page hears of it or answers it
// too late; the run is followed and no second one begins.
func TestPageNamesTheApproverElsewhere(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	for _, click := range []string{"true", "false"} {
		s := newStage(strings.Replace(elsewhereDriver, "CLICK", click, 1))
		cue := make(chan struct{})
		decision := map[string]any{"tool_call_id": "c1", "tool": "keep", "args_digest": digest, "decision": "denied", "by": "ann", "decided_at": "2026-01-02T03:04:06Z"}
		s.instead = func(w http.ResponseWriter, r *http.Request) bool {
			switch r.Method + " " + r.URL.Path {
			case "POST /cue":
				s.decided.Store(true)
				close(cue)
			case "POST /api/runs/run_1/approvals/c1":
				s.decided.Store(true)
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				_ = json.NewEncoder(w).Encode(map[string]any{"status": 409, "code": "already_decided", "detail": "The call has an answer already.", "decision": "denied", "by": "ann", "decided_at": decision["decided_at"]}) // the page left
			case "GET /api/runs/run_1":
				run := s.run()
				if s.decided.Load() {
					run["decisions"] = []any{decision}
				}
				_ = json.NewEncoder(w).Encode(run) // the page left
			case "GET /api/runs/run_1/events":
				frames(w)
				select {
				case <-cue:
					frames(w, `8 {"event_id":8,"type":"ApprovalResolved","data":{}}`)
				case <-r.Context().Done():
				}
			case "GET /api/chat/run_1/stream":
				frames(w, `9 {"type":"tool-output-denied","toolCallId":"c1"}`, `{"type":"start-step"}`, speaks, delta("It was not kept."), `{"type":"text-end","id":"t1-1"}`, ends, "[DONE]")
			default:
				return false
			}
			return true
		}
		report := s.browse(t, "1280,860")
		want := "This call was already denied by ann, " // and the time, as the browser writes it
		if report["error"] != "" || !strings.HasPrefix(report["said"], want) || !strings.Contains(report["said"], "2026") || report["state"] != "⊘ denied" {
			t.Errorf("click %s: %q", click, report)
		}
		if click == "true" && report["focus"] != "SUMMARY" {
			t.Errorf("the focus is on %s", report["focus"])
		}
		if len(s.asked) != 1 {
			t.Errorf("click %s: %d questions", click, len(s.asked))
		}
	}
}

const cardDriver = begin + `
try {
  await began();
  say("keep them");
  const cards = () => [...document.querySelectorAll("#talk .card")];
  await until("the cards", () => cards().length === 5 && $("#stop").hidden);
  const state = (c) => [...[".approve", ".deny", ".change"].map((b) => c.querySelector(b).disabled), c.querySelector(".card-status")?.textContent ?? ""].join(" ");
  [report.whole, report.cut, report.array, report.hidden] = cards().map(state);
  const late = document.querySelectorAll(".tool")[5];
  if (!late.open) late.querySelector("summary").click();
  report.late = (await until("the expired call", () => late.querySelector(".meta"))).textContent;
  const card = cards()[4];
  card.querySelector(".change").focus();
  card.querySelector(".change").click();
  const box = await until("the editor", () => card.querySelector("textarea"));
  report.box = box.value;
  box.value = "[]";
  card.querySelector(".editor button").click();
  report.refused = (await until("the refusal", () => card.querySelector(".card-status"))).textContent;
  box.value = '{"id":12345678901234567891}';
  box.focus();
  card.querySelector(".editor button").click();
  const call = document.querySelectorAll(".tool")[4];
  await until("the answer", () => cards().length === 4);
  await until("the focus", () => document.activeElement.tagName === "SUMMARY");
  if (!call.open) call.querySelector("summary").click();
  report.edited = (await until("the decision", () => call.querySelector(".meta"))).textContent.replace(/, just now.*/, "");
} catch (e) {
  report.error = e.message + e.stack + document.body.textContent;
}
await send();
`

// A card approves nothing that it does not show whole, and sends edited arguments as they were written.
func TestT23_CardApprovesOnlyWhatItShows(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	s := newStage(cardDriver)
	bodies := make(chan string, 10)
	soon := time.Now().Add(time.Hour).Format(time.RFC3339)
	var calls []any
	var parts []string
	call := func(args string, more map[string]any) {
		n := len(calls)
		c := map[string]any{"tool_call_id": fmt.Sprintf("c%d", n), "tool": "keep", "state": "awaiting_approval", "args_digest": fmt.Sprintf("d%d", n), "effect": "writes", "expires_at": soon, "arguments": args}
		maps.Copy(c, more)
		calls = append(calls, c)
		parts = append(parts, fmt.Sprintf(`{"type":"tool-input-start","toolCallId":"c%d","toolName":"keep"}`, n), fmt.Sprintf(`{"type":"tool-input-available","toolCallId":"c%d","toolName":"keep","input":{}}`, n),
			fmt.Sprintf(`{"type":"tool-approval-request","approvalId":"d%d","toolCallId":"c%d"}`, n, n))
	}
	call(`{"a":1}`, nil)
	call(`{"a":"x [… 9 characters`, nil)
	call(`[1]`, nil)
	call("{\"a\":\"\u200b\"}", nil)
	call("{\"id\":12345678901234567890,\"t\":\"\u200b\"}", map[string]any{"visible_arguments": `{"id":12345678901234567890,"t":"\u200b"}`})
	call(`{"a":1}`, map[string]any{"expires_at": "2026-01-02T03:04:05Z"})
	run := map[string]any{"run_id": "run_1", "status": "parked", "open_calls": calls, "last_event_id": 7}
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.Method + " " + r.URL.Path {
		case "POST /api/chat":
			frames(w, append(append([]string{begins, steps}, parts...), `7 {"type":"finish","finishReason":"tool-calls","messageMetadata":{"runId":"run_1","reason":"awaiting_approval"}}`, "[DONE]")...)
		case "GET /api/runs/run_1":
			_ = json.NewEncoder(w).Encode(run) // the page left
		case "GET /api/chat/run_1/stream":
			w.WriteHeader(http.StatusNoContent)
		case "POST /api/runs/run_1/approvals/c4":
			b, _ := io.ReadAll(r.Body)         // the page left
			_ = json.NewEncoder(w).Encode(run) // the page left
			bodies <- string(b)
		default:
			return false
		}
		return true
	}
	report := s.browse(t, "1280,860")
	for name, want := range map[string]string{
		"error": "", "whole": "false false false ", "edited": "This call was approved with other arguments by you", "late": "The request has expired: the call is not made.",
		"cut":     "true false true The arguments are not shown whole, so the call cannot be approved here. It can be denied.",
		"array":   "true false true The arguments are not a JSON object, so the call cannot be approved. It can be denied.",
		"hidden":  "true false true This page and the gateway do not agree on what can be seen of the arguments, so the call cannot be approved here. Reload the page.",
		"box":     "{\n  \"id\": 12345678901234567890,\n  \"t\": \"\\u200b\"\n}",
		"refused": `The arguments must be a JSON object, such as {"name": "value"}.`,
	} {
		if report[name] != want {
			t.Errorf("%s is %q, want %q", name, report[name], want)
		}
	}
	select {
	case got := <-bodies:
		if got != `{"decision":"edit","digest":"d4","arguments":{"id":12345678901234567891}}` || len(bodies) != 0 {
			t.Errorf("sent %s", got)
		}
	default:
		t.Error("nothing was sent")
	}
}
