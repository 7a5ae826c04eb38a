// Pictures of the pages and of a report for the documentation, in docs/images: `make screenshots`.
// LATHE is the path of a built program; without it one is built. All data is that of the simulated model.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "./e2e/harness.mjs";
import { mcp } from "./e2e/models.mjs";
import { begin, settle } from "./e2e/runs.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "..");
const images = join(root, "docs", "images");
const most = 150 * 1024; // bytes of a picture

const folder = mkdtempSync(join(tmpdir(), "lathe-screenshots-"));
let bin = process.env.LATHE;
if (!bin) {
  bin = join(folder, "lathe");
  if (spawnSync("go", ["build", "-o", bin, "./cmd/lathe"], { cwd: root, stdio: "inherit" }).status !== 0) process.exit(1);
}
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"] });
const server = await serve(bin, { "lathe.yaml": `default_model: sim/demo
tools:
  builtin: [calculator, get_current_time, state_get, state_patch]
  mcp: {stock: {command: node, args: [stock.cjs], allowlist: ['*'], effects: {slow: read_only}}}
policy: {tools: {get_current_time: ask, stock__slow: allow}}
sim: {scripts: {stock: stock.script}}
`, "stock.cjs": mcp, "stock.script": `-- turn --\ncall: calculator {"expression":"6 * 7"}\n-- turn --\ntext: There are 42 boxes in a hall. Let me count what is in them.\ncall: stock__slow {"label":"hall A","steps":400}\n-- turn --\ntext: Done.\n` });
let large = 0;

async function shot(page, name) {
  const path = join(images, `${name}.png`);
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path, animations: "disabled" });
  const size = statSync(path).size;
  console.log(`${name}.png: ${Math.ceil(size / 1024)} KiB`);
  if (size > most) large++;
}

try {
  mkdirSync(images, { recursive: true });
  const page = await browser.newPage({ viewport: { width: 1200, height: 720 }, colorScheme: "light" });
  page.setDefaultTimeout(60_000);
  const { base } = server;

  await page.goto(base);
  await page.getByRole("textbox").first().fill("What is 7 + 35?");
  await page.keyboard.press("Enter");
  await page.getByText("7 + 35 = 42").first().waitFor();
  await shot(page, "chat");

  const runs = [];
  for (const prompt of ["What is 6 * 7?", "What is 12 / 5?", "Hello!", "What time is it in Tokyo?"]) runs.push(await begin(base, prompt, { session: "orders" }));
  for (const id of runs) await settle(base, id);
  await page.goto(`${base}approvals`);
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  await shot(page, "approvals");

  await page.goto(`${base}runs`);
  await page.locator(`[data-key="${runs[0]}"]`).waitFor();
  await shot(page, "runs");
  await page.goto(`${base}runs/${runs[0]}`);
  await page.getByText("calculator").first().waitFor();
  await page.waitForLoadState("networkidle");
  await shot(page, "run");

  const live = await begin(base, "How many boxes with green labels are in hall A?", { model: "sim/script-stock" });
  await page.goto(`${base}runs/${live}`);
  await page.getByText(/step \d+ of 400/).waitFor();
  await shot(page, "run-live");

  const measured = spawnSync(bin, ["eval", "-q", "all", "--trials", "4", "--model", "sim/eval,sim/eval-wrong-order,sim/eval-never-repairs", "--out", "results"], { cwd: folder, env: { ...process.env, HOME: folder } });
  if (measured.status > 1) throw new Error(String(measured.stderr));
  await page.goto(pathToFileURL(join(folder, "results", "report.html")).href);
  await page.waitForLoadState("load");
  await shot(page, "report");
} finally {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (large > 0) {
  console.error(`${large} pictures are larger than ${most / 1024} KiB`);
  process.exit(1);
}
