// Results of evaluations: rates with intervals, the matrix of 200 cases and 4 models by keyboard, and a run with its conversation.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call } from "./runs.mjs";

export const args = ["--store", "memory"];
export const files = { "lathe.yaml": "default_model: sim/demo\nserve: {evals: results}\n" };

// large makes a result of 200 cases and 4 models from one that lathe eval wrote.
function large(from, to) {
  mkdirSync(to);
  const summary = JSON.parse(readFileSync(join(from, "summary.json"), "utf8"));
  const name = readdirSync(from).find((f) => f.includes("happy_path__trial_01") && !f.includes("wrong"));
  const run = JSON.parse(readFileSync(join(from, name), "utf8"));
  for (let m = 0; m < 4; m++) for (let c = 0; c < 200; c++) {
    const file = { ...run, model: `model-${m}`, scenario: `case_${String(c).padStart(3, "0")}`, ok: (c + m) % 5 !== 0 };
    writeFileSync(join(to, `model-${m}__case_${String(c).padStart(3, "0")}__trial_01.json`), JSON.stringify(file));
  }
  writeFileSync(join(to, "summary.json"), JSON.stringify(summary));
}

export default async function ({ page, base, bin, server, view, check, axe, shot }) {
  await page.goto(`${base}evals`);
  await page.getByText("The folder holds no results yet.").or(page.getByText("This gateway shows no evaluations.")).waitFor();
  await axe("no evaluations");
  const results = join(server.folder, "results");
  mkdirSync(results, { recursive: true });
  const made = spawnSync(bin, ["eval", "-q", "default", "--model", "sim/eval,sim/eval-wrong-text", "--trials", "3", "--out", join(results, "first")], { cwd: server.folder, encoding: "utf8" });
  check("lathe eval measured", made.status, 1);
  cpSync(join(results, "first"), join(results, "second"), { recursive: true });
  large(join(results, "first"), join(results, "large"));
  const read = async (path) => JSON.parse(await call(base, "GET", path));
  for (const [day, name] of [["01", "first"], ["02", "second"], ["03", "large"]]) { // the times of the results, for the trend
    const path = join(results, name, "summary.json"), summary = JSON.parse(readFileSync(path, "utf8"));
    summary.measured = summary.measured.map((m) => ({ ...m, started: `2026-02-${day}T09:00:00Z` }));
    if (name === "second") summary.models = summary.models.map((m) => ({ ...m, ok: 3, runs: 6, ok_rate: .5, ok_rate_low: .19, ok_rate_high: .81 }));
    writeFileSync(path, JSON.stringify(summary));
  }
  await page.reload();
  await page.locator('.tbody [data-key="first"]').waitFor();
  const trend = page.getByRole("img", { name: /^Rates of sim\/eval, the oldest first/ });
  check("the trend of a model", await trend.getAttribute("aria-label"), "Rates of sim/eval, the oldest first: 100 % (61–100 %), 50 % (19–81 %), 100 % (61–100 %)");
  check("a point and an interval for each result, and the mark", await trend.evaluate((svg) => [svg.querySelector(".eval-dots").getAttribute("d").match(/M/g).length, svg.querySelector(".eval-between").getAttribute("d").match(/M/g).length, svg.querySelectorAll(".eval-mark").length]), [3, 3, 1]);
  const mark = page.getByLabel("Pass mark");
  await mark.selectOption("80");
  check("how sure it is that the mark is reached", await page.locator(".eval-trend", { hasText: "sim/eval" }).locator(".badge").allInnerTexts(), ["reaches it, not surely", "below it"]);
  await mark.selectOption("100");
  check("at 100 % each run must pass", await page.locator(".eval-trend .badge").allInnerTexts(), ["every run passed", "6 of 6 failed"]);
  const command = await page.locator(".command code").innerText();
  check("the command that measures a model", /^lathe eval --model sim\/demo --trials 10 --out results\/[\d-]+$/.test(command));
  await axe("evaluations");
  if (view.isMobile) check("the date is beside the models", await page.locator('.tbody [data-key="first"]').evaluate((row) => { const [date, models] = ["began", "models"].map((c) => row.querySelector(`[data-col="${c}"]`).getBoundingClientRect()); return date.right <= models.left && Math.abs(date.top - models.top) < 4; }));
  await shot("list");

  // Into a result, a case and a run by keyboard.
  await page.locator('.tbody [data-key="first"]').focus();
  await page.keyboard.press("Enter");
  const row = page.locator('.tbody [data-key="happy_path"]');
  await row.waitFor();
  const first = await read("api/evals/first");
  const bad = first.models.find((m) => m.model === "sim/eval-wrong-text");
  const models = await page.getByRole("region", { name: "Models" }).textContent();
  check("a rate with its interval", [models.includes(`0 % (0–${Math.round(bad.ok_rate_high * 100)} %)`), models.includes(`0/${bad.runs}`), models.includes(`6/6`)], [true, true, true]);
  check("the matrix", (await row.locator(".badge").allTextContents()).sort(), ["0/3", "3/3"]);
  check("what counts in the rate and what apart", (await page.getByRole("region", { name: "Models" }).locator("tbody tr").first().locator("td").allInnerTexts()).slice(2, 4).map((t) => t.replace(/\s+/g, " ")), ["6/6", "recovery 6/6 · control 3/3"]);
  check("the cases that count apart are marked", (await page.locator(".tbody [data-col=case] .badge").allInnerTexts()).sort(), ["control", "recovery", "recovery"]);
  check("the files are those that the summary counts", await page.getByText("Figures of this result contradict one another").count(), 0);
  check("the command that measures it again", /^lathe eval --scenario chat_only,happy_path,.* --model sim\/eval,sim\/eval-wrong-text --trials 3 --out results\/[\d-]+$/.test(await page.locator(".eval-measure code").innerText()));
  const again = page.getByRole("img", { name: /^Rates of sim\/eval, / });
  await again.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  check("the figures of a result of the trend", /^second.*50 % \(19–81 %\)passed3 of 6$/s.test(await page.locator(".stats-tip").textContent()));
  await axe("a result");
  await row.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Runs of happy_path" }).waitFor();
  check("the case is in the address", new URL(page.url()).searchParams.get("case"), "happy_path");
  check("the failing assertion is said", await page.getByText('last words "Done.", got I am sim/eval-wrong-text').count() >= 1);
  await page.getByRole("link", { name: "Trial 2 of sim/eval-wrong-text" }).press("Enter");
  await page.getByRole("region", { name: "Checks" }).getByText("does not hold").waitFor();
  check("the conversation", [await page.locator(".run-item.says-user").count(), await page.locator(".run-item.says-assistant").count() >= 1, await page.locator(".run-call").count() >= 1], [1, true, true]);
  await axe("a run of an evaluation");
  await shot("run");
  const address = page.url();
  await page.reload();
  await page.getByRole("region", { name: "Checks" }).waitFor();
  check("the address shows the run again", page.url(), address);
  await page.evaluate(() => document.querySelector(".page").scrollTo(0, 0));
  await shot("result");

  // Another result beside it: no case changed, until one did.
  await page.goto(`${base}evals/first`);
  await page.getByLabel("Compare with").selectOption("second");
  await page.waitForFunction(() => location.pathname.endsWith("/evals/second") && location.search.includes("against=first")); // the newer one is shown, the older one is the baseline
  const since = page.locator(".eval-since"), said = () => since.locator("li").allInnerTexts();
  await since.getByText("From first, Feb 1, 2026, to second, Feb 2, 2026").waitFor();
  check("no case changed, and how rates moved", await said(), ["sim/eval: no case changed; rate ▼ −50 points from 100 %; the intervals overlap", "sim/eval-wrong-text: no case changed; rate ▲ +50 points from 0 %; the intervals overlap"]);
  for (const file of readdirSync(join(results, "second")).filter((f) => f.includes("happy_path") && !f.includes("wrong") && f.endsWith(".json"))) {
    const path = join(results, "second", file), run = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...run, ok: false }));
  }
  await page.reload();
  await since.getByText("0 cases better, 1 case worse").waitFor();
  check("better and worse of each model", (await said()).map((t) => t.split(";")[0]), ["sim/eval: 0 cases better, 1 case worse", "sim/eval-wrong-text: no case changed"]);
  await page.getByRole("button", { name: "Show the cases that changed" }).press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".tbody .tr").length === 1);
  check("the case that changed, before and now", (await row.locator(".eval-pair.worse .badge").allTextContents()), ["3/3", "0/3"]);
  await axe("two results");
  check("a summary that does not fit its files is named", [await page.getByText("Figures of this result contradict one another").count(), await page.goto(`${base}evals/second`).then(() => page.getByText("sim/eval passed 3 of 6 in the summary, 3 of 6").count())], [1, 0]);
  await page.getByText("Figures of this result contradict one another").waitFor();
  await page.goBack();
  await page.locator(".eval-pair.worse").first().waitFor();
  await shot("compared");

  // 200 cases of 4 models: by keyboard to the last, with a few rows in the document.
  await page.goto(`${base}evals/large`);
  await page.locator('.tbody [data-key="case_000"]').focus();
  await page.keyboard.press("End");
  await page.waitForFunction(() => document.activeElement?.dataset.key === "case_199");
  check("few rows are in the document", await page.locator(".tbody .tr").count() <= 60);
  if (!view.isMobile) check("a cell for each model", await page.locator('.tbody [data-key="case_199"] .badge').allTextContents(), ["1/1", "0/1", "1/1", "1/1"].map((v, m) => (199 + m) % 5 !== 0 ? "1/1" : "0/1"));
  await page.getByLabel("Show").selectOption("failed");
  await page.waitForFunction(() => location.search.includes("show=failed"));
  check("only cases that a run did not pass", await page.getByText(/^160 cases/).count(), 1);
  await page.keyboard.press("Tab");
  await axe("a large matrix");
  await shot("large");
  await page.goto(`${base}evals/none`);
  await page.getByRole("alert").waitFor();
  await axe("no such result");
}
