// The spans of a timeline: what each was, and how it ended.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ofCall, itemsOf } from "../src/run/items.ts";
import { withDelta } from "../src/run/deltas.ts";
import { coloursOf, ranFor, spansOf } from "../src/run/spans.ts";

const events = (...list) => list.map(([ms, type, data = {}, content], i) => ({ event_id: i + 1, time: new Date(Date.UTC(2026, 0, 2) + ms).toISOString(), turn: 1, type, data, content, raw: "" }));
const call = { tool_call_id: "c1", tool: "mail" };

test("an attempt begins after its wait, and is named and ended by itself", () => {
  const spans = spansOf(events([0, "ModelCallStarted", { attempt: 1, model: "m" }], [2, "ModelCallFinished", { status: "error", error_code: "timeout", latency_ms: 2 }],
    [2, "ModelCallStarted", { attempt: 2, model: "m" }], [502, "ModelCallFinished", { status: "success", latency_ms: 100 }]));
  assert.deepEqual(spans.map((s) => [s.label, s.state, s.parts.map((p) => [p.kind, (p.to - p.from) / 1000])]), [["m, attempt 1", "failed", []], ["m, attempt 2", "completed", [["wait", 400]]]]);
});

test("attempts that failed one after another are one item", () => {
  const failed = (ms, attempt, more = {}, said = "overloaded") => [ms, "ModelCallFinished", { status: "error", error_code: "upstream_5xx", upstream_status: 503, latency_ms: 1, attempt, model: "m", ...more }, { error_message: said }];
  const begun = (ms, attempt) => [ms, "ModelCallStarted", { attempt, model: "m" }], list = [begun(0, 1), failed(1, 1), begun(1, 2), failed(502, 2), begun(502, 3), failed(1503, 3)];
  const { items } = itemsOf(events(...list));
  assert.deepEqual(items.map((i) => [i.text, i.attempts.length, i.step.data.attempt]), [["3 attempts, each HTTP 503, server error: overloaded", 3, 3]]);
  const [other] = itemsOf(events(begun(0, 1), failed(1, 1), begun(1, 2), failed(502, 2, { upstream_status: 429, error_code: "rate_limited" }, ""))).items;
  assert.equal(other.text, "2 attempts failed: HTTP 503, server error: overloaded; HTTP 429, rate limited");
  const after = itemsOf(events(begun(0, 1), failed(1, 1), begun(1, 2), [9, "ModelCallFinished", { status: "success", attempt: 2 }, { message: { role: "assistant", parts: [{ type: "text", text: "Hello." }] } }])).items;
  assert.deepEqual(after.map((i) => [i.text, i.step.data.attempt]), [["The model call failed: HTTP 503, server error: overloaded", 1], ["Hello.", 2]]);
});

test("the legend has the colours of the spans only", () => {
  const retried = events([0, "ModelCallStarted", { attempt: 1 }], [1, "ModelCallFinished", { status: "error", latency_ms: 1 }], [1, "ModelCallStarted", { attempt: 2 }], [502, "ModelCallFinished", { status: "error", latency_ms: 1 }]);
  assert.deepEqual([...coloursOf(spansOf(retried))].sort(), ["failed", "model", "pause"]);
  assert.deepEqual([...coloursOf(spansOf(events([0, "ToolCallPlanned", call], [1, "ApprovalRequested", call])))].sort(), ["approval", "tool"]);
  assert.deepEqual([...coloursOf(spansOf(events([0, "ToolCallPlanned", call])))].sort(), ["running", "tool"]);
  assert.deepEqual([...coloursOf(spansOf(events([0, "ToolCallPlanned", call], [90, "ToolCallExecuted", { ...call, success: true, latency_ms: 30 }], [100, "ToolCallResult", { ...call, status: "ok" }])))].sort(), ["idle", "tool", "work"]);
});

test("a call that a person denied never ran, and one that is asked for awaits its approval", () => {
  const asked = events([0, "ToolCallPlanned", call], [1, "ApprovalRequested", call]);
  assert.equal(spansOf(asked)[0].state, "awaiting_approval");
  const denied = events([0, "ToolCallPlanned", call], [1, "ApprovalRequested", call], [9, "ApprovalResolved", { ...call, decision: "denied", by: "ann" }], [9, "ToolCallResult", { ...call, status: "error", error_type: "approval_denied" }]);
  assert.deepEqual(spansOf(denied).map((s) => [s.state, s.note]), [["denied", "denied by ann, approval_denied"]]);
  assert.equal(spansOf(events([0, "ToolCallPlanned", call], [5, "RunFinished", { status: "cancelled" }]))[0].state, "cancelled");
});

test("what the model is writing is told from what it has said", () => {
  const { thought, text, writing } = itemsOf(events([0, "ModelCallStarted"], [1, "ReasoningDelta", {}, { text: "hm" }], [2, "TextDelta", {}, { text: "It is" }], [3, "ToolCallDelta", { tool: "mail" }]));
  assert.deepEqual([thought, text, writing], ["hm", "It is", "mail"]);
  assert.equal(ofCall({ id: "c1", name: "mail", args: "", event: 1 }, true), "running");
  assert.equal(ofCall({ id: "c1", name: "mail", args: "", event: 1, stored: { type: "tool_result" } }, false), "completed");
});

test("a tool ran as long as was measured, and has its progress while it runs", () => {
  const [done] = spansOf(events([0, "ToolCallPlanned", call], [90, "ToolCallExecuted", { ...call, success: true, latency_ms: 30 }], [100, "ToolCallResult", { ...call, status: "ok" }]));
  assert.deepEqual([ranFor(done, 0), (done.to - done.from) / 1000, done.parts.map((p) => [p.kind, (p.from - done.from) / 1000, (p.to - done.from) / 1000])], [30, 100, [["work", 60, 90]]]);
  const list = events([0, "ToolCallPlanned", call], [50, "ToolCallProgress", { ...call, done: 2, total: 5 }]);
  delete list[1].event_id;
  const [open] = spansOf(list);
  assert.deepEqual([open.progress, ranFor(open, open.from + 70_000)], [{ done: 2, total: 5 }, 70]);
});

test("the deltas of a stream that is made anew take the place of those that are known, and a gap is told", () => {
  const delta = (n, text, after = 2) => ({ type: "TextDelta", after, n, time: "2026-01-02T00:00:00Z", turn: 1, data: {}, content: { text }, raw: "" });
  const told = (list) => list.reduce(withDelta, []).map((e) => e.content.text).join("");
  assert.equal(told([delta(1, "one "), delta(2, "two")]), "one two");
  assert.equal(told([delta(1, "one "), delta(2, "two"), delta(1, "one two"), delta(2, " three")]), "one two three");
  assert.equal(told([delta(3, "three")]), "… three");
  assert.equal(told([delta(1, "a"), delta(1, "b", 7)]), "ab");
});
