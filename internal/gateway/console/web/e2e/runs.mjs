// The list of runs and one run: filters in the address, keyboard, timeline, live follow, export, import and cancel.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const files = { "lathe.yaml": "policy:\n  tools: {calculator: ask}\n" };

// call makes a request to the API beside the page.
export async function call(base, method, path, body) {
  const response = await fetch(base + path, { method, body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text;
}

export const begin = async (base, prompt, more = {}) => JSON.parse(await call(base, "POST", "api/runs", { model: "sim/demo", prompt, ...more })).run_id;

// settle waits until a run waits or has ended, and returns it.
export async function settle(base, id) {
  await call(base, "GET", `api/runs/${id}/events?follow=pause`);
  return JSON.parse(await call(base, "GET", `api/runs/${id}`));
}

// approve approves the call that a run waits for.
async function approve(base, id) {
  const call1 = JSON.parse(await call(base, "GET", `api/runs/${id}`)).open_calls[0];
  await call(base, "POST", `api/runs/${id}/approvals/${call1.tool_call_id}`, { decision: "approve", digest: call1.args_digest });
  await settle(base, id);
}

const hostile = "<img src=x onerror=alert(1)> \u202egnp.exe\u202c [x](javascript:alert(1)) ![y](https://evil.test/leak)";

export default async function test({ page, base, server, view, check, axe, shot }) {
  await page.goto(`${base}runs`);
  await page.getByText("There are no runs yet.").waitFor();
  await axe("runs, empty");

  const sum = await begin(base, "What is 7 + 35?"), plain = await begin(base, `Hello! ${hostile}`), waits = await begin(base, "What is 8 + 35?");
  for (const id of [sum, plain, waits]) await settle(base, id);
  await approve(base, sum);
  const row = (id) => page.locator(`[data-key="${id}"]`);
  await row(waits).waitFor(); // it appears by itself
  check("all runs are listed", await page.locator(".tbody .tr").count(), 3);
  await page.waitForFunction((id) => document.querySelector(`[data-key="${id}"]`).textContent.includes("awaiting approval"), waits);
  await axe("runs");
  await shot("list");
  check("each row has its question and its answer", await row(sum).locator("[data-col=question] .runs-said > span").allInnerTexts(), ["What is 7 + 35?", "7 + 35 = 42."]);
  if (view.isMobile) {
    const [line, question, answer, state, when] = await row(sum).evaluate((r) => [r, ...[".runs-said > :first-child", ".runs-answer", "[data-col=status]", "[data-col=started]"].map((s) => r.querySelector(s))].map((e) => { const b = e.getBoundingClientRect(); return { top: b.top, bottom: b.bottom, width: b.width }; }));
    check("question and time, then the answer over the whole width, then the state", [Math.abs(when.top - question.top) < 8, answer.top >= question.bottom - 1, answer.width > line.width * .9, answer.bottom - answer.top < 24, state.top >= answer.bottom - 1], [true, true, true, true, true]);
  }
  if (view.isMobile) check("what tells runs apart", [/^< 1 ms|ms|s · \d+ tokens · sim\/demo · calculator$/.test(await row(sum).locator("[data-col=facts]").innerText()), await row(sum).locator(".runs-answer").isVisible()], [true, true]);
  else {
    check("the newest first is told", await page.getByRole("columnheader", { name: "Started" }).getAttribute("aria-sort"), "descending");
    const keys = () => page.locator(".tbody .tr").evaluateAll((all) => all.map((r) => r.dataset.key));
    await page.getByRole("button", { name: "Tokens" }).click();
    await page.waitForFunction(() => new URL(location.href).searchParams.get("sort") === "-tokens");
    const tokens = async (id) => JSON.parse(await call(base, "GET", `api/runs/${id}`)).usage.total_tokens;
    const sizes = await Promise.all((await keys()).map(tokens));
    check("the largest first", sizes, sizes.toSorted((a, b) => b - a));
    check("the order is told", await page.getByRole("columnheader", { name: "Tokens" }).getAttribute("aria-sort"), "descending");
    await axe("sorted");
    await page.locator("summary", { hasText: "Columns" }).click();
    await page.getByRole("checkbox", { name: "Model" }).uncheck();
    await page.getByRole("checkbox", { name: "Id" }).check();
    check("the chosen columns", await page.getByRole("columnheader").allInnerTexts(), ["Choose all runs of the list", "Started ↕", "Status ↕", "Question, answer", "Duration ↕", "Tokens ↓", "Id", "Actions"]);
    await axe("columns");
    // The selection gets a name, and is there after a reload and after the list was left.
    await page.getByRole("button", { name: "Save view…" }).click();
    await axe("the name of a view");
    await page.getByLabel("Name").fill("Largest <b>first</b>");
    await page.keyboard.press("Enter");
    const own = page.getByRole("link", { name: "Largest <b>first</b>" });
    check("the view that is shown", await own.getAttribute("aria-current"), "page");
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.reload();
    await own.press("Enter");
    await page.getByRole("columnheader", { name: "Id" }).waitFor();
    check("the named view has its order", await page.getByRole("columnheader", { name: "Tokens" }).getAttribute("aria-sort"), "descending");
    await axe("a named view");
    await page.getByRole("button", { name: "Remove the view Largest <b>first</b>" }).press("Enter");
    check("it is removed", await own.count(), 0);
    await page.getByRole("link", { name: "All", exact: true }).click();
    await page.getByLabel("Started in the last").selectOption("own");
    const tomorrow = new Date(Date.now() + 864e5), local = new Date(tomorrow.getTime() - tomorrow.getTimezoneOffset() * 6e4).toISOString().slice(0, 16);
    await page.getByLabel("From").fill(local);
    await page.getByText("No run fits these filters.").waitFor();
    check("the range is in the address", new URL(page.url()).searchParams.get("since"), new Date(local).toISOString());
    await axe("a range");
    await page.getByRole("link", { name: "All", exact: true }).click();
    await row(waits).waitFor();
  }

  // Filters are in the address and survive a reload; Back leaves them.
  if (view.isMobile) await page.getByRole("button", { name: "Filters", exact: true }).click();
  const option = (name) => page.getByRole("option", { name });
  await page.getByRole("button", { name: "Status: any" }).press("Enter");
  await option(/^awaiting|^waiting 1/).waitFor();
  check("the statuses, each with its number of runs", (await page.getByRole("listbox", { name: "Found" }).getByRole("option").allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim()).slice(0, 3), ["any", "completed 2", "waiting 1"]);
  await axe("the choice of a status");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Status: any"); // the focus returns
  await page.getByRole("button", { name: "Tool: any" }).press("Enter");
  await option(/^calculator\s+2/).waitFor();
  await page.keyboard.type("calc");
  await shot("facet");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".tbody .tr").length === 2);
  check("the filter is in the address", new URL(page.url()).search, "?tool=calculator");
  await page.reload();
  await row(sum).waitFor();
  check("the filter is still there", [await page.getByRole("button", { name: "Tool: calculator" }).innerText(), await page.locator(".tbody .tr").count()], ["calculator", 2]);
  await page.getByRole("button", { name: "Clear" }).click();
  await row(plain).waitFor();
  await page.getByLabel("Text").fill("EVIL.test");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".tbody .tr").length === 1);
  check("found by its text", await row(plain).count(), 1);
  await page.getByLabel("Text").fill("no such text");
  await page.keyboard.press("Enter");
  await page.getByText("No run fits these filters.").waitFor();
  await axe("runs, none fits");
  await page.getByRole("link", { name: "All", exact: true }).click();
  await row(sum).waitFor();

  // Several runs at once: chosen by keyboard or in the list, exported into one file, deleted after a question, imported from the file, compared.
  const bar = page.getByRole("group", { name: "Chosen runs" }), dialog = page.getByRole("dialog");
  if (view.isMobile) await page.getByRole("button", { name: "Choose runs" }).click();
  await row(sum).focus();
  await page.keyboard.press("x");
  await bar.getByText("1 run chosen").waitFor();
  if (view.isMobile) await row(plain).locator(".runs-pick").click();
  else {
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press(" ");
  }
  await bar.getByText("2 runs chosen").waitFor();
  check("what can be done", await bar.getByRole("button").or(bar.getByRole("link")).allInnerTexts(), ["Compare both", "Export 2", "Delete 2…", "Choose all 3 listed", "Clear"]);
  check("the page does not scroll sideways", await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await axe("chosen runs");
  await shot("chosen");
  const [both] = await Promise.all([page.waitForEvent("download"), bar.getByRole("button", { name: "Export 2" }).click()]);
  const logs = readFileSync(await both.path(), "utf8");
  check("the logs of both are in the file", logs.length, (await call(base, "GET", `api/runs/${sum}/export`)).length + (await call(base, "GET", `api/runs/${plain}/export`)).length);
  await bar.getByRole("button", { name: "Delete 2…" }).click();
  await dialog.getByText("Delete 2 runs?").waitFor();
  await axe("the question before two runs are deleted");
  await dialog.getByRole("button", { name: "Delete 2 runs for good" }).click();
  await page.waitForFunction((id) => !document.querySelector(`[data-key="${id}"]`), plain);
  check("the other one is left", [await row(waits).count(), await row(sum).count(), await bar.count()], [1, 0, 0]);
  writeFileSync(join(server.folder, "runs.jsonl"), logs);
  await page.locator("input[type=file]").setInputFiles(join(server.folder, "runs.jsonl"));
  for (const id of [plain, sum]) await row(id).waitFor();
  await page.getByLabel("Choose all runs of the list").or(page.locator(".tbody .runs-pick").first()).first().click();
  if (view.isMobile) await bar.getByRole("button", { name: "Choose all 3 listed" }).click();
  await bar.getByText("3 runs chosen").waitFor();
  await bar.getByRole("button", { name: "Stop 1…" }).click();
  await dialog.getByText("2 other chosen runs ended before.").waitFor();
  await dialog.getByRole("button", { name: "Let it go on" }).click();
  await row(waits).locator(".runs-pick").click();
  await bar.getByRole("link", { name: "Compare both" }).click();
  await page.getByRole("heading", { name: "Compare two runs" }).waitFor();
  await page.getByText(/^The newer run gives another answer and does not call calculator\./).waitFor();
  check("both runs, the older one first", (await page.getByRole("region", { name: "Both runs" }).locator("tbody th").allInnerTexts()).map((t) => t.split(" ")[0]), ["older", "newer"]);
  await axe("two runs");
  await page.goBack();
  await row(waits).waitFor();

  // Into a run by keyboard, and through its views.
  await row(waits).focus();
  for (const id of [plain, sum]) {
    await page.keyboard.press("j");
    await page.waitForFunction((id) => document.activeElement?.dataset.key === id, id);
  }
  await page.keyboard.press("Enter");
  await page.getByRole("article", { name: "Call of calculator" }).waitFor();
  check("its address", new URL(page.url()).pathname, `/runs/${sum}`);
  check("the answer is shown", await page.getByText("7 + 35 = 42.", { exact: true }).count() > 0);
  await axe("conversation");
  await shot("conversation");
  await page.getByRole("tab", { name: "Conversation" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".timeline-row").first().waitFor();
  check("spans", await page.locator(".timeline-row").count(), 3);
  await page.locator(".timeline-row").first().focus();
  await page.keyboard.press("j");
  await page.waitForFunction(() => new URL(location.href).searchParams.get("event") === "5");
  check("the link names the tab", new URL(page.url()).search, "?tab=timeline&event=5");
  const beside = await page.evaluate(() => document.querySelector(".timeline-detail").getBoundingClientRect().left >= document.querySelector(".timeline").getBoundingClientRect().right);
  check("the detail of a span is beside the timeline where there is room", beside, !view.isMobile);
  check("the bars have the colours of the legend", await page.evaluate(() => [["model", ".bar.as-model"], ["tool", ".bar.idle ~ .as-work"], ["idle", ".bar.idle"], ["approval", ".bar.as-approval"]].filter(([k, bar]) => { const of = (s) => getComputedStyle(document.querySelector(s)).backgroundColor; return of(`.timeline-key .as-${k}`) !== of(bar); })), []);
  const detail = page.locator(".timeline-detail");
  check("what went into a call and what came of it", [/"expression": "7 \+ 35"/.test(await detail.getByRole("region", { name: "Input" }).first().innerText()), /42/.test(await detail.getByRole("region", { name: "Output" }).first().innerText())], [true, true]);
  check("a call waited before it ran", await page.locator(".timeline-row").nth(1).locator(".bar.idle ~ .part.as-work").count(), 1);
  await axe("timeline");
  await shot("timeline");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "ToolCallPlanned #5" }).waitFor();
  const sheet = () => page.locator(".run-event").boundingBox();
  check("the event is in the window", (await sheet()).y < view.height - 100);
  await page.getByRole("button", { name: "Next event" }).press("Enter");
  await page.getByRole("heading", { name: /#6$/ }).waitFor();
  await page.getByRole("button", { name: "Previous event" }).press("Enter");
  await page.getByRole("heading", { name: "ToolCallPlanned #5" }).waitFor();
  check("the events of its call", await page.getByRole("navigation", { name: "Events of the same call" }).getByRole("button").count() >= 4);
  await axe("events");
  await shot("events");
  await page.getByLabel("Type").selectOption("ModelCallFinished");
  await page.waitForFunction(() => document.querySelectorAll(".tbody .tr").length === 2);
  await page.reload();
  await page.getByRole("heading", { name: "ToolCallPlanned #5" }).waitFor();
  check("the filter of events is in the address", await page.getByLabel("Type").inputValue(), "ModelCallFinished");
  await page.getByRole("tab", { name: "Exchange" }).click();
  check("model calls", await page.locator(".panel article").count(), 2);
  const sent = page.locator(".panel article").first(), facts = (await sent.getByRole("region", { name: /^Request of/ }).innerText()).replace(/\s+/g, " ");
  check(`the request: ${facts}`, /Messages 1 message, \d+ bytes as JSON Tools \d+ tools?, .* as JSON Tool choice the model may call tools .*Parameters none set.* Tokens \d+ in/.test(facts));
  await sent.getByText("Their definitions have the hash that the run recorded").waitFor();
  await sent.getByRole("button", { name: "calculator" }).press("Enter");
  check("a tool's schema", await sent.getByRole("region", { name: /^Schema of calculator/ }).innerText().then((t) => t.includes("expression")));
  check("how the answer ended", /Ended because it calls tools · tool_calls/.test((await sent.getByRole("region", { name: /^Answer of/ }).innerText()).replace(/\s+/g, " ")));
  await shot("exchange-tool");
  await sent.locator("summary", { hasText: "Request as JSON" }).press("Enter");
  const written = JSON.parse(await sent.getByRole("region", { name: /^Request as JSON/ }).textContent());
  check("the request as JSON", [written.model, written.messages, written.tools.some((t) => t.function.name === "calculator" && t.function.parameters.properties.expression)], ["sim/demo", [{ role: "user", content: "What is 7 + 35?" }], true]);
  check("all messages of the second call", await page.locator(".panel article").last().getByRole("region", { name: /^Request of/ }).innerText().then((t) => /3 messages/.test(t) && !t.includes("run log has")));
  await axe("exchange");
  await shot("exchange");

  // Export, removal, import: the same log.
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const log = readFileSync(await file.path(), "utf8");
  check("the export is the log", log === await call(base, "GET", `api/runs/${sum}/export`));
  await call(base, "DELETE", `api/runs/${sum}`);
  await page.goto(`${base}runs`);
  await row(plain).waitFor();
  const saved = join(server.folder, "run.jsonl");
  writeFileSync(saved, log);
  await page.locator("input[type=file]").setInputFiles(saved);
  await page.getByRole("article", { name: "Call of calculator" }).waitFor();
  check("the import is at its address", new URL(page.url()).pathname, `/runs/${sum}`);
  check("its log is the same", await call(base, "GET", `api/runs/${sum}/export`) === log);
  await page.goto(`${base}runs`);
  await row(plain).waitFor();
  writeFileSync(saved, "{}\n");
  await page.locator("input[type=file]").setInputFiles(saved);
  await page.getByText("The body is no exported run").waitFor();

  // Text of a model or a client stays text: the harness notes every request, dialog and breach of the policy.
  await page.goto(`${base}runs/${plain}`);
  await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
  check("no element of it", await page.locator("main img, main a[href^='javascript']").count(), 0);
  check("what cannot be seen is shown", await page.locator(".escape").first().textContent(), "\\u202e");

  // Live: paused, nothing is shown of what comes; then all of it, once.
  await page.goto(`${base}runs/${waits}`);
  await page.locator(".run-live").getByText("calculator awaits an approval").waitFor();
  check("the call can be decided about here", await page.locator(".run-call .card .approve").count(), 1);
  await shot("waits");
  await axe("a run that waits");
  await page.getByRole("button", { name: "Pause" }).click();
  const before = JSON.parse(await call(base, "GET", `api/runs/${waits}`)).last_event_id;
  await approve(base, waits);
  const last = JSON.parse(await call(base, "GET", `api/runs/${waits}`)).last_event_id;
  await page.getByRole("tab", { name: `Events (${before})` }).waitFor();
  await page.getByRole("button", { name: "Follow" }).click();
  await page.getByRole("tab", { name: `Events (${last})` }).waitFor();

  // From one run of a list to the next, by their times: of all, and of those that failed.
  const failed = [];
  for (let i = 0; i < 3; i++) {
    failed.push(await begin(base, "Hello!", { model: "sim/fault-status-401" }));
    await settle(base, failed.at(-1));
  }
  await page.goto(`${base}runs/${waits}?tab=timeline`);
  await page.getByRole("button", { name: "Next", exact: false }).click();
  await page.waitForURL(`${base}runs/${failed[0]}?tab=timeline`);
  await page.getByRole("button", { name: "Previous", exact: false }).click();
  await page.waitForURL(`${base}runs/${waits}?tab=timeline`);
  await page.goto(`${base}runs?status=failed`);
  const of = (id) => `${base}runs/${id}?list=status%3Dfailed`;
  await row(failed[0]).press("Enter");
  await page.waitForURL(of(failed[0]));
  for (const id of failed.slice(1)) {
    await page.getByRole("button", { name: "Next failed" }).click();
    await page.waitForURL(of(id));
  }
  await page.getByRole("button", { name: "Next failed" }).click();
  await page.getByText("This is the last run of the list.").waitFor();
  await page.getByRole("button", { name: "Previous failed" }).click();
  await page.waitForURL(of(failed[1]));
  check("the way back is to the list", await page.getByRole("link", { name: "← Runs" }).getAttribute("href"), "/runs?status=failed");
  await axe("a failed run");

  // Cancel asks first.
  const third = await begin(base, "What is 9 + 35?");
  await settle(base, third);
  await page.goto(`${base}runs/${third}`);
  await page.getByRole("button", { name: "Stop the run" }).click();
  await page.getByRole("dialog").waitFor();
  await axe("the question before a cancel");
  await page.keyboard.press("Escape");
  check("Escape cancels nothing", JSON.parse(await call(base, "GET", `api/runs/${third}`)).status, "parked");
  await page.getByRole("button", { name: "Stop the run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop the run" }).click();
  await page.locator(".run-facts").getByText("cancelled").first().waitFor();
  check("it is cancelled", JSON.parse(await call(base, "GET", `api/runs/${third}`)).status, "cancelled");

  // A run is deleted after a question.
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByText("for good").first().waitFor();
  await axe("the question before a run is deleted");
  await page.getByRole("dialog").getByRole("button", { name: "Delete for good" }).click();
  await page.waitForURL(`${base}runs`);
  await page.waitForFunction((id) => !document.querySelector(`[data-key="${id}"]`), third);
  check("it is gone", (await fetch(`${base}api/runs/${third}`)).status >= 400);

  // The same in the list.
  const fourth = await begin(base, "What is 10 + 35?");
  await settle(base, fourth);
  await page.goto(`${base}runs`);
  if (view.isMobile) await row(fourth).waitFor();
  else {
    await row(fourth).getByRole("button", { name: /^Stop/ }).press("Enter");
    await page.getByRole("dialog").waitFor();
    await axe("the question before a cancel in the list");
    await page.keyboard.press("Escape");
    await page.waitForFunction((id) => document.activeElement?.closest(`[data-key="${id}"]`), fourth); // the focus returns
    await row(fourth).getByRole("button", { name: /^Stop/ }).press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Stop the run" }).press("Enter");
    await row(fourth).getByText("cancelled").first().waitFor();
    check("it is cancelled from the list", JSON.parse(await call(base, "GET", `api/runs/${fourth}`)).status, "cancelled");
  }

  await page.goto(`${base}runs/run_none`);
  await page.getByText("There is no such run, or it belongs to another key.").waitFor();
  await axe("no run");
}
