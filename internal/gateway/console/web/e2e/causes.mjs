// Why something failed: the model server, what it answered, and what can be done, in the chat and at the top of the run.

import { ask, config, mcp, model } from "./models.mjs";

const { port } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];

export default async function ({ page, base, check, axe, shot }) {
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await ask(page, "@@bad please");
  const problem = page.locator(".problem");
  await problem.getByText("CUDA out of memory").waitFor();
  check("the server is named", /model server of fake failed 3 times/.test(await problem.textContent()));
  await axe("the server's words");
  await shot("bad");
  await page.locator(".turn.assistant a", { hasText: "see the run" }).click();
  await page.locator(".run-why", { hasText: "CUDA out of memory" }).waitFor();
  check("the run is headed by its question", await page.locator("h1").textContent(), "@@bad please");
  const attempts = page.locator("details.run-note");
  check("the attempts are one line", [await attempts.count(), await attempts.locator("summary").innerText(), await page.locator(".run-note").count()], [1, "3 attempts, each server error: CUDA out of memory", 2]);
  await attempts.locator("summary").click();
  check("it opens to each of them", (await attempts.locator("li").allInnerTexts()).map((t) => /^Attempt (\d), .*CUDA out of memory #\d+$/.exec(t)?.[1]), ["1", "2", "3"]);
  check("no tokens of calls that failed", /\d tokens|0 in/.test(await page.locator(".run-talk").innerText()), false);
  await axe("a failed run");
  await shot("run");

  await page.goto(base);
  await page.click("#fresh");
  await page.click("#model");
  await page.getByRole("option", { name: "down" }).click();
  await ask(page, "hello down");
  await problem.getByText("Start the model server").waitFor();
  check("the entry is named below", (await page.locator(".turn.assistant").last().locator("> .meta").textContent()).includes("down (fake)"));
  check("what cannot be reached", /server down \(model fake\) failed/.test(await problem.textContent()));
  await axe("a server that is down");
  await shot("down");
  await page.locator(".turn.assistant a", { hasText: "see the run" }).click();
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.locator(".timeline-row").nth(2).click();
  check("the attempts", (await page.locator(".timeline-name").allTextContents()).filter(Boolean).map((t) => /attempt \d/.exec(t)?.[0]), ["attempt 1", "attempt 2", "attempt 3"]);
  const widths = await page.locator(".timeline-row").nth(2).evaluate((row) => [row.querySelector(".bar.as-model").clientWidth, row.querySelector(".bar.part.as-wait").clientWidth]);
  check("the legend has what occurs", await page.locator(".timeline-key li").allInnerTexts(), ["model", "waiting", "failed"]);
  check("the axis has round steps", /^[125]0* (?:ms|s|min)$/.test(await page.locator(".timeline-scale .timeline-track > span").nth(1).innerText()));
  check("the wait before the last attempt is no work", widths[1] > 5 * widths[0]);
  check("its detail", /Waited before this attempt/.test(await page.locator(".timeline-detail").textContent()));
  await axe("attempts");
  await page.goto(`${base}health`);
  const down = page.getByRole("region", { name: "Calls of each model server" }).locator("tr", { hasText: "127.0.0.1:1/" });
  await down.getByText("all calls failed").waitFor();
  check("the server that is down", /^down.*failed.*3 \(100 %\)/s.test(await down.innerText()));
  await page.locator(".health-why", { hasText: "Start the model server" }).waitFor();
  check("why, and what to do", (await page.locator(".health-why").allInnerTexts()).map((t) => /refused|CUDA out of memory/.exec(t)?.[0]), ["refused", "CUDA out of memory"]);
  await axe("model servers");
  await shot("health");
  await page.goto(base);
  await page.click("#model");
  await page.waitForFunction(() => [...document.querySelectorAll("[role=option]")].some((o) => o.textContent === "downfakefailing: 3 of 3 calls"));
  await page.keyboard.press("Escape");
  await shot("attempts");
}
