// A model server for tests, which answers what the mark @@… in the last question asks for, and an MCP server for it.

import { createServer } from "node:http";

export const markdown = "# Report\n\nEnergy is $E = mc^2$, it costs $5 or $6, and\n\n$$\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}$$\n\n\\[a^2 + b^2\\]\n\nA fault: $\\frac{$ stays.\n\n```python\ndef main(n: int = 3) -> None:\n    print(f\"hello {n}\")  # comment\n```\n\n- [ ] todo\n- [x] done\n\n| left | middle | right |\n|:--|:-:|--:|\n| a | b | 12 |\n\nA note[^1], and https://example.org/x?y=z bare.\n\n[^1]: The text of the note.\n\nمرحبا بك في النظام.\n\nשלום עולם\n";
const png = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// model starts the model server on a free port of loopback. held are the answers that wait at their mark until release is called.
export async function model() {
  const held = new Set();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method === "GET") return response.end(JSON.stringify({ object: "list", data: [{ id: "fake", object: "model" }] }));
    const { messages } = JSON.parse(body), own = messages.findLastIndex((m) => m.role === "user"), said = messages[own]?.content ?? "";
    const text = typeof said === "string" ? said : said.map((p) => p.text ?? "").join(""), mark = /@@(\w+)/.exec(text)?.[1], results = messages.slice(own).filter((m) => m.role === "tool");
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const write = (delta, reason = null) => response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "fake", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
    const end = (reason = "stop") => { write({}, reason); response.end("data: [DONE]\n\n"); };
    const calls = (...list) => { list.forEach(([name, args], index) => write({ tool_calls: [{ index, id: `call_${messages.length}_${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } }] })); end("tool_calls"); };
    if (results.length) { write({ content: `Done with ${results.length}.` }); return end(); }
    switch (mark) {
      case "md": for (let i = 0; i < markdown.length; i += 20) { write({ content: markdown.slice(i, i + 20) }); await pause(2); } return end();
      case "three": return calls(["t__slow", { steps: 40, label: "A" }], ["t__slow", { steps: 8, label: "B" }], ["t__fail", { why: "disk full" }]);
      case "long": return calls(["t__slow", { steps: 5000, label: "A" }]);
      case "one": return calls(["t__slow", { steps: 1, label: "one" }]);
      case "image": return calls(["t__image", {}]);
      case "rows": return calls(["t__rows", { n: 60 }]);
      case "bad": response.end('data: {"error":{"message":"CUDA out of memory","type":"server_error"}}\n\n'); return;
      case "slow": for (const word of "the quick brown fox jumps over the lazy dog".split(" ")) write({ content: `${word} ` }); await new Promise((go) => { held.add(go); response.on("close", go); }); write({ content: "and then" }); return end();
      case "fast": for (let i = 0; i < 2000; i++) { write({ content: `word${i} ${i % 60 === 59 ? "\n\n" : ""}` }); if (i % 10 === 0) await pause(2); } return end();
    }
    write({ content: `You said: ${text.slice(0, 200)}` });
    end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  return { port: server.address().port, release: () => { for (const go of held) go(); held.clear(); } };
}

export const mcp = `
const inputs = { slow: { steps: { type: "integer", minimum: 1, description: "How many." }, label: { type: "string" } }, fail: { why: { type: "string" } }, image: {}, rows: { n: { type: "integer", minimum: 1, maximum: 500, description: "How many customers." } } };
const about = { slow: "Count steps, and report each of them", fail: "Fail, and say why", image: "Draw a red dot", rows: "List customers with their city and revenue" }, required = { slow: ["steps"], fail: [], image: [], rows: ["n"] };
const tools = ["slow", "fail", "image", "rows"].map((name) => ({ name, description: about[name], inputSchema: { type: "object", properties: inputs[name], required: required[name] }, annotations: { title: about[name].split(",")[0], readOnlyHint: name !== "fail", destructiveHint: name === "fail", openWorldHint: false } }));
const write = (m) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\\n"), pause = (ms) => new Promise((done) => setTimeout(done, ms));
require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const m = JSON.parse(line), args = m.params?.arguments ?? {}, text = (t, isError) => write({ id: m.id, result: { isError, content: [{ type: "text", text: t }] } });
  if (m.id === undefined) return;
  if (m.method !== "tools/call") return write({ id: m.id, result: { initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {}, resources: {} }, instructions: "Ask for rows first.", serverInfo: { name: "t", version: "1" } }, "tools/list": { tools } }[m.method] ?? {} });
  switch (m.params.name) {
    case "slow":
      for (let i = 1; i <= args.steps; i++) {
        await pause(150);
        write({ method: "notifications/progress", params: { progressToken: m.params._meta.progressToken, progress: i, total: args.steps, message: "step " + i + " of " + args.steps } });
      }
      return text("finished " + args.label);
    case "fail": return text("Error: " + args.why + "\\n  at /srv/tool.py:42", true);
    case "image": return write({ id: m.id, result: { content: [{ type: "text", text: "A red dot" }, { type: "image", mimeType: "image/png", data: "${png}" }] } });
    case "rows": return text(JSON.stringify(Array.from({ length: args.n }, (_, id) => ({ id, name: "Customer " + id, city: "Oslo", revenue: id * 1234.5 }))));
  }
});`;

export const config = (port) => `
default_model: local
models:
  local: {provider: openai, base_url: "http://127.0.0.1:${port}/v1", model: fake}
  down: {provider: openai, base_url: "http://127.0.0.1:1/v1", model: fake}
tools:
  mcp: {t: {command: node, args: [mcp.cjs], allowlist: ['*'], effects: {slow: read_only, fail: read_only, image: read_only, rows: read_only}}}
tool_calling: {max_parallel_tool_calls: 4}
policy: {tools: {t__slow: allow, t__fail: allow, t__image: allow, t__rows: allow}}
`;

// ask sends a question in the chat of a page, and waits for the end of the answer unless it is to go on.
export async function ask(page, text, { end = true } = {}) {
  const before = await page.locator(".turn.assistant").count();
  await page.fill("#prompt", text);
  await page.keyboard.press("Enter");
  await page.waitForFunction((n) => document.querySelectorAll(".turn.assistant").length > n, before);
  if (end) await page.waitForSelector("#stop", { state: "hidden" });
}
