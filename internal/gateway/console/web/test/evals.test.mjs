// Trends, marks and denominators of evaluations.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changesOf, commandOf, contradictions, figuresOf, isNewer, trendsOf, verdictOf } from "../src/run/evalcompare.ts";

const rated = (ok, runs, low, high, model = "m") => ({ model, runs, ok, errors: 0, ok_rate: runs ? ok / runs : null, ok_rate_low: low, ok_rate_high: high, ms_p50: 1, ms_p95: 1 });

test("a trend has the results of one suite that have a rate, the oldest first", () => {
  const result = (id, started, ...models) => ({ id, suite: "s", started, models });
  const of = trendsOf([result("c", "2026-03-01", rated(1, 2), rated(1, 2, 0, 1, "once")), result("b", "2026-02-01", rated(0, 0)), result("a", "2026-01-01", rated(2, 2)), { ...result("x", "2026-01-02", rated(2, 2)), suite: "other" }, { id: "bad", models: [], problem: "no" }], "s");
  assert.deepEqual([...of].map(([name, points]) => [name, points.map((p) => p.id)]), [["m", ["a", "c"]]]);
});

test("a mark is reached surely if the whole interval reaches it", () => {
  const words = (m, mark) => verdictOf(m, mark)[1];
  assert.deepEqual([words(rated(6, 6, .61, 1), 1), words(rated(5, 6, .4, .97), 1), words(rated(9, 10, .85, .98), .8), words(rated(9, 10, .6, .98), .8), words(rated(7, 10, .4, .9), .8), words(rated(2, 10, .05, .5), .8), words(rated(0, 0, null, null), .8)],
    ["every run passed", "1 of 6 failed", "reaches it", "reaches it, not surely", "below it, not surely", "below it", "no score"]);
});

test("runs without tools and after a provoked mistake count apart, unless there are no others", () => {
  const run = (ok, more = {}) => ({ model: "m", scenario: "s", ok, scored: true, ...more });
  const mixed = [run(true), run(false), run(true, { control: true }), run(false, { provokes: true }), run(false, { scored: false })];
  assert.deepEqual(figuresOf(mixed), { rate: { ok: 1, runs: 2 }, recovery: { ok: 0, runs: 1 }, control: { ok: 1, runs: 1 } });
  assert.deepEqual(figuresOf([run(true, { control: true })]).rate, { ok: 1, runs: 1 });
  const wrong = (models, runs, status) => contradictions({ models, runs, status });
  assert.deepEqual([wrong([rated(1, 2)], mixed), wrong([rated(2, 2)], mixed), wrong([rated(1, 2)], []), wrong([rated(1, 2)], [], "passed"), wrong([rated(1, 2), rated(1, 1, 0, 1, "n")], [...mixed, run(true, { model: "o" })])],
    [[], ["m passed 2 of 2 in the summary, 1 of 2 in the files"], [], ["the outcome is passed, but m passed 1 of 2"], ["no file of a run of n", "o is not in the summary"]]);
});

test("the changes of cases are counted, and the newer of two results is known by their times", () => {
  assert.deepEqual(changesOf(["better", "worse", "worse", "same", "unknown"]), { better: 1, worse: 2, same: 1, unknown: 1 });
  const at = (started) => ({ id: "r", started, models: [] });
  assert.deepEqual([isNewer(at("2026-02-02T00:00:00Z"), at("2026-02-01T00:00:00Z")), isNewer(at("2026-02-01T00:00:00Z"), at("2026-02-02T00:00:00Z")), isNewer(at("2026-02-02T00:00:00Z"), at()), isNewer(undefined, at("2026-02-01T00:00:00Z"))], [true, false, false, false]);
});

test("the command names what lathe eval takes", () => {
  assert.equal(commandOf({ models: ["a", "b"], scenarios: ["x"], trials: 3, out: "results/new" }), "lathe eval --scenario x --model a,b --trials 3 --out results/new");
  assert.equal(commandOf({ suite: "retail", models: ["a"], trials: 1, out: "my results" }), "lathe eval retail --model a --trials 1 --out 'my results'");
  assert.equal(commandOf({ suite: "capital", models: [], trials: 5, out: "r;rm -rf ." }), "lathe eval capital.yaml --trials 5 --out 'r;rm -rf .'");
});
