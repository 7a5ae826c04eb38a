import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesOf, summaryOf } from "../src/audit.ts";

let n = 0;
const line = (type, more = {}) => ({ n: ++n, time: new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString(), kind: "event", type, run_id: "r", ...more });
const call = (type, id, more) => line(type, { tool_call_id: id, tool: "find", ...more });

test("the lines of a call are one entry, of a model call too", () => {
  n = 0;
  const lines = [line("RunStarted"), line("ModelCallStarted"), line("ModelCallFinished", { status: "success" }), call("ToolCallPlanned", "a"), call("ToolCallPlanned", "b"), call("Call", "a", { decision: "allow", rule: "effect.read_only" }),
    call("ToolCallExecuted", "a"), call("ToolCallResult", "b", { status: "error", decision: "deny", rule: "no" }), call("ToolCallResult", "a", { status: "ok", decision: "allow", rule: "effect.read_only" }), line("ModelCallStarted"), { ...call("ToolCallPlanned", "a"), run_id: "other" }];
  const got = entriesOf(lines.toReversed());
  assert.deepEqual(got.map((e) => [e.kind, ...e.lines.map((l) => l.n)]), [["tool", 11], ["model", 10], ["tool", 4, 6, 7, 9], ["tool", 5, 8], ["model", 2, 3], ["line", 1]]);
  assert.deepEqual(got.slice(2, 5).map(summaryOf), [
    { decision: "allow", rule: "effect.read_only", by: "", outcome: "ok", ms: 1000, waited: undefined }, { decision: "deny", rule: "no", by: "", outcome: "denied", ms: undefined, waited: undefined },
    { decision: "", rule: "", by: "", outcome: "ok", ms: 1000 }]);
});

test("the time of a model call is at most that of its lines if a wait for a retry may be part of it", () => {
  n = 0;
  const model = (status) => [line("ModelCallStarted"), line("ModelCallFinished", { status })];
  const most = (lines) => entriesOf(lines.toReversed()).filter((e) => e.kind === "model").toReversed().map((e) => summaryOf(e).most ?? false);
  assert.deepEqual(most([line("RunStarted"), ...model("error"), ...model("error"), ...model("success"), ...model("success")]), [false, true, true, false]);
  assert.deepEqual(most(model("success")), [true]);
});

test("an entry has its approver, and waits until there is one", () => {
  n = 0;
  const asked = [call("ToolCallPlanned", "a"), call("ApprovalRequested", "a", { rule: "tools.ask" })], decided = (decision) => call("ApprovalResolved", "a", { decision, by: "ann" });
  const of = (...more) => summaryOf(entriesOf([...asked, ...more].toReversed())[0]);
  assert.deepEqual([of().outcome, of().decision], ["awaiting_approval", ""]);
  const yes = of(decided("approved"), call("Call", "a", { decision: "allow" }), call("ToolCallExecuted", "a"), call("ToolCallResult", "a", { status: "ok" }));
  assert.deepEqual([yes.decision, yes.rule, yes.by, yes.outcome, yes.ms, yes.waited], ["approved", "tools.ask", "ann", "ok", 1000, 1000]);
  assert.equal(of(decided("denied"), call("ToolCallResult", "a", { status: "error" })).outcome, "denied");
});
