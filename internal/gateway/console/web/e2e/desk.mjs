// What all screens share: keys, theme, the number of waiting calls in the title and the top bar. And files in the message box.

import { until } from "./world.mjs";

export const files = { "lathe.yaml": "default_model: sim/demo\npolicy: {tools: {calculator: ask}}\nkeys: {boss: {key: \"${file:boss.key}\", admin: true}}\n", "boss.key": "lk-boss-0123456789abcdef" };
export const args = ["--store", "memory"];
const key = "lk-boss-0123456789abcdef";
const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==", "base64");

export default async function ({ page, context, base, view, check, axe, shot, watch }) {
  await page.goto(base);
  await page.fill("#key-text", key);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#health.up");
  await page.waitForSelector("#prompt");
  await page.locator("#health").evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await axe("keys");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "A screen, a chat, a tool, a run or an action" }).fill("stat");
  await page.getByRole("option", { name: "Statistics" }).waitFor();
  await axe("find");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Statistics" }).waitFor();
  if (view.width > 900) await page.getByRole("button", { name: "Find…" }).click();
  else await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("calc");
  await page.getByRole("option", { name: "calculator" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "calculator" }).waitFor();
  await page.goBack();
  await page.goBack();
  await page.waitForSelector("#prompt");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  check("/ leads to the box", await page.evaluate(() => document.activeElement.id), "prompt");

  await page.locator("#form input[type=file]").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("some notes") }, { name: "pic.png", mimeType: "image/png", buffer: png }, { name: "doc.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4") }, { name: "blob.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0xff, 0xfe, 0xfd]) }]);
  await page.waitForFunction(() => document.querySelectorAll(".attached li").length === 3);
  check("the wrong file is named, the others stay", (await page.locator("#too-long").textContent()).includes("blob.bin is no picture, PDF or text"));
  await axe("files");
  await shot("files");
  await page.getByRole("button", { name: "Remove doc.pdf" }).click();
  await page.fill("#prompt", "What is in these?");
  const sent = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/api/chat"));
  await page.keyboard.press("Enter");
  const { parts } = JSON.parse((await sent).postData()).messages[0];
  check("the parts", parts.map((p) => [p.type, p.filename ?? p.text.split("\n")[0]]), [["text", "What is in these?"], ["text", "notes.txt:"], ["file", "pic.png"]]);
  await page.locator(".turn.user .file img").waitFor();
  await page.waitForSelector("#stop", { state: "hidden" });
  check("the title is the question", await page.locator("h1").textContent(), "What is in these?");
  check("the title in the list", await page.evaluate(async () => (await (await fetch("/api/sessions")).json()).data.map((s) => s.title)), ["What is in these?"]);
  check("a text file is folded", await page.locator(".turn.user .think summary").textContent(), "notes.txt");
  await axe("sent");
  await shot("sent");
  const anew = await context.newPage(); // reads the chat from the gateway
  await watch(anew);
  await anew.goto(page.url());
  check("a text file is folded when the chat is read again", await anew.locator(".turn.user .think summary").textContent(), "notes.txt");
  await anew.close();

  await page.goto(`${base}limits`);
  await page.getByRole("article", { name: "boss" }).waitFor();
  check("no sentinel is a limit", (await page.locator("main").textContent()).includes("9,223"), false);

  if (view.width > 900) {
    await page.locator(".theme select").selectOption("dark");
    check("the theme", await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
    await axe("dark by choice");
    await page.locator(".theme select").selectOption("system");
  }

  const answer = await page.evaluate(async ({ key }) => (await fetch("/v1/chat/completions", { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` }, body: JSON.stringify({ model: "sim/demo", messages: [{ role: "user", content: "What is 7 + 35?" }], lathe: { detach: true } }) })).text(), { key });
  await until(`the title of ${answer.slice(0, 200)}`, async () => (await page.title()).startsWith("(1) "));
  check("the top bar", (await page.locator(".waiting-link").textContent()).startsWith("1"));
  check("it is said", (await page.locator("#spoken").textContent()).includes("A call of calculator waits for your approval."));
  check("the icon is marked", await page.evaluate(async () => { const icon = document.querySelector("link[rel=icon]"); return icon.href.includes("/assets/waiting-") && (await fetch(icon.href)).ok; }));
  await page.locator(".waiting-link").click();
  await page.locator(".card .approve:enabled").waitFor(); // once the question is there
  const boxes = await page.locator(".card").first().evaluate((card) => [".approve", ".deny", ".exact"].map((s) => card.querySelector(s).getBoundingClientRect().bottom <= innerHeight));
  check("arguments and both buttons are on the first screen", boxes, [true, true, true]);
  await axe("approvals");
  await shot("approvals");
}
