// Markdown as models write it: maths, colours of code, tasks, footnotes, alignment, addresses, direction. And what typing and streaming cost.

import { ask, config, mcp, model } from "./models.mjs";

const { port } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];

export default async function ({ page, base, check, axe, shot, view }) {
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await ask(page, "@@md");
  await page.waitForSelector(".md math");
  check("formulas", await page.locator(".md math").count(), 3);
  check("blocks of formulas", await page.locator(".md-math.block math").count(), 2);
  check("prices are text", (await page.locator(".md p").first().textContent()).includes("$5 or $6"));
  check("a formula with a fault stays source", (await page.locator(".md p", { hasText: "A fault" }).textContent()).includes("\\frac{"));
  await page.waitForSelector(".code .hljs-keyword");
  check("the code is whole", await page.locator(".code code").textContent(), "def main(n: int = 3) -> None:\n    print(f\"hello {n}\")  # comment\n");
  check("tasks", await page.locator(".md .task input").evaluateAll((all) => all.map((i) => [i.checked, i.ariaLabel])), [[false, "To do"], [true, "Done"]]);
  check("the middle", await page.locator(".md td").nth(1).evaluate((td) => getComputedStyle(td).textAlign), "center");
  check("an address is a link", await page.locator(".outside button", { hasText: "example.org" }).count(), 1);
  await page.getByRole("button", { name: "Note 1", exact: true }).click();
  check("the note has the focus", (await page.evaluate(() => document.activeElement.textContent)).includes("The text of the note."));
  check("right to left", await page.locator(".md p", { hasText: "مرحبا" }).evaluate((p) => getComputedStyle(p).direction), "rtl");
  check("its alignment", await page.locator(".md p", { hasText: "שלום" }).evaluate((p) => p.matches(":dir(rtl)")));
  await axe("markdown");
  await shot("markdown");
  await page.locator("#talk").evaluate((t) => { t.scrollTop = 0; });
  await shot("markdown-top");

  if (view.name !== "desktop-light") return;
  await page.click("#fresh");
  const layouts = async (act) => {
    const client = await page.context().newCDPSession(page);
    await client.send("Performance.enable");
    const read = async () => Object.fromEntries((await client.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value]));
    const before = await read();
    await act();
    const after = await read();
    return { layout: after.LayoutDuration - before.LayoutDuration, style: after.RecalcStyleDuration - before.RecalcStyleDuration, script: after.ScriptDuration - before.ScriptDuration, task: after.TaskDuration - before.TaskDuration };
  };
  const type = async () => { await page.focus("#prompt"); await page.keyboard.type("twenty keys in a box", { delay: 20 }); };
  const short = await layouts(type);
  await page.fill("#prompt", "");
  const messages = Array.from({ length: 501 }, (_, i) => ({ id: `m${i}`, role: i % 2 ? "assistant" : "user", parts: [{ type: "text", text: `Message ${i} with **some** text.\n\n- a list\n- of two\n\n\`\`\`js\nconst a = ${i};\n\`\`\`` }] }));
  await page.evaluate(async (messages) => { await (await fetch("/api/chat", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id: "chat-500", messages, lathe: { detach: true } }) })).text(); }, messages);
  await page.goto(`${base}chats/chat-500`);
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 502);
  await page.waitForSelector("#stop", { state: "hidden" });
  const long = await layouts(type);
  console.log(`     20 keys: ${JSON.stringify(short)} in an empty chat, ${JSON.stringify(long)} among 502 messages`);
  check("20 keys among 502 messages cost little layout", long.layout < short.layout + 0.35);
  await page.fill("#prompt", "");
  const stream = await layouts(() => ask(page, "@@fast"));
  console.log(`     2,000 words streamed: ${JSON.stringify(stream)}`);
  check("no word is lost", (await page.locator(".turn.assistant").last().textContent()).includes("word1999"));
}
