// Runs the tests of this folder in Chromium against a `lathe serve` of this tree.
//
//   node e2e/run.mjs [NAME…]     all tests, or those named (chat = e2e/chat.mjs)
//
// LATHE is the path of a built program; without it one is built. SHOTS is a folder for pictures,
// VIEW is the name of the only view to run.

import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
let harness;
try {
  harness = await import("./harness.mjs");
} catch (e) {
  if (e.code !== "ERR_MODULE_NOT_FOUND") throw e;
  console.log("skipped: npm packages are missing: run npm ci in internal/gateway/console/web");
  process.exit(0);
}
const reason = harness.missing();
if (reason) {
  console.log(`skipped: ${reason}`);
  process.exit(0);
}
const names = process.argv.slice(2);
const all = readdirSync(here).filter((f) => f.endsWith(".mjs") && !["run.mjs", "harness.mjs", "models.mjs", "world.mjs"].includes(f)).map((f) => f.slice(0, -4)).sort();
const failed = [];
const stage = await harness.open();
try {
  for (const name of names.length ? names : all) {
    const test = await import(join(here, `${name}.mjs`));
    for (const view of (test.views ?? harness.views).filter((v) => !process.env.VIEW || v.name === process.env.VIEW)) {
      const began = performance.now();
      const faults = await stage.run(test, view, `${name}-${view.name}`);
      console.log(`${faults.length ? "FAIL" : "ok  "} ${name} ${view.name} ${((performance.now() - began) / 1000).toFixed(1)} s`);
      for (const f of faults) console.log(`     ${f}`);
      if (faults.length) failed.push(name);
    }
  }
} finally {
  await stage.close();
}
if (failed.length) process.exitCode = 1;
