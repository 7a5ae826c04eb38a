// A tool by hand: its form, what its server says of it, a call that is cancelled, a picture, and the calls that runs made of it.

import { config, mcp, model } from "./models.mjs";
import { begin, settle } from "./runs.mjs";
import { until } from "./world.mjs";

const { port } = await model();

export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];

export default async function ({ page, base, view, check, axe, shot }) {
  await until("the MCP server", async () => (await (await fetch(`${base}api/servers`)).json()).data[0]?.state === "ready");
  await settle(base, await begin(base, "@@rows of customers", { model: "local" }));

  await page.goto(`${base}servers`);
  const server = page.locator("article");
  await server.getByText("List customers with their city and revenue").waitFor();
  check("what it declares", (await server.locator(".server-declares .badge").allInnerTexts()).join(), "resources,tools");
  await server.locator("summary", { hasText: "Its instructions" }).press("Enter");
  check("its instructions", await page.getByRole("region", { name: "Instructions of t" }).textContent(), "Ask for rows first.");
  await axe("a server with instructions");
  await shot("server");

  await page.goto(`${base}tools`);
  await page.locator('[data-key="t__slow"]').getByText(view.isMobile ? "Count steps" : "steps, label?").waitFor();
  if (view.isMobile) check("effect and error rate on a phone", await page.locator('[data-key="t__rows"]').innerText().then((t) => t.includes("read only") && t.includes("0 % failed")));
  await page.locator('[data-key="t__rows"]').press("Enter");

  // The calls of runs: opened, with arguments and result, which fill the form.
  await page.locator("h1", { hasText: "t__rows" }).waitFor();
  check("what its server says", (await page.locator(".tool-hints").innerText()).replace(/\s+/g, " "), "read only destroys nothing closed world");
  check("the schema as a list", await page.getByRole("region", { name: "Schema of the arguments" }).innerText().then((t) => ["n", "integer", "required", "1 to 500", "How many customers."].every((part) => t.includes(part))));
  await page.locator(".tool-calls summary").press("Enter");
  await page.locator(".tool-calls .result-view table").waitFor();
  await axe("a call of a run");
  await page.getByRole("button", { name: "Use these arguments" }).press("Enter");
  await page.waitForFunction(() => document.querySelector("form .form-group input")?.value === "60");
  await page.getByLabel("n required").fill("3");
  await page.getByRole("button", { name: "Call", exact: true }).press("Enter");
  const rows = page.getByRole("region", { name: "Result", exact: true }).locator("tbody tr");
  await rows.first().waitFor();
  check("a table", await rows.count(), 3);
  check("said beforehand", (await page.locator("#try-will").innerText()).startsWith("runs at once"));
  const mine = page.locator(".tool-calls li").first();
  check("the call is the newest of the last calls", /completed\s+[\d.<]+ m?s\s+just now from this page/.test((await mine.innerText()).replace(/\s+/g, " ")));
  await mine.locator("summary").press("Enter");
  await mine.locator(".result-view table").waitFor();
  check("with its arguments", await mine.getByRole("region", { name: "Arguments of call 1 from this page" }).innerText().then((t) => t.includes('"n": 3')));
  await axe("a call from this page");
  await mine.locator("summary").press("Enter");
  const hint = page.getByRole("region", { name: "Result", exact: true }).getByText("scroll sideways to see all");
  check("whether the table scrolls sideways is said", await hint.count(), await rows.first().evaluate((r) => { const box = r.closest(".plain-table"); return Number(box.scrollWidth > box.clientWidth + 1); }));
  await shot("rows");

  // Another tool, whose result is a picture.
  await page.getByRole("button", { name: "Other tools" }).press("Enter");
  await page.getByRole("combobox", { name: "Find a tool" }).fill("dot");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "t__image" }).waitFor();
  await page.getByText("This tool takes no arguments.").waitFor();
  check("its schema", await page.getByRole("region", { name: "Schema of the arguments" }).innerText().then((t) => t.includes("It names no members.")));
  await page.getByRole("button", { name: "Call", exact: true }).press("Enter");
  await page.waitForFunction(() => document.querySelector(".tool-result img")?.naturalWidth === 5);
  check("it has no arguments of the other tool", await page.getByText("This tool takes no arguments.").count(), 1);
  await axe("a picture");
  await shot("picture");

  // A call in progress counts its seconds and can be cancelled.
  await page.goto(`${base}tools/t__slow`);
  check("a required number is empty", await page.getByLabel("steps required").inputValue(), "");
  await page.getByLabel("steps required").fill("5000");
  await page.getByRole("button", { name: "Call", exact: true }).press("Enter");
  await page.getByRole("button", { name: /^Calling/ }).waitFor();
  await axe("a call in progress");
  await page.getByRole("button", { name: "Cancel" }).press("Enter");
  await page.getByRole("alert").getByText("You cancelled the call.").waitFor();
  check("it can be called again", await page.getByRole("button", { name: "Call", exact: true }).isEnabled());
}
