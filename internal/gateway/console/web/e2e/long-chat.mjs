// A chat of 500 messages: typing does not lay out the conversation, and an answer that streams lays out its end only. The same page without its
// containment is the measure, in the same run: times by themselves depend on the machine.

import { ask, config, mcp, model } from "./models.mjs";

const { port } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];
export const views = [{ name: "desktop-light", width: 1366, height: 860, colorScheme: "light" }];
const most = 0.2; // of the time of layout without containment

export default async function ({ page, context, base, check }) {
  const messages = Array.from({ length: 500 }, (_, i) => ({ id: `m${i}`, role: i % 2 ? "assistant" : "user", parts: [{ type: "text", text: `Message ${i}: ${"some words of a chat that went on for long. ".repeat(6)}` }] }));
  messages.push({ id: "last", role: "user", parts: [{ type: "text", text: "the last question" }] });
  const made = await fetch(`${base}api/chat`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id: "chat-500", messages, lathe: { detach: true } }) });
  check("the chat is made", [made.status, (await made.text()).includes("[DONE]")], [200, true]);
  await page.goto(`${base}chats/chat-500`);
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 502);
  await page.waitForSelector("#stop", { state: "hidden" });
  const devtools = await context.newCDPSession(page);
  await devtools.send("Performance.enable");
  const read = async () => Object.fromEntries((await devtools.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value]));
  const type = async () => {
    await page.focus("#prompt");
    const before = await read();
    await page.keyboard.type("twenty keys to write");
    const after = await read();
    await page.fill("#prompt", "");
    return (after.LayoutDuration - before.LayoutDuration) * 1000;
  };
  await type();
  const contained = await type();
  const memory = await read();
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".turn, .talk, .chat-main { content-visibility: visible !important; contain: none !important; }");
    document.adoptedStyleSheets = [sheet];
  });
  await type();
  const free = await type();
  console.log(`     20 keys: ${contained.toFixed(1)} ms of layout, ${free.toFixed(1)} ms without containment; ${(memory.JSHeapUsedSize / 2 ** 20).toFixed(1)} MiB, ${memory.Nodes} nodes`);
  check(`layout of 20 keys is at most ${most} of that without containment`, contained <= most * free);
  await page.evaluate(() => { document.adoptedStyleSheets = []; });
  const before = await read(), began = performance.now();
  await ask(page, "@@fast words");
  const after = await read(), took = (performance.now() - began) / 1000, of = (name) => Math.round((after[name] - before[name]) / took * 100);
  console.log(`     2,000 words in ${took.toFixed(1)} s: ${of("ScriptDuration")} % script, ${of("LayoutDuration")} % layout, ${of("RecalcStyleDuration")} % style`);
  check("no word is lost", (await page.locator(".turn.assistant").last().locator(".said").textContent()).match(/word\d+/g)?.length, 2000);
  // Who reads above the end is led back to it, and is not moved while text arrives.
  await page.evaluate(() => { document.querySelector("#talk").scrollTop -= 2000; });
  const newest = page.getByRole("button", { name: "Newest" }), at = () => page.evaluate(() => { const t = document.querySelector("#talk"); return [t.scrollTop, t.scrollHeight - t.scrollTop - t.clientHeight < 80]; });
  await newest.waitFor();
  await newest.press("Enter");
  await newest.waitFor({ state: "detached" });
  check("the newest is shown", (await at())[1], true);
  await ask(page, "@@fast words", { end: false });
  await page.evaluate(() => { document.querySelector("#talk").scrollTop -= 2000; });
  await newest.waitFor();
  const [top] = await at();
  await page.waitForSelector("#stop", { state: "hidden" });
  check("what is read stays while text arrives", [(await at())[0] === top, await newest.count()], [true, 1]);
}
