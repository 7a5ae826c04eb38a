// Statistics over time.

import { begin, call, settle } from "./runs.mjs";

export default async function ({ page, base, view, check, axe, shot }) {
  await page.goto(`${base}stats`);
  await page.getByText("Nothing ran in this time.").waitFor();
  await axe("no figures");
  for (let i = 0; i < 4; i++) await settle(base, await begin(base, `What is ${i} + 35?`));
  await page.reload();
  await page.getByRole("img", { name: /^Tool calls: calls at most/ }).waitFor();
  const stats = JSON.parse(await call(base, "GET", "api/stats"));
  check("the server counted", [stats.total.runs, stats.total.model_calls.calls, stats.total.tool_calls.calls], [4, 8, 4]);
  const again = JSON.parse(await call(base, "POST", `api/runs/${JSON.parse(await call(base, "GET", "api/runs")).data[0].run_id}/replay`, {})).run_id;
  await settle(base, again);
  check("a replay with recorded results calls no tool", JSON.parse(await call(base, "GET", "api/stats")).total.tool_calls.calls, 4);
  check("the table of tools", (await page.getByRole("region", { name: "Tools" }).textContent()).includes("calculator4"));
  check("latencies are lines, tokens stand on one another", await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".stats-chart")].map((f) => [f.querySelector("h2").textContent, [f.querySelectorAll("path.stats-line").length, f.querySelectorAll("path.fill").length]]))), { Runs: [0, 2], "Model calls": [0, 2], "Time of model calls": [2, 0], "Tool calls": [0, 2], "Time of tool calls": [2, 0], Tokens: [0, 2] });
  const extent = (n) => page.locator(".stats-chart", { hasText: "Tokens" }).locator("path.fill").nth(n).evaluate((p) => { const b = p.getBBox(); return [b.y, b.y + b.height]; });
  const [read, written] = [await extent(0), await extent(1)];
  check("tokens in and out do not overlap", Math.abs(written[1] - read[0]) < .5 && written[0] < read[0]);
  await axe("figures");
  await shot();
  // One model or tool has its figures and charts; what is not counted of it alone is not shown.
  const one = page.getByLabel("Model or tool");
  check("the models and tools of this time", (await one.locator("option").allInnerTexts()).sort(), ["all", "calculator", "sim/demo"]);
  await one.selectOption("calculator");
  await page.waitForFunction(() => new URL(location.href).searchParams.get("tool") === "calculator");
  await page.reload();
  const titles = () => page.locator(".stats-chart h2").allInnerTexts();
  await page.getByRole("heading", { name: "Time of tool calls" }).waitFor();
  check("the charts of one tool", await titles(), ["Tool calls", "Time of tool calls"]);
  check("the figures of one tool", [/Tool calls\s*4/.test(await page.locator(".stats-tiles").innerText()), /Model calls/.test(await page.locator(".stats-tiles").innerText())], [true, false]);
  check("its row is marked", await page.locator("tr.decides th").allInnerTexts(), ["calculator"]);
  await one.selectOption("sim/demo");
  await page.getByRole("heading", { name: "Time of model calls" }).waitFor();
  check("the charts of one model", await titles(), ["Model calls", "Time of model calls", "Tokens"]);
  check("the tokens of one model", /Tokens\s*[\d,]+\s*[\d,]+ out/.test(await page.locator(".stats-tiles").innerText()));
  await axe("figures of one model");
  await shot("model");
  await one.selectOption("all");
  await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
  // A bar has its figures, and leads to its runs, by keyboard and by a click.
  const bars = page.getByRole("img", { name: /^Tool calls:/ });
  await bars.focus();
  for (let i = 0; i < 20 && !/calls[1-9]/.test(await page.locator(".stats-tip").textContent({ timeout: 1000 }).catch(() => "")); i++) await page.keyboard.press("ArrowLeft");
  check("the figures of a bar", /\S – .*calls[1-4]errors0/.test(await page.locator(".stats-tip").textContent()));
  await axe("a bar");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.pathname.endsWith("/runs") && location.search.includes("until="));
  await page.locator(".tbody .tr").first().waitFor();
  await page.goto(`${base}stats`);
  await page.getByRole("img", { name: /^Runs:/ }).waitFor();
  await page.getByLabel("The last").selectOption("24h");
  await page.waitForFunction(() => location.search === "?since=24h");
  if (!view.isMobile) { // a range of dates
    await page.getByLabel("The last").selectOption("own");
    await page.getByLabel("From").waitFor();
    await page.getByRole("img", { name: /^Runs: started at most [1-9]/ }).waitFor();
    await page.getByLabel("To", { exact: true }).fill(await page.getByLabel("From").inputValue());
    await page.getByText("Nothing ran in this time.").or(page.getByRole("alert")).first().waitFor();
    await axe("a range of dates");
    await page.getByLabel("The last").selectOption("24h");
    await page.waitForFunction(() => location.search === "?since=24h");
    await page.getByRole("img", { name: /^Runs:/ }).waitFor();
  }
  // A stretch of a chart leads to its runs.
  const plot = page.getByRole("img", { name: /^Runs:/ });
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  if (!view.isMobile) {
    await page.mouse.move(box.x + 5, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + 20, { steps: 5 });
    await page.mouse.up();
    await page.waitForFunction(() => location.pathname.endsWith("/runs") && location.search.includes("until="));
    await page.locator(".tbody .tr").first().waitFor();
    check("the runs of the stretch, with the replay", await page.locator(".tbody .tr").count(), 5);
  }
}
