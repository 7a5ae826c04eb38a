// The run of a later turn of a chat: what was said before is folded, each call has its result, and the turn of the run comes first.

import { ask, config, mcp, model } from "./models.mjs";

const { port } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];

export default async function ({ page, base, check, axe, shot }) {
  await page.goto(base);
  await page.waitForSelector("#health.up");
  for (let turn = 1; turn <= 3; turn++) await ask(page, `@@one of turn ${turn}`);
  await ask(page, "the last question");
  await page.locator(".turn.assistant a", { hasText: "see the run" }).last().click();
  await page.locator(".run-item.says-user").waitFor();
  check("the run is headed by its question", await page.locator("h1").textContent(), "the last question");
  check("its own turn comes first", (await page.locator(".run-item.says-user .run-text").allTextContents()), ["the last question"]);
  await page.getByRole("button", { name: "Show 9 earlier messages and calls" }).click();
  check("calls before it", await page.locator(".run-call").count(), 3);
  check("each has its result", [await page.locator(".run-call .result").allTextContents(), await page.getByText("no result").count()], [["finished one", "finished one", "finished one"], 0]);
  check("no result stands alone", await page.locator(".run-item.says-tool").count(), 0);
  await axe("a later turn");
  await shot("unfolded");
  await page.getByRole("link", { name: "Open the chat" }).click();
  await page.locator(".turn.user", { hasText: "the last question" }).waitFor();
}
