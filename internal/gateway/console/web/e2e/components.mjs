// All components of design/components.tsx on one page, under the policy of the console.

import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = join(dirname(fileURLToPath(import.meta.url)), "..");
const { outputFiles } = await build({ absWorkingDir: here, entryPoints: { components: "design/components.tsx", style: "src/styles/index.css" }, outdir: "assets", entryNames: "[name]", bundle: true, splitting: true, format: "esm", jsx: "automatic", jsxImportSource: "preact", write: false, logLevel: "warning" });
const page0 = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Components</title><link rel="stylesheet" href="./assets/style.css"><script type="module" src="./assets/components.js"></script><div id="app"></div></html>`;

export default async function ({ page, base, check, axe, wideOn, shotOf }) {
  const policy = (await fetch(base)).headers.get("content-security-policy");
  await page.route(`${base}components`, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", headers: { "Content-Security-Policy": policy }, body: page0 }));
  for (const f of outputFiles) await page.route(base + f.path.slice(here.length + 1), (route) => route.fulfill({ contentType: f.path.endsWith(".css") ? "text/css" : "text/javascript", body: Buffer.from(f.contents) }));
  await page.goto(`${base}components`);
  await page.locator("main > section").last().waitFor();
  await page.locator(".md math").waitFor();
  check("its parts", await page.locator("main > section > h2").count(), 12);
  check("a diff by its lines", await page.locator(".diff-lines > span").evaluateAll((all) => all.map((l) => l.className)), ["soft", "soft", "soft", "", "removed", "added"]);
  check("a table ends with its rows", await page.locator(".table").evaluate((t) => t.getBoundingClientRect().bottom - t.querySelector(".tbody").getBoundingClientRect().bottom < 3));
  await axe("components");
  await wideOn(page, "components");
  await shotOf(page, "all");
  await page.getByRole("button", { name: "Open a dialog" }).click();
  await page.getByRole("dialog").waitFor();
  await axe("a dialog");
}
