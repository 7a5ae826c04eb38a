// The names and colours of states, and how times are written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failureName, ofResult, ofRun, stateOf } from "../src/state.ts";
import { ago, duration, wait } from "../src/text/format.ts";

test("what waits for a person has one name and one colour, whether it is a run, a call or an approval", () => {
  assert.equal(ofRun({ status: "parked", reason: "awaiting_approval" }), "awaiting_approval");
  assert.deepEqual(stateOf("awaiting_approval"), { kind: "wait", sign: "●", name: "awaiting approval" });
  assert.equal(stateOf(ofRun({ status: "parked", reason: "awaiting_tool_results" })).name, "awaiting results");
  assert.equal(stateOf(ofRun({ status: "parked" })).name, "waiting");
});

test("a run that ended is named by its status, and a call by its error type", () => {
  assert.equal(ofRun({ status: "failed", reason: "upstream_error" }), "failed");
  assert.deepEqual(["", "policy_denied", "approval_denied", "approval_expired", "cancelled", "timeout"].map(ofResult), ["completed", "denied", "denied", "expired", "cancelled", "failed"]);
  assert.deepEqual(["aborted", "rate_limited"].map(failureName), ["connection failed", "rate limited"]);
  assert.deepEqual(stateOf("some_new_state"), { kind: "", sign: "", name: "some new state" });
});

test("times and durations have one form", () => {
  const now = Date.parse("2026-01-02T03:04:05Z"), at = (s) => ago(now - s * 1000, now, s < 0);
  assert.deepEqual([0, 59, 61, 7300, 90_000, 3 * 86_400].map(at), ["just now", "just now", "1 min ago", "2 h ago", "1 day ago", "3 days ago"]);
  assert.deepEqual([-5, -61, -7300].map(at), ["in 5 s", "in 1 min", "in 2 h"]);
  assert.equal(ago(now + 10_000, now), "just now");
  assert.match(at(40 * 86_400), /2025/);
  assert.deepEqual([0, .25, 12.4, 999, 2000, 2440, 61_000, 7_260_000].map(duration), ["0 ms", "0.3 ms", "12 ms", "999 ms", "2 s", "2.4 s", "1 min 1 s", "2 h 1 min"]);
  assert.deepEqual([400, 1200, 2440, 61_400].map(wait), ["400 ms", "1 s", "2 s", "1 min 1 s"]);
});
