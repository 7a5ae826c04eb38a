// The pages that `lathe verify` and `lathe eval` write: read on a screen, on a phone and on paper, in light and dark. They load nothing.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const views = [
  { name: "desktop-light", width: 1366, height: 860, colorScheme: "light" },
  { name: "desktop-dark", width: 1366, height: 860, colorScheme: "dark" },
  { name: "phone-light", width: 360, height: 740, colorScheme: "light", isMobile: true },
  { name: "phone-dark", width: 320, height: 640, colorScheme: "dark", isMobile: true },
];

const pages = [
  { name: "verify", args: ["verify", "-q", "-y", "sim/fault-args-null", "--against", "sim/demo", "--limits", "--max-context", "8192", "--out"] },
  { name: "eval", args: ["eval", "default", "-q", "--model", "sim/eval,sim/eval-wrong-text,sim/eval-never-repairs", "--trials", "4", "--out"] },
];

export default async function ({ context, bin, view, check, axeOn, wideOn, shotOf }) {
  const folder = mkdtempSync(join(tmpdir(), "lathe-reports-"));
  try {
    for (const { name, args } of pages) {
      const made = spawnSync(bin, [...args, join(folder, name)], { cwd: folder, env: { ...process.env, HOME: folder }, encoding: "utf8" });
      check(`${name} is measured`, made.status, 1); // some fail
      const page = await context.newPage();
      const asked = [];
      page.on("request", (r) => asked.push(r.url()));
      const address = pathToFileURL(join(folder, name, "report.html")).href;
      await page.goto(address);
      await axeOn(page, name);
      await wideOn(page, name);
      await shotOf(page, name);
      if (name === "eval") await drill(page, check, () => shotOf(page, "eval-opened"), () => wideOn(page, "eval, opened"), () => axeOn(page, "eval, opened"));
      await page.setViewportSize({ width: 700, height: 990 }); // of A4, less its margins
      await page.emulateMedia({ media: "print", colorScheme: view.colorScheme });
      await wideOn(page, `${name}, printed`);
      check(`${name}: paper is white`, await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
      await shotOf(page, `${name}-print`);
      check(`${name} asks for itself alone`, asked, [address]);
      await page.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// drill filters by a model and by a class, and opens the conversation of a run.
async function drill(page, check, shot, wide, axe) {
  const shown = () => page.locator("details.box").filter({ visible: true }).count();
  const all = await shown();
  await page.getByRole("checkbox", { name: "sim/eval-wrong-text" }).uncheck();
  check("a model that is not chosen is not shown", (await shown()) < all && (await page.locator("th.m1").first().isVisible()) === false);
  await page.getByRole("checkbox", { name: "sim/eval-wrong-text" }).check();
  await page.getByRole("checkbox", { name: "runs that passed" }).check();
  check("runs that passed are shown when asked for", (await shown()) > 0);
  const box = page.locator("details.box").filter({ visible: true }).first();
  if ((await box.getAttribute("open")) === null) await box.locator("> summary").click();
  const run = box.locator("details.run").filter({ visible: true }).first();
  if ((await run.getAttribute("open")) === null) await run.locator("> summary").click();
  check("a conversation opens", await run.locator(".said pre").first().isVisible());
  await run.scrollIntoViewIfNeeded();
  await axe();
  await wide();
  await shot();
}
