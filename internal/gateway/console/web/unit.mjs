// Runs the tests of test/ in Node. They import the sources in TypeScript, which are bundled first.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { run } from "node:test";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lathe-unit-"));
const names = readdirSync(join(here, "test")).filter((f) => f.endsWith(".test.mjs"));
await build({
  absWorkingDir: here, entryPoints: names.map((f) => `test/${f}`), outdir: folder, outExtension: { ".js": ".mjs" }, bundle: true, format: "esm", platform: "node", logLevel: "warning",
  define: { "import.meta.url": JSON.stringify(pathToFileURL(join(here, "test", "x")).href) }, // where testdata is looked for
});
let passed = 0, failed = 0;
const tests = run({ files: names.map((f) => join(folder, f)) });
tests.on("test:pass", () => { passed++; });
tests.on("test:fail", ({ name, details }) => { failed++; console.error(`${name}:`, details.error.cause ?? details.error); });
tests.on("end", () => {
  console.log(`unit tests: ${passed} passed, ${failed} failed`);
  if (failed || !passed) process.exitCode = 1;
  rmSync(folder, { recursive: true, force: true });
});
tests.resume();
