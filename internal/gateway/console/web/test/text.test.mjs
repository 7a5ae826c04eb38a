// What is shown of text from outside.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, duration, inAndOut, marks, measured, rate, unmarked, words } from "../src/text/format.ts";
import { escapes, exactly, prose, shown, visible, writable } from "../src/text/visible.js";
import { wordDiff } from "../src/text/worddiff.ts";

test("prose escapes what turns text around, controls and tags, and keeps scripts and emoji", () => {
  assert.equal(prose("a\u202egnp.exe\u202c \u2067x\u2069 \0\u009b \u{e0041}\u{e007f}"), "a\\u202egnp.exe\\u202c \\u2067x\\u2069 \\u0000\\u009b \\U000e0041\\U000e007f");
  for (const text of ["שלום עולם", "مرحبا\u200c\u200f", "👩‍👩‍👧‍👦 ❤️", "one\n\ttwo\r\n", "fi\u00adne\u00a0x"]) assert.equal(prose(text), text);
});

test("names show everything that cannot be seen", () => {
  assert.equal(visible("a\u200b\u202eb\n"), "a\\u200b\\u202eb\\u000a");
  assert.equal(escapes('{"a": "\u200b", "b": "\u202e"}'), 2);
  assert.equal(exactly('{"a":1}').map(([t]) => t).join(""), '{\n  "a": 1\n}');
  assert.deepEqual(shown("a\u200bb"), [["a", false], ["\\u200b", true], ["b", false]]);
  assert.equal(writable('{"a":"\u200b\u{e0041}"}'), '{\n  "a": "\\u200b\\udb40\\udc41"\n}');
});

test("the difference of two texts gives both back", () => {
  const joined = (changes, kind) => changes.filter(([k]) => k === "same" || k === kind).map(([, t]) => t).join("");
  for (const [a, b] of [["", ""], ["", "x"], ["x", ""], ["one two three", "one 2 three"], ["a b c d", "d c b a"], ["same", "same"], ["x ".repeat(3000), "y ".repeat(3000)]]) {
    const d = wordDiff(a, b);
    assert.equal(joined(d, "gone"), a);
    assert.equal(joined(d, "new"), b);
  }
  assert.deepEqual(wordDiff("one two three", "one 2 three"), [["same", "one "], ["gone", "two"], ["new", "2"], ["same", " three"]]);
});

test("an axis has round steps, and no more than fit", () => {
  const said = (ms, most = 5) => marks(ms, most).map((t) => t ? duration(t) : "0");
  assert.deepEqual(said(733), ["0", "200 ms", "400 ms", "600 ms"]);
  assert.deepEqual(said(2934), ["0", "1 s", "2 s"]);
  assert.deepEqual(said(2400), ["0", "500 ms", "1 s", "1.5 s", "2 s"]);
  assert.deepEqual(said(.42), ["0", "0.1 ms", "0.2 ms", "0.3 ms", "0.4 ms"]);
  assert.deepEqual(said(95_000), ["0", "20 s", "40 s", "1 min", "1 min 20 s"]);
  assert.deepEqual(said(4 * 60_000), ["0", "1 min", "2 min", "3 min", "4 min"]);
  assert.deepEqual(said(100 * 3_600_000), ["0", "20 h", "40 h", "60 h", "80 h", "100 h"]);
  for (const ms of [.001, .05, 1, 9, 99.5, 1001, 59_999, 3_599_999, 1e9, 1e12]) for (const most of [3, 5, 80]) assert.ok(said(ms, most).length - 1 <= most, `${ms} ${most}`);
});

test("a rate needs a time that was measured, and 0 tokens are not known", () => {
  assert.deepEqual([rate(27, 3), rate(27, 99), rate(4, 1000), rate(50, 500), rate(2500, 1000)], ["", "", "", "100 tokens/s", "2,500 tokens/s"]);
  assert.deepEqual([inAndOut({ input_tokens: 1204, output_tokens: 0 }), inAndOut({ input_tokens: 3, output_tokens: 5 }, " tokens"), inAndOut({ input_tokens: 0, output_tokens: 0 }, " tokens"), inAndOut()], ["1,204 in, 0 out", "3 tokens in, 5 out", "tokens not reported", "not reported"]);
  assert.deepEqual([0, .4, 1, 1500].map(measured), ["< 1 ms", "< 1 ms", "1 ms", "1.5 s"]);
});

test("numbers for people", () => {
  assert.deepEqual([duration(0.4), duration(999), duration(2400), duration(185_000), duration(7_440_000)], ["0.4 ms", "999 ms", "2.4 s", "3 min 5 s", "2 h 4 min"]);
  assert.deepEqual([bytes(1), bytes(2048), bytes(3 * 1024 * 1024)], ["1 byte", "2.0 KiB", "3.0 MiB"]);
  assert.deepEqual([count(1, "call"), count(0, "call"), words("awaiting_approval")], ["1 call", "0 calls", "awaiting approval"]);
});

test("Markdown in one line has no marks", () => {
  for (const [text, want] of [
    ["# Order **A-1043**\n\nsee [the rules](https://example.org), `npm ci` or orders__find", "Order A-1043 see the rules, npm ci or orders__find"],
    ["a loan of $P$ costs $5 or $6", "a loan of P costs $5 or $6"],
    ["- one\n- two\n\n| a | b |\n|---|--:|\n| 1 | 2 |", "one two | a | b | | 1 | 2 |"],
    ["2 * 3 * 4 and a|b", "2 * 3 * 4 and a|b"],
  ]) assert.equal(unmarked(text), want);
});
