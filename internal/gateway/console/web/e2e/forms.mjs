// The form of a tool for the schemas of testdata/schemas.json: what it sends is exact and passes the server's validation;
// arguments that do not fit are answered with the path at which they are wrong.

import { readFileSync } from "node:fs";

const text = readFileSync(new URL("../testdata/schemas.json", import.meta.url), "utf8");
const schemas = JSON.parse(text);

const server = `
const tools = JSON.parse(require("fs").readFileSync("schemas.json", "utf8")).map((s) => ({ name: s.name, description: "A tool.", inputSchema: s.schema }));
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const result = { initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "forms", version: "1" } }, "tools/list": { tools }, ping: {} }[m.method] ?? { content: [{ type: "text", text: "taken" }] };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: m.id, result }) + "\\n");
});`;

export const files = {
  "lathe.yaml": "tools:\n  mcp: {forms: {command: node, args: [server.cjs], allowlist: ['*']}}\npolicy: {effects: {writes: allow}}\n",
  "server.cjs": server, "schemas.json": text,
};
export const args = ["--store", "memory"];
export const views = [{ name: "desktop-light", width: 1366, height: 860, colorScheme: "light" }, { name: "phone-dark", width: 390, height: 844, colorScheme: "dark", isMobile: true }];

const compact = (json) => json.replace(/\n\s*/g, "").replace(/": /g, "\":");

async function fill(page, steps) {
  for (const [key, value] of Object.entries(steps)) {
    const [, nth, label] = key.match(/^(?:=(\d+):)?(.*)$/s);
    if (label.startsWith("+")) for (let i = 0; i < value; i++) await page.getByRole("button", { name: `Add an item to ${label.slice(1)}`, exact: true }).first().click();
    else {
      const control = page.getByLabel(label, { exact: true }).nth(Number(nth ?? 0));
      if (typeof value === "boolean") await control.setChecked(value);
      else if (Array.isArray(value)) await control.selectOption({ label: value[0] });
      else await control.fill(value);
    }
  }
}

export default async function ({ page, base, check, axe, shot, view }) {
  let tools = [];
  for (let i = 0; tools.length < schemas.length && i < 100; i++) {
    tools = (await page.request.get(`${base}api/tools`).then((r) => r.json())).data.filter((t) => t.name.startsWith("forms__"));
    if (tools.length < schemas.length) await new Promise((done) => setTimeout(done, 300));
  }
  check("every schema is that of a tool", schemas.filter((s) => !tools.some((t) => t.name === `forms__${s.name}`)).map((s) => s.name), []);
  const some = view.isMobile ? schemas.filter((s) => ["one_of", "recursive", "nested", "odd_names"].includes(s.name)) : schemas;
  for (const s of some) {
    await page.goto(`${base}tools/forms__${s.name}`);
    const call = page.getByRole("button", { name: "Call", exact: true });
    await call.waitFor();
    check(`${s.name} has arguments`, await page.getByText("This tool takes no arguments.").count(), s.initial === "{}" && !s.fill ? 1 : 0);
    await fill(page, s.fill ?? {});
    await axe(s.name);
    await shot(s.name);
    const ask = async () => {
      const [request] = await Promise.all([page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/call")), call.click()]);
      await page.getByRole("region", { name: "Result", exact: true }).waitFor();
      return compact(request.postData());
    };
    const want = s.want ?? (s.fill ? undefined : s.initial);
    check(`${s.name} sends`, await ask(), `{"arguments":${want}}`);
    check(`${s.name} is taken`, await page.getByRole("region", { name: "Text of the result" }).textContent(), "taken");
    if (s.bad === undefined) continue;
    await page.getByRole("tab", { name: "JSON" }).click();
    await page.getByLabel("Arguments", { exact: true }).fill(s.bad);
    const refused = page.getByRole("heading", { name: "Failure" });
    await Promise.all([refused.waitFor(), call.click()]);
    check(`${s.name} says why: the code`, await page.locator(".failure .badge").innerText(), "invalid arguments");
    check(`${s.name} says where`, (await page.locator(".failure li").allInnerTexts()).some((t) => t.startsWith(s.path || "the arguments")));
    await page.locator(".tool-result").getByRole("button", { name: "Raw" }).click();
    const said = await page.getByRole("region", { name: "Text of the failure" }).textContent();
    check(`${s.name} refuses ${s.bad}: ${said}`, said.includes(`"pointer": ${JSON.stringify(s.path)}`));
  }
}
