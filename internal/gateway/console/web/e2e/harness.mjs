// What the tests of this folder share: a server, a browser, and checks that hold on every screen.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..", "..", "..", "..");
const program = "/usr/bin/chromium";
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const patience = Number(process.env.PATIENCE ?? 30_000); // ms

// missing says what the tests lack, "" if nothing.
export function missing() {
  if (!existsSync(program)) return `${program} is missing: install chromium`;
  if (!process.env.LATHE && spawnSync("go", ["version"]).status !== 0) return "LATHE is not set and go is missing";
  return "";
}

// views are the windows in which a test runs, unless it exports views of its own.
export const views = [
  { name: "desktop-light", width: 1366, height: 860, colorScheme: "light" },
  { name: "desktop-dark", width: 1366, height: 860, colorScheme: "dark" },
  { name: "phone-light", width: 390, height: 844, colorScheme: "light", isMobile: true },
  { name: "phone-dark", width: 390, height: 844, colorScheme: "dark", isMobile: true },
];

// serve starts `lathe serve` on a free port of loopback in a folder with the files, and returns when it serves.
export async function serve(bin, files = {}, args = []) {
  const folder = mkdtempSync(join(tmpdir(), "lathe-e2e-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  let log = "", child, ended;
  const start = (addr) => {
    child = spawn(bin, ["serve", "--addr", addr, ...args], { cwd: folder, env: { ...process.env, HOME: folder }, stdio: ["ignore", "pipe", "pipe"] });
    const mine = child; // a later start replaces it
    ended = new Promise((resolve) => mine.on("exit", resolve));
    return new Promise((resolve, reject) => {
      const read = (stream) => createInterface({ input: stream }).on("line", (line) => {
        log += `${line}\n`;
        const found = line.match(/^lathe serves on (http:\/\/127\.0\.0\.1:\d+)/);
        if (found) resolve(`${found[1]}/`);
      });
      read(mine.stdout);
      read(mine.stderr);
      mine.on("exit", () => reject(new Error(`lathe serve ended:\n${log}`)));
    });
  };
  const base = await start("127.0.0.1:0");
  return {
    base, folder, log: () => log,
    // kill ends the process without a warning, start starts it again at the same address.
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    start: () => start(new URL(base).host),
    async stop() {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function open() {
  const folder = mkdtempSync(join(tmpdir(), "lathe-bin-"));
  let bin = process.env.LATHE;
  if (!bin) {
    bin = join(folder, "lathe");
    const built = spawnSync("go", ["build", "-o", bin, "./cmd/lathe"], { cwd: root, stdio: "inherit" });
    if (built.status !== 0) throw new Error("lathe does not build");
  }
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"] });
  return {
    async run(test, view, name) {
      const server = await serve(bin, test.files, test.args);
      const context = await browser.newContext({ viewport: { width: view.width, height: view.height }, colorScheme: view.colorScheme, isMobile: view.isMobile ?? false, hasTouch: view.isMobile ?? false });
      const page = await context.newPage();
      page.setDefaultTimeout(patience);
      const faults = [];
      await watch(page, server.base, faults);
      const check = (what, got, want = true) => {
        const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
        if (g !== w) faults.push(`${what}: ${g}, want ${w}`);
      };
      try {
        await test.default({ page, context, base: server.base, view, server, bin, check, axe: (where) => axe(page, where, faults), shot: (part = "") => shot(page, `${name}${part && `-${part}`}`), watch: (p) => watch(p, server.base, faults),
          axeOn: (p, where) => axe(p, where, faults), wideOn: (p, where) => wide(p, faults, where), shotOf: (p, part) => shot(p, `${name}-${part}`, true) });
        await wide(page, faults);
      } catch (e) {
        faults.push(String(e.stack ?? e));
        await shot(page, `${name}-failed`).catch(() => {});
      }
      await context.close();
      await server.stop();
      return faults;
    },
    async close() {
      await browser.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// watch records what no screen may do: ask another host, breach the content security policy, throw, ask a dialog, or use a
// path that is not in the API's description.
export async function watch(page, base, faults) {
  const documented = apiPaths();
  page.on("request", (r) => {
    const url = new URL(r.url());
    if (url.protocol === "data:" || url.protocol === "blob:") return;
    if (!r.url().startsWith(base)) return faults.push(`a request left the origin: ${r.url()}`);
    const path = url.pathname;
    if (/^\/(api|v1|v1beta|mcp)\b/.test(path) && !documented.some((p) => p.test(path))) faults.push(`${r.method()} ${path} is not in server/openapi.json`);
  });
  page.on("pageerror", (e) => faults.push(`the page threw ${e.stack ?? e}`));
  page.on("dialog", (d) => { faults.push(`the page opened a dialog: ${d.message()}`); void d.dismiss(); });
  page.on("popup", (p) => faults.push(`the page opened ${p.url()}`));
  await page.exposeFunction("lathe_violation", (text) => faults.push(`content security policy: ${text}`));
  await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (e) => window.lathe_violation(`${e.violatedDirective} ${e.blockedURI}`)));
}

function apiPaths() {
  const api = JSON.parse(readFileSync(join(root, "server", "openapi.json"), "utf8"));
  return Object.keys(api.paths).map((p) => new RegExp(`^${p.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, "[^/]+")}$`));
}

// axe adds what axe-core finds on the page as it is.
async function axe(page, where, faults) {
  const loaded = await page.evaluate(() => "axe" in window);
  if (!loaded) await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  for (const v of violations) faults.push(`axe ${where ?? ""}: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`);
}

// wide adds a fault if the page scrolls sideways.
async function wide(page, faults, where = "the page") {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) faults.push(`${where} is ${over} px too wide`);
}

async function shot(page, name, fullPage = false) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), fullPage });
}
