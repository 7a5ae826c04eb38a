// What differs between two runs and between two results of evaluations.

import assert from "node:assert/strict";
import { test } from "node:test";
import { differs, share } from "../src/run/compare.ts";
import { apart, changeOf } from "../src/run/evalcompare.ts";

const text = (text) => ({ kind: "text", role: "assistant", text, event: 1 }), call = (name, args = "{}") => ({ kind: "call", event: 1, call: { id: name, name, args, event: 1 } });
const took = (tokens, ms) => ({ tokens, ms, ended: true });

test("one sentence names the answer and the calls, one tokens and time", () => {
  assert.equal(differs([call("look"), text("Yes.")], [text("No.")], took(100, 200), took(50, 100)), "The new run gives another answer and does not call look. It takes 50 % fewer tokens and 50 % less time.");
  assert.equal(differs([text("Yes.")], [call("mail"), text("Yes.")], took(100, 100), took(100, 150)), "The new run gives the same answer and calls mail, which the recorded run did not. It takes 50 % more time.");
  assert.equal(differs([text("a")], [text("a")], { ...took(1, 100), cost: .5 }, { ...took(1, 50), cost: 1 }), "The new run gives the same answer. It takes 50 % less time and costs 100 % more.");
  assert.equal(differs([call("look"), text("a")], [call("look", '{"n":1}'), text("a")], took(1, 1), took(1, 1)), "The new run gives the same answer and calls with other arguments.");
  assert.equal(differs([call("look"), text("a")], [call("look"), call("look")], took(1, 1), { ...took(0, 0), ended: false }), "The new run makes 1 call more.");
  assert.deepEqual([share(100, 43), share(0, 5), share(7, 7), share(5, 0)], ["−57 %", "", "", ""]);
});

test("a case is better or worse by the part of its scored runs that passed", () => {
  const runs = (...ok) => ok.map((o) => ({ scenario: "s", ok: o === 1, scored: o !== 2 }));
  assert.deepEqual([changeOf(runs(1, 1), runs(1, 0)), changeOf(runs(0), runs(1)), changeOf(runs(1, 2), runs(1)), changeOf(runs(2), runs(1)), changeOf(runs(1), undefined)], ["better", "worse", "same", "unknown", "unknown"]);
  const rate = (ok_rate, ok_rate_low, ok_rate_high) => ({ ok_rate, ok_rate_low, ok_rate_high });
  assert.deepEqual([apart(rate(.9, .8, .95), rate(.5, .4, .6)), apart(rate(.9, .5, .95), rate(.5, .4, .6)), apart(rate(null, null, null), rate(.5, .4, .6))], [true, false, false]);
});
