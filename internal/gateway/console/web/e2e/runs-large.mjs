// 10,000 runs in the list, and a run of more than 500 events in the timeline.

import { call } from "./runs.mjs";

export const args = ["--store", "sqlite:runs.db"];
export const views = [{ name: "desktop-light", width: 1366, height: 860, colorScheme: "light" }];

const many = 10_000, most = 60;
const epoch = Date.UTC(2026, 0, 2, 3, 4, 5);

// log makes the export of a run of calls that overlap in threes.
function log(id, at, calls, answer) {
  const events = [];
  const add = (ms, type, data, content) => events.push({ event_id: events.length + 1, time: new Date(at + ms).toISOString().replace(".000Z", "Z").replace(/(\.\d*?)0+Z$/, "$1Z"), run_id: id, request_id: "req_1", turn: events.length ? 1 : 0, type, data, content });
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
  add(0, "RunStarted", { model: "m", provider: "p", dialect: "native", tool_use_mode: "relaxed", tool_failure_policy: "fatal", tools: { count: 1, hash: "" }, limits: { max_iterations: 8, max_total_tool_calls: 500, max_tool_args_bytes: 1, max_tool_output_bytes: 1, run_timeout_ms: 1 } }, { messages: [{ role: "user", parts: [{ type: "text", text: `Question ${id}` }] }], target: "m" });
  add(3, "ModelCallStarted", { attempt: 1, provider: "p", model: "m", prompt_hash: "", prompt_hash_v2: "", messages: 1, tools: 1 });
  const parts = Array.from({ length: calls }, (_, i) => ({ type: "tool_call", id: `call_${i}`, name: "look", arguments: "{}" }));
  add(41, "ModelCallFinished", { attempt: 1, provider: "p", model: "m", status: "success", finish_reason: calls ? "tool_calls" : "stop", usage, latency_ms: 38, first_token_ms: 12, tool_calls: calls, upstream_request_id: "" }, { message: { role: "assistant", parts: calls ? parts : [{ type: "text", text: answer }] } });
  const call = (i) => ({ tool_call_id: `call_${i}`, tool: "look", seq: i });
  for (let i = 0; i < calls; i++) add(42, "ToolCallProposed", { tool_call_id: `call_${i}`, tool_name: "look", seq: i, dialect: "native", deprecated_syntax: false, args_bytes: 2, args_preview_hash: "" }, { tool_name: "look", raw_args: "{}" });
  for (let i = 0; i < calls; i += 3) {
    const group = [i, i + 1, i + 2].filter((n) => n < calls), from = 50 + i * 17;
    for (const n of group) add(from + n - i, "ToolCallPlanned", { ...call(n), args_preview_hash: "", args_schema_version: "" });
    for (const n of group) add(from + 20 + 5 * (n - i), "ToolCallExecuted", { tool_call_id: `call_${n}`, tool_name: "look", seq: n, success: true, latency_ms: 15, output_truncated: false, output_size_bytes: 2, cached: false, attempts: 1 });
    for (const n of group) add(from + 40 + n - i, "ToolCallResult", { ...call(n), status: "ok", latency_ms: 15 }, { result: "{}" });
  }
  add(60 + calls * 17 + 40, "RunFinished", { reason: "answered", status: "completed", turns: 1, tool_calls: calls, usage, latency_ms: 1 }, { answer });
  return events;
}

export default async function test({ page, base, check, shot, axe }) {
  const send = (events) => call(base, "POST", "api/runs/import", events.map((e) => JSON.stringify(e)).join("\n"));
  let next = 0;
  await Promise.all(Array.from({ length: 32 }, async () => {
    for (let i = next++; i < many; i = next++) await send(log(`run_${String(i).padStart(5, "0")}`, epoch + i * 1000, 0, "Done."));
  }));

  const began = performance.now();
  await page.goto(`${base}runs`);
  await page.locator(".tbody .tr").first().waitFor();
  console.log(`     ${many} runs: first rows after ${Math.round(performance.now() - began)} ms`);
  check("the newest is first", await page.locator(".tbody .tr").first().getAttribute("data-key"), `run_${String(many - 1).padStart(5, "0")}`);
  await page.getByText(`200 of ${many.toLocaleString()}`).waitFor();
  // Scroll to the end of what is loaded until all runs are; count rows and the time of each frame.
  const result = await page.evaluate(async ({ many }) => {
    const box = document.querySelector(".table"), frame = () => new Promise((done) => requestAnimationFrame(done));
    let rows = 0, slowest = 0, frames = 0;
    const deadline = performance.now() + 120_000;
    while (performance.now() < deadline) {
      const before = performance.now();
      box.scrollTop += 800;
      await frame();
      slowest = Math.max(slowest, performance.now() - before);
      frames++;
      rows = Math.max(rows, document.querySelectorAll(".tbody .tr").length);
      if (Number(box.getAttribute("aria-rowcount")) === many + 1 && box.scrollTop + box.clientHeight >= box.scrollHeight - 1) break;
    }
    await frame();
    return { rows, slowest: Math.round(slowest), frames, count: Number(box.getAttribute("aria-rowcount")), last: [...document.querySelectorAll(".tbody .tr")].at(-1).dataset.key };
  }, { many });
  console.log(`     ${result.frames} steps of 800 px, the slowest ${result.slowest} ms, at most ${result.rows} rows in the document`);
  check("all runs can be reached", [result.count, result.last], [many + 1, "run_00000"]);
  check(`at most ${most} rows in the document`, result.rows > 0 && result.rows <= most);
  await shot("many");
  // An order of what is loaded says so, and how much that is.
  await page.goto(`${base}runs`);
  await page.getByText(`200 of ${many.toLocaleString()}, the newest first`).waitFor();
  await page.getByRole("button", { name: "Duration" }).click();
  await page.getByText(`Only the newest 2,000 of ${many.toLocaleString()} are loaded, and sorted by duration`).waitFor();
  await page.getByRole("button", { name: "Load more" }).waitFor();
  await axe("a part in order");
  await page.goto(`${base}runs?text=${encodeURIComponent("question run_04242")}`);
  for (let i = 0; i < 40 && await page.locator('[data-key="run_04242"]').count() === 0; i++) { // a page reads 500 logs
    const further = page.getByRole("button", { name: "Search further back" });
    await Promise.race([further.waitFor(), page.locator('[data-key="run_04242"]').waitFor()]);
    if (await further.count()) await Promise.all([page.waitForResponse((r) => r.url().includes("after=")), further.click()]);
  }
  check("an old run is found by its text", await page.locator('[data-key="run_04242"]').count(), 1);

  const long = log("run_long", epoch + 1e9, 130, "All done.");
  check("its events", long.length > 500);
  await send(long);
  await page.goto(`${base}runs/run_long?tab=timeline`);
  const drawn = performance.now();
  await page.waitForFunction(() => document.querySelectorAll(".timeline-row").length === 131);
  console.log(`     ${long.length} events: 131 bars after ${Math.round(performance.now() - drawn)} ms`);
  const bars = await page.evaluate(() => {
    const track = document.querySelector(".timeline-row .timeline-track").getBoundingClientRect();
    return { left: track.left, width: track.width, bars: [...document.querySelectorAll(".timeline-row")].map((r) => { const b = r.querySelector(".bar").getBoundingClientRect(); return { event: Number(r.dataset.event), from: b.left, to: b.right }; }) };
  });
  const ms = (e) => Date.parse(e.time), first = ms(long[0]), whole = ms(long.at(-1)) - first;
  const ends = (e) => e.type === "ModelCallStarted" ? long.find((x) => x.type === "ModelCallFinished") : long.find((x) => x.type === "ToolCallResult" && x.data.tool_call_id === e.data.tool_call_id);
  let worst = 0;
  for (const b of bars.bars) {
    const e = long[b.event - 1], want = (t) => bars.left + (t - first) / whole * bars.width;
    worst = Math.max(worst, Math.abs(b.from - want(ms(e))), Math.max(0, Math.abs(b.to - want(ms(ends(e)))) - Math.max(0, 2 - (ms(ends(e)) - ms(e)) / whole * bars.width)));
  }
  console.log(`     bars are ${worst.toFixed(3)} px from the times of their events at most`);
  check("bars are at the times of their events within 1 px", worst <= 1);
  await axe("a long timeline");
  await shot("timeline");
}
