// The spans of a timeline: what each was, and how it ended.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ofCall, itemsOf } from "../src/run/items.ts";
import { spansOf } from "../src/run/spans.ts";

const events = (...list) => list.map(([ms, type, data = {}, content], i) => ({ event_id: i + 1, time: new Date(Date.UTC(2026, 0, 2) + ms).toISOString(), turn: 1, type, data, content, raw: "" }));
const call = { tool_call_id: "c1", tool: "mail" };

test("an attempt begins after its wait, and is named and ended by itself", () => {
  const spans = spansOf(events([0, "ModelCallStarted", { attempt: 1, model: "m" }], [2, "ModelCallFinished", { status: "error", error_code: "timeout", latency_ms: 2 }],
    [2, "ModelCallStarted", { attempt: 2, model: "m" }], [502, "ModelCallFinished", { status: "success", latency_ms: 100 }]));
  assert.deepEqual(spans.map((s) => [s.label, s.state, s.parts.map((p) => [p.kind, (p.to - p.from) / 1000])]), [["m, attempt 1", "failed", []], ["m, attempt 2", "completed", [["wait", 400]]]]);
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
