// Text of a model and of a tool that tries to become markup, a request or a lie stays text: naughty strings, Markdown images
// and links, direction marks.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const args = ["--store", "memory"];
export const views = [{ name: "desktop-light", width: 1366, height: 860, colorScheme: "light" }, { name: "phone-dark", width: 390, height: 844, colorScheme: "dark", isMobile: true }];

// hostile are texts that try to become markup, a request or a lie.
export const hostile = JSON.parse(readFileSync(new URL("../testdata/hostile.json", import.meta.url), "utf8"));

export default async function ({ page, base, check, shot }) {
  const file = join(process.env.LATHE_SHARED ?? "/none", "data", "blns", "blns.json");
  const naughty = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  const texts = [...hostile, ...naughty].filter((s) => s.trim());
  const part = (p) => `data: ${JSON.stringify(p)}\n\n`;
  const tool = { text: "<img src=x onerror=alert(1)>\u202e\u200b", markdown: "![x](https://evil.test/t.png)" };
  const body = part({ type: "start", messageId: "m1", messageMetadata: { model: "<b>model</b>" } }) + texts.map((t, i) => part({ type: "start-step" }) + part({ type: "text-start", id: `t${i}` }) + part({ type: "text-delta", id: `t${i}`, delta: t }) + part({ type: "text-end", id: `t${i}` })).join("") +
    part({ type: "tool-input-start", toolCallId: "c1", toolName: "<img src=x>" }) + part({ type: "tool-input-available", toolCallId: "c1", toolName: "<img src=x>", input: tool }) + part({ type: "tool-output-available", toolCallId: "c1", output: tool }) +
    part({ type: "finish", messageMetadata: { reason: "answered" } }) + "data: [DONE]\n\n";
  await page.route("**/api/chat", (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.goto(base);
  await page.waitForSelector(".welcome");
  await page.fill("#prompt", texts.slice(0, 20).join("\n"));
  await page.keyboard.press("Enter");
  await page.waitForSelector("#stop", { state: "hidden" });
  await page.waitForFunction((n) => document.querySelectorAll(".assistant .said").length === n, texts.length);
  await page.locator(".tool summary").click();
  await page.waitForSelector(".tool .json pre");
  check("elements that load or run", await page.evaluate(() => document.querySelectorAll("#talk :is(img, script, iframe, object, embed, svg:not(button > .glyph), style, link, base, meta, form, a[href])").length), 0);
  check("text that turns around", await page.evaluate(() => document.querySelector("#talk").textContent.match(/[\u202a-\u202e\u2066-\u2069]/gu)), null);
  check("tables", await page.locator(".md table").count() >= 1);
  check("hidden characters of the tool are escapes", await page.locator(".tool .escape").allTextContents(), ["\\u202e\\u200b", "\\u202e\\u200b"]);
  const link = page.locator(".outside button", { hasText: /^text$/ });
  await link.click();
  check("the whole address is shown", (await page.locator(".outside-address").textContent()).trim(), "https://evil.test/a?b=c open");
  check("it opens apart", await page.locator(".outside-address a").getAttribute("rel"), "noopener noreferrer nofollow");
  await page.locator(".outside button", { hasText: /^js$/ }).click();
  check("no script address opens", await page.locator(".outside-address a").count(), 1);
  await shot();
}
