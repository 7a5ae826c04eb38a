package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
const cue = () => fetch("cue", { method: "POST" });
const text = () => [...document.querySelectorAll(".assistant .said")].map((n) => n.textContent).join("|");
try {
  const kept = sessionStorage.getItem("driver");
  await until("the page", () => document.documentElement.dataset.ready);
  if (!kept) {
    $("#prompt").value = "tell me";
    $("#form").requestSubmit();
    await until("the text", () => text().includes("Two."));
    const node = $(".assistant .said").firstChild;
    getSelection().setBaseAndExtent(node, 0, node, 4);
    await cue();
    await until("more text", () => text().includes("Still"));
    report.selected = getSelection().toString();
    report.node = String($(".assistant .said").firstChild === node);
    await cue();
    report.lost = (await until("the loss", () => $(".working.lost"))).textContent;
    report.health = $("#health").className;
    report.during = text();
    await until("the text after the loss", () => text().includes("Three."));
    report.after = text();
    await until("the mark", () => $("#health").className === "health up");
    report.working = $(".working").textContent;
    report.spoken = $("#spoken").textContent;
    report.unsent = $("#prompt").value;
    sessionStorage.setItem("driver", JSON.stringify(report));
    location.reload();
    await new Promise(() => {});
  }
  Object.assign(report, JSON.parse(kept));
  report.reloaded = text();
  report.behind = (await until("the mark of the message", () => $(".working"))).textContent;
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
		"error": "", "selected": "One.", "node": "true", "lost": "The connection to the server is lost. Trying again…", "health": "health down", "during": "One. Two. Still ",
		"after": "One. Two. Still Three. ", "working": "working", "spoken": "One. Two. Still Three.", "unsent": "", "reloaded": "One. Two. Still Three. ", "behind": "working: the rest of this text appears when the model call ends", "final": "One. Two. Still Three. End.",
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
  await until("the page", () => document.documentElement.dataset.ready);
  $("#prompt").value = "keep it";
  $("#form").requestSubmit();
  await until("the card", () => $("#talk .card") && $("#stop").hidden);
  if (CLICK) {
    $("#talk .card .answers button").focus();
    $("#talk .card .answers button").click();
  } else await fetch("cue", { method: "POST" });
  await until("the end", () => document.body.textContent.includes("It was not kept.") && $("#stop").hidden);
  report.said = $("#talk .tool .meta").textContent;
  report.state = $("#talk .tool .state").textContent;
  report.focus = document.activeElement.tagName;
} catch (e) {
  report.error = e.message + " " + document.body.textContent;
}
await send();
`

// A call that was decided elsewhere is shown with who decided and when, whether the page hears of it or answers it
// too late; the run is followed and no second one begins.
func TestPageNamesTheApproverElsewhere(t *testing.T) {
	t.Parallel()
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
		want := "This call was already denied by ann at " // and the time, as the browser writes it
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
  await until("the page", () => document.documentElement.dataset.ready);
  const { Card } = await import("./card.js");
  const soon = new Date(Date.now() + 3600e3).toISOString();
  const call = (more) => ({ tool_call_id: "c1", tool: "keep", args_digest: "d1", effect: "writes", expires_at: soon, arguments: '{"a":1}', ...more });
  const state = (c) => [c.approve.disabled, c.deny.disabled, c.change.disabled, c.status.textContent].join(" ");
  report.whole = state(new Card("run_1", call({})));
  report.cut = state(new Card("run_1", call({ arguments: '{"a":"x [… 9 characters' })));
  report.array = state(new Card("run_1", call({ arguments: "[1]" })));
  report.hidden = state(new Card("run_1", call({ arguments: '{"a":"\u200b"}' })));
  let decided;
  const late = new Card("run_1", call({ expires_at: "2026-01-02T03:04:05Z" }), (d) => { decided = d.decision; });
  report.late = [decided, late.answers.hidden, late.note.textContent].join(" ");
  const card = new Card("run_1", call({ arguments: '{"id":12345678901234567890,"t":"\u200b"}', visible_arguments: '{"id":12345678901234567890,"t":"\\u200b"}' }));
  document.body.append(card.element);
  card.change.click();
  const box = card.element.querySelector("textarea");
  report.box = box.value;
  box.value = "[]";
  card.element.querySelector(".editor button").click();
  report.refused = card.status.textContent;
  box.value = '{"id":12345678901234567891}';
  card.element.querySelector(".editor button").click();
  await until("the answer", () => card.decision);
  report.edited = card.note.textContent.replace(/ at .*/, "");
  report.focus = String(document.activeElement === card.element);
} catch (e) {
  report.error = e.message + e.stack;
}
await send();
`

// A card approves nothing that it does not show whole, and sends edited arguments as they were written.
func TestT23_CardApprovesOnlyWhatItShows(t *testing.T) {
	t.Parallel()
	s := newStage(cardDriver)
	bodies := make(chan string, 10)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+" "+r.URL.Path != "POST /api/runs/run_1/approvals/c1" {
			return false
		}
		b, _ := io.ReadAll(r.Body)                                                                                                           // the page left
		_ = json.NewEncoder(w).Encode(map[string]any{"run_id": "run_1", "status": "running", "open_calls": []any{}, "started": time.Time{}}) // the page left
		bodies <- string(b)
		return true
	}
	report := s.browse(t, "1280,860")
	for name, want := range map[string]string{
		"error": "", "whole": "false false false ", "focus": "true", "edited": "This call was approved with other arguments by you", "late": "expired true The request has expired: the call is not made.",
		"cut":     "true false true The arguments are not shown whole, so the call cannot be approved here. It can be denied.",
		"array":   "true false true The arguments are not shown whole, so the call cannot be approved here. It can be denied.",
		"hidden":  "true false true This page and the server do not agree on what can be seen of the arguments, so the call cannot be approved here. Reload the page.",
		"box":     "{\n  \"id\": 12345678901234567890,\n  \"t\": \"\\u200b\"\n}",
		"refused": `The arguments must be a JSON object, such as {"name": "value"}.`,
	} {
		if report[name] != want {
			t.Errorf("%s is %q, want %q", name, report[name], want)
		}
	}
	select {
	case got := <-bodies:
		if got != `{"decision":"edit","digest":"d1","arguments":{"id":12345678901234567891}}` || len(bodies) != 0 {
			t.Errorf("sent %s", got)
		}
	default:
		t.Error("nothing was sent")
	}
}
