// A run that goes on: the words of its answer appear as they come, once, also after a reload, and its timeline counts what a tool reports.

import { config, mcp, model } from "./models.mjs";
import { begin, call, settle } from "./runs.mjs";
import { until } from "./world.mjs";

const { port, release } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];

export default async function ({ page, base, check, axe, shot }) {
  await until("the MCP server", async () => JSON.parse(await call(base, "GET", "api/servers")).data[0]?.state === "ready");
  const id = await begin(base, "@@slow please", { model: "local" }), words = "the quick brown fox jumps over the lazy dog";
  await page.goto(`${base}runs/${id}`);
  const answer = page.locator(".run-item.says-assistant .run-text");
  for (let i = 0; i < 2; i++) {
    await answer.getByText(words).waitFor();
    check("the words so far, once", (await answer.innerText()).trim(), words);
    await page.locator(".run-live").getByText("fake is answering, 44 characters so far").waitFor();
    await page.reload();
  }
  await answer.getByText(words).waitFor();
  await axe("an answer that is being written");
  await shot("writing");
  await page.getByRole("tab", { name: "Timeline" }).click();
  if (page.viewportSize().width < 1280) await page.locator(".timeline-row").click(); // a narrow screen shows the detail of a chosen span only
  await page.getByRole("region", { name: "Output" }).getByText(words).waitFor();
  await page.getByRole("tab", { name: "Conversation" }).click();
  release();
  await settle(base, id);
  await page.getByText(`${words} and then`).first().waitFor();
  check("the whole answer, once", await page.locator(".run-item.says-assistant").count(), 1);
  check("a model server that reports no tokens", [(await page.locator(".run-step").innerText()).includes("tokens not reported"), /Tokens\s*not reported/.test(await page.locator(".run-facts").innerText())], [true, true]);

  const long = await begin(base, "@@long please", { model: "local" });
  await page.goto(`${base}runs/${long}?tab=timeline`);
  await page.locator(".timeline-row .timeline-tokens", { hasText: /^\d+ of 5,000$/ }).waitFor();
  await page.locator(".run-live").getByText(/t__slow \(\d+ of 5,000\) runs/).waitFor();
  const bar = page.locator(".timeline-row .bar.runs");
  await bar.locator(".bar-part", { hasText: /^\d+ %$/ }).waitFor({ state: "attached" });
  check("a bar that runs is striped and open at its end", await bar.evaluate((el) => [getComputedStyle(el).backgroundImage.startsWith("repeating-linear-gradient"), getComputedStyle(el).borderRightStyle]), [true, "dashed"]);
  check("the legend names it", (await page.locator(".timeline-key li").allInnerTexts()).includes("still running"));
  if (page.viewportSize().width >= 1280) {
    const detail = page.getByRole("article", { name: "Chosen span" });
    await detail.locator("b", { hasText: "t__slow" }).waitFor();
    check("the row that runs is followed", await page.locator(".timeline-row.shown .timeline-label").innerText().then((t) => t.startsWith("t__slow")));
    await page.locator(".timeline-row").first().click();
    await detail.locator("b", { hasText: "fake" }).waitFor();
  }
  await shot("progress");
  await axe("a tool that reports");
  await call(base, "POST", `api/runs/${long}/cancel`);
  await settle(base, long);
}
