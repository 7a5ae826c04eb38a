// What is shown of a failed call, and of a line of standard error.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failureIn, failureOf } from "../src/text/failure.ts";
import { stampOf } from "../src/text/logline.ts";

const of = (text, failed) => { const f = failureIn(text, failed); return f && [f.code, f.said, f.data ?? "", f.more]; };

test("a failure has its message, its code and what else the error says", () => {
  assert.deepEqual(of('{"ok":false,"error":{"code":"execution_failed","message":"The tool failed."},"data":"Error: disk full\\nat x"}'), ["execution_failed", "Error: disk full\nat x", "", []]);
  assert.deepEqual(of('{"ok":false,"error":{"code":"timeout","message":"Too late.","limit":"tool_timeout","max_ms":30000}}'), ["timeout", "Too late.", "", [["limit", '"tool_timeout"'], ["max_ms", "30000"]]]);
  assert.deepEqual(of('{"ok":false,"error":{"code":"execution_failed","message":"The tool failed.","detail":"no such file"}}'), ["execution_failed", "no such file", "", []]);
  assert.deepEqual(of('{"ok":false,"error":{"code":"execution_failed","message":"The tool failed."},"data":{"message":"gone","id":7}}'), ["execution_failed", "gone", '{"message":"gone","id":7}', []]);
  assert.deepEqual(of('{"ok":false,"tool_name":"t","data":{"value":"disk full"},"warnings":[],"errors":[{"code":"execution_failed","message":"The tool failed."}]}'), ["execution_failed", "disk full", "", []]);
  assert.deepEqual(of('{"ok":false,"tool_name":"t","data":{},"warnings":[],"errors":[{"code":"policy_denied","message":"Not allowed."}]}'), ["policy_denied", "Not allowed.", "", []]);
});

test("arguments that are wrong are named one by one", () => {
  const text = '{"ok":false,"error":{"code":"invalid_arguments","message":"They are wrong.","errors":[{"pointer":"/n","keyword":"type","message":"must be string"},{"pointer":"","message":"too many"},"odd"]}}';
  assert.deepEqual([failureIn(text).wrong, failureIn(text).more, failureOf(text)], [["/n: must be string", "the arguments: too many", '"odd"'], [], "/n: must be string"]);
});

test("texts of a call that failed, and of one that did not", () => {
  assert.deepEqual(of("invalid_arguments: The arguments are wrong.", true), ["invalid_arguments", "The arguments are wrong.", "", []]);
  assert.deepEqual(of("timeout: Too late.", true), ["timeout", "Too late.", "", []]);
  assert.deepEqual(of("note: it broke", true), ["", "note: it broke", "", []]);
  assert.deepEqual(of('{"error":"boom"}', true), ["", "boom", "", []]);
  assert.deepEqual(of('"a text"', true), ["", "a text", "", []]);
  assert.deepEqual(of('"no JSON', true), ["", '"no JSON', "", []]);
  for (const text of ['{"error":"boom"}', '{"ok":true,"error":{"code":"a"}}', "timeout: Too late.", "[]", "", '{"ok":false}']) assert.equal(failureIn(text), undefined, text);
  assert.deepEqual(['{"error":{"code":"execution_failed","message":"disk full\\nat x"}}', "cancelled: It was cancelled.", "a\u202eb"].map(failureOf), ["disk full", "It was cancelled.", "a\\u202eb"]);
});

test("a line of standard error has its time beside it and no codes for colours", () => {
  assert.deepEqual(stampOf("2026-01-02T03:04:05.678Z \\x1b[31merror\\x1b[0m: no disk"), { time: "2026-01-02T03:04:05.678Z", short: "03:04:05", rest: "error: no disk" });
  assert.deepEqual(["2026/01/02 03:04:05 started", "[2026-01-02 03:04:05,678] started", 'time="2026-01-02T03:04:05+02:00" level=info'].map((l) => [stampOf(l).short, stampOf(l).rest]), [["03:04:05", "started"], ["03:04:05", "started"], ["03:04:05", "level=info"]]);
  assert.deepEqual(stampOf("a line of 2026-01-02 03:04:05"), { time: "", short: "", rest: "a line of 2026-01-02 03:04:05" });
});
