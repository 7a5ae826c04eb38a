// Builds src/ into ../dist, which the Go package embeds. The same sources and lock file give the same bytes.
//
//   node build.mjs          write ../dist
//   node build.mjs --check  build in memory and compare with ../dist, byte for byte

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "..", "dist");
// Bytes after gzip: of the scripts that the first screen, the chat, needs before it is shown; of all scripts; of the styles.
const budgets = { first: 120 * 1024, ".js": 320 * 1024, ".css": 20 * 1024 };
const firstScreen = ["src/main.tsx", "src/screens/chat.tsx"];
let first = new Set(); // paths of the scripts of the first screen

const files = new Map(await bundle());
files.set("sources.txt", `${sourcesHash()}\n`);
files.set("NOTICE.txt", notice());
checkBudgets();
if (process.argv.includes("--check")) compare();
else write();

async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { app: "src/main.tsx", style: "src/styles/index.css", icon: "src/icon.svg", waiting: "src/waiting.svg", manifest: "src/manifest.webmanifest" },
    outdir: "dist/assets", // paths of the result; nothing is written there
    entryNames: "[name]-[hash]", chunkNames: "[name]-[hash]", assetNames: "[name]-[hash]",
    bundle: true, splitting: true, format: "esm", platform: "browser", target: ["chrome114", "firefox121", "safari17"],
    jsx: "automatic", jsxImportSource: "preact", minify: true, charset: "utf8", legalComments: "none",
    loader: { ".svg": "copy", ".webmanifest": "copy" }, metafile: true, write: false, logLevel: "warning",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  first = needed(result.metafile.outputs);
  const out = result.outputFiles.map((f) => [relative(join(here, "dist"), f.path).split(sep).join("/"), f.contents]);
  const named = (name, ext) => out.map(([path]) => path).find((path) => path.startsWith(`assets/${name}-`) && path.endsWith(ext));
  const page = readFileSync(join(here, "src", "index.html"), "utf8")
    .replace("{{icon}}", named("icon", ".svg")).replace("{{waiting}}", named("waiting", ".svg")).replace("{{style}}", named("style", ".css")).replace("{{app}}", named("app", ".js")).replace("{{manifest}}", named("manifest", ".webmanifest"));
  const comment = new TextEncoder().encode("/* Licences of the libraries in this file: NOTICE.txt */\n");
  for (const f of out) if (f[0].endsWith(".webmanifest")) f[1] = new TextEncoder().encode(new TextDecoder().decode(f[1]).replace("{{icon}}", named("icon", ".svg").replace("assets/", "")));
  return [["index.html", page], ...out.map(([path, bytes]) => [path, path.endsWith(".js") ? Buffer.concat([comment, bytes]) : Buffer.from(bytes)])];
}

// needed returns the paths of the scripts of the first screen, with all that they import before they run.
function needed(outputs) {
  const paths = new Set(), add = (path) => {
    if (paths.has(path)) return;
    paths.add(path);
    for (const i of outputs[path].imports) if (i.kind === "import-statement") add(i.path);
  };
  for (const [path, { entryPoint }] of Object.entries(outputs)) if (firstScreen.includes(entryPoint)) add(path);
  return new Set([...paths].map((path) => path.replace(/^dist\//, "")));
}

// sourcesHash is a hash of everything that the built files are made of. A Go test computes it too, so that stale built
// files are noticed without npm.
function sourcesHash() {
  const hash = createHash("sha256");
  const paths = ["build.mjs", "package-lock.json", ...walk(join(here, "src")).map((p) => `src/${p}`)].sort();
  for (const path of paths) hash.update(`${path}\n${createHash("sha256").update(readFileSync(join(here, path))).digest("hex")}\n`);
  return hash.digest("hex");
}

function walk(folder, prefix = "") {
  return readdirSync(folder, { withFileTypes: true }).flatMap((e) => e.isDirectory() ? walk(join(folder, e.name), `${prefix}${e.name}/`) : [prefix + e.name]);
}

// notice has the licences of the libraries that are part of the built files.
function notice() {
  const lock = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8"));
  const used = Object.entries(lock.packages).filter(([path, p]) => path && !p.dev).sort(([a], [b]) => (a < b ? -1 : 1));
  return used.map(([path, p]) => {
    const folder = join(here, path);
    const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
    const text = file ? readFileSync(join(folder, file), "utf8").replaceAll("\r\n", "\n").trim() : "";
    return `${path.replace(/^.*node_modules\//, "")} ${p.version}: ${p.license}\n\n${text}\n`;
  }).join(`\n${"-".repeat(72)}\n\n`);
}

function checkBudgets() {
  for (const [ext, budget] of Object.entries(budgets)) {
    const size = [...files].filter(([path]) => ext === "first" ? first.has(path) : path.endsWith(ext)).reduce((sum, [, bytes]) => sum + gzipSync(bytes, { level: 9 }).length, 0);
    console.log(`${ext}: ${(size / 1024).toFixed(1)} KB gzip of ${budget / 1024}`);
    if (size > budget) fail(`the files ${ext} are ${size} bytes after gzip: the budget is ${budget}`);
  }
}

function compare() {
  const there = existsSync(dist) ? walk(dist) : [];
  const wrong = [...new Set([...files.keys(), ...there])].filter((path) => !files.has(path) || !there.includes(path) || !Buffer.from(files.get(path)).equals(readFileSync(join(dist, path))));
  if (wrong.length) fail(`internal/gateway/console/dist is not what the sources give (${wrong.join(", ")}): run npm run build in internal/gateway/console/web and commit dist`);
}

function write() {
  rmSync(dist, { recursive: true, force: true });
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(dist, path)), { recursive: true });
    writeFileSync(join(dist, path), bytes);
  }
}

function fail(text) {
  console.error(text);
  process.exit(1);
}
