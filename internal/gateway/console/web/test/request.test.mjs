import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { chatMessages, haveHash, sentIn } from "../src/run/request.ts";

const text = (role, t) => ({ role, parts: [{ type: "text", text: t }] });
const calls = { role: "assistant", parts: [{ type: "text", text: "I look." }, { type: "tool_call", id: "a", name: "find", arguments: '{"n":1}' }, { type: "tool_call", id: "b", name: "list" }] };
const event = (event_id, type, data = {}, content, turn = 1) => ({ event_id, type, data, content, turn, time: "2026-01-01T00:00:00Z", raw: "" });
const events = [
  event(1, "RunStarted", { tools: { count: 2, hash: "h1" } }, { messages: [text("system", "Be short."), text("user", "Find it.")], input: { sampling: { temperature: 0, seed: null }, settings: { ToolChoice: { Mode: "function", Name: "find" }, ParallelToolCalls: false }, allow: ["find"], client_tools: [{ Name: "mine", Description: "d", Schema: { type: "object" } }], overrides: [{ name: "x", value: 1 }] } }, 0),
  event(2, "ModelCallStarted", { messages: 2, tools: 2 }), event(3, "ModelCallFinished", { status: "success" }, { message: calls }),
  event(4, "ToolCallResult", { tool_call_id: "b", seq: 1 }, { result: "two" }), event(5, "ToolCallResult", { tool_call_id: "a", seq: 0 }, { result: "one" }),
  event(6, "ModelCallStarted", { messages: 6, tools: 2 }, { asked: "Please answer." }, 2), event(7, "ModelCallFinished", { status: "error" }, undefined, 2), event(8, "ModelCallStarted", { messages: 6, tools: 0, attempt: 2 }, undefined, 2),
];

test("the messages of a model call are those of the run until then, results in the order of their calls", () => {
  assert.deepEqual(chatMessages(sentIn(events, events[1]).messages), [{ role: "system", content: "Be short." }, { role: "user", content: "Find it." }]);
  const second = sentIn(events, events[5]);
  assert.deepEqual(chatMessages(second.messages).slice(2), [
    { role: "assistant", content: "I look.", tool_calls: [{ id: "a", type: "function", function: { name: "find", arguments: '{"n":1}' } }, { id: "b", type: "function", function: { name: "list", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "a", content: "one" }, { role: "tool", tool_call_id: "b", content: "two" }, { role: "user", content: "Please answer." }]);
  assert.deepEqual([second.total, second.messages.length, sentIn(events, events[7]).messages.length], [6, 6, 6]);
});

test("parameters and tools of a model call", () => {
  const first = sentIn(events, events[1]);
  assert.deepEqual(first.parameters, { temperature: 0, tool_choice: { type: "function", function: { name: "find" } }, parallel_tool_calls: false, x: 1 });
  assert.deepEqual([first.hash, first.allowed, first.own.map((t) => t.name)], ["h1", ["find"], ["mine"]]);
  assert.deepEqual(sentIn(events, events[5]).parameters, { temperature: 0, parallel_tool_calls: false, x: 1 }); // the choice of a function is sent once
  assert.deepEqual(sentIn(events, events[7]).parameters, { temperature: 0, x: 1 }); // without tools
  assert.equal(sentIn([event(1, "RunStarted", {}, { messages: [] }), event(2, "ModelCallStarted")], event(2, "ModelCallStarted")).parameters, undefined);
});

test("definitions are compared by the hash of the run", async () => {
  const sum = (t) => createHash("sha256").update(t).digest("hex");
  assert.equal(await haveHash([], "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"), true); // as internal/digest has it for no tools
  const add = { name: "add", description: "adds\n<two>", parameters: { type: "object", properties: { y: {}, x: { minimum: 1 } } } }, now = { name: "now", description: "", parameters: { type: "object" } };
  const text = (none) => `[{"description":"adds\\n<two>","name":"add","parameters":{"properties":{"x":{"minimum":1},"y":{}},"type":"object"}},{"description":"","name":"now","parameters":${none}}]`;
  assert.equal(await haveHash([now, add], sum(text('{"type":"object"}'))), true);
  assert.equal(await haveHash([now, add], sum(text('{"properties":{},"type":"object"}'))), true); // a tool without a schema
  assert.equal(await haveHash([now], sum(text("{}"))), false);
});
