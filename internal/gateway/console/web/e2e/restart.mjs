// The server is killed and started again: the page says so, recovers by itself, and no event is lost or shown twice. Two
// tabs of a chat agree.

import { begin, call, settle } from "./runs.mjs";

export const args = ["--store", "sqlite:runs.db"];
export const files = { "lathe.yaml": "default_model: sim/demo\npolicy: {tools: {calculator: ask}}\n" };
export const views = [{ name: "desktop-light", width: 1366, height: 860, colorScheme: "light" }, { name: "phone-dark", width: 390, height: 844, colorScheme: "dark", isMobile: true }];

export default async function ({ page, context, base, server, watch, check, axe, shot }) {
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await page.fill("#prompt", "What is 7 + 35?");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#talk .card .approve");
  const chat = page.url();
  const id = JSON.parse(await call(base, "GET", "api/approvals")).data[0].run_id;
  const run = await context.newPage();
  await watch(run);
  await run.goto(`${base}runs/${id}?tab=events`);
  await run.getByRole("tab", { name: /^Events \([1-9]/ }).waitFor();
  const list = await context.newPage();
  await watch(list);
  await list.goto(`${base}runs`);
  await list.locator(`[data-key="${id}"]`).waitFor();

  await server.kill();
  await list.bringToFront();
  await list.locator("#health.lost").waitFor();
  check("the list stays", await list.locator(`[data-key="${id}"]`).count(), 1);
  await axe("a lost server");
  await page.bringToFront();
  await page.locator("#health.lost").waitFor({ timeout: 60_000 });
  check("the chat stays", await page.locator("#talk .user .said").textContent(), "What is 7 + 35?");
  await shot("lost");
  await server.start();
  for (const tab of [page, run, list]) {
    await tab.bringToFront();
    await tab.locator("#health.up").waitFor({ timeout: 60_000 });
  }
  // The call that waited is decided after the restart, in the inbox; the other tabs follow.
  const inbox = await context.newPage();
  await watch(inbox);
  await inbox.goto(`${base}approvals`);
  await inbox.locator(".card .approve:enabled").waitFor(); // once the question is there
  await inbox.getByRole("button", { name: "Approve", exact: true }).press("Enter");
  await inbox.locator(".approval-decided").getByText("calculator was approved by you.").waitFor();
  await settle(base, id);
  const { last_event_id: last, status } = JSON.parse(await call(base, "GET", `api/runs/${id}`));
  check("the run ended", status, "completed");
  await page.bringToFront();
  await page.locator(".assistant .said", { hasText: "42" }).waitFor();
  check("each answer once", await page.locator(".assistant .said", { hasText: "= 42" }).count(), 1);
  await run.bringToFront();
  await run.getByRole("tab", { name: `Events (${last})` }).waitFor({ timeout: 60_000 });
  await run.getByLabel("Type").selectOption("");
  check("no event is missing or there twice", await run.locator(".run-events-table .table").getAttribute("aria-rowcount"), String(last + 1));
  await list.bringToFront();
  await list.locator(`[data-key="${id}"]`, { hasText: "completed" }).waitFor();

  // Two tabs of one chat: a question in one is in the other when it is opened, and an approval there goes on here.
  const other = await context.newPage();
  await watch(other);
  await page.bringToFront();
  await page.fill("#prompt", "What is 8 + 35?");
  await page.keyboard.press("Enter");
  await page.locator("#talk .card .approve").waitFor();
  await other.goto(chat);
  await other.locator("#talk .card .approve").waitFor();
  check("both have both questions", await other.locator("#talk .user .said").allTextContents(), ["What is 7 + 35?", "What is 8 + 35?"]);
  await other.locator("#talk .card .deny").press("Enter");
  await other.locator(".tool .state", { hasText: "denied" }).waitFor();
  await page.bringToFront();
  await page.locator(".tool .state", { hasText: "denied" }).waitFor();
  await page.waitForSelector("#stop", { state: "hidden" });
  check("both show one conversation", await page.locator("#talk .said").allTextContents(), await other.locator("#talk .said").allTextContents());
  await shot("recovered");
}
