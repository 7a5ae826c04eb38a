// One run in a dialog: what waits for an approval, and what has happened, as it happens.

import { $, el, put } from "./dom.js";
import { ask, delay, events, json, pause, refusal } from "./server.js";
import { content, member } from "./jsontext.js";
import { shown, visible } from "./visible.js";
import { Card } from "./card.js";

let left = new AbortController();

// showRun shows a run until the dialog is closed.
export function showRun(id) {
  left.abort();
  const { signal } = left = new AbortController();
  const dialog = $("timeline"), title = $("timeline-title");
  title.textContent = id;
  const view = { id, cards: new Map(), asks: el("div", { class: "asks-of-run" }), list: el("ol", { class: "events rows" }), note: el("p", { class: "none", role: "status" }, "…") };
  $("timeline-body").replaceChildren(view.asks, view.note, view.list);
  dialog.addEventListener("close", () => left.abort(), { once: true });
  if (!dialog.open) dialog.showModal();
  follow(view, signal);
}

async function follow(view, signal) {
  for (let attempt = 0, last = 0; ;) {
    try {
      const run = await look(view, signal);
      const response = await ask(`api/runs/${encodeURIComponent(view.id)}/events?after=${last}`, { signal });
      if (!response.ok) throw await refusal(response);
      if (response.status === 204) return;
      for await (const { id, data } of events(response)) {
        if (!id) continue; // text as it comes is in the event that ends it
        last = Number(id);
        attempt = 0;
        const e = JSON.parse(data);
        view.began ??= Date.parse(e.time);
        view.list.append(event(e, data, Date.parse(e.time) - view.began));
        if (last > run.last_event_id && /^(Approval|Run)/.test(e.type)) await look(view, signal);
        if (e.type === "RunFinished") return;
      }
      await pause(delay(attempt++), signal); // the stream broke off
    } catch (e) {
      if (signal.aborted) return;
      view.note.textContent = e.message;
      if (e.status && e.status < 500) return;
      await pause(delay(attempt++), signal).catch(() => {});
    }
  }
}

// look brings what waits up to date.
async function look(view, signal) {
  const run = await json(`api/runs/${encodeURIComponent(view.id)}`, { signal });
  for (const call of run.open_calls.filter((o) => o.state === "awaiting_approval")) {
    if (!view.cards.has(call.args_digest)) view.cards.set(call.args_digest, new Card(view.id, { session_id: run.session_id, ...call }));
  }
  for (const card of view.cards.values()) card.update(run);
  put(view.asks, [...view.cards.values()].map((c) => c.element));
  view.note.textContent = run.status === "parked" ? "The run waits." : run.status === "running" ? "The run goes on." : `The run has ended: ${run.status}${run.reason ? `, ${run.reason.replaceAll("_", " ")}` : ""}.`;
  return run;
}

function event(e, data, after) {
  const d = e.data;
  const facts = [d.tool ?? d.tool_name, d.reason, d.status, d.error_type ?? d.error_code, d.decision, d.by && `by ${d.by}`, d.finish_reason]
    .filter((f, i, all) => f && all.indexOf(f) === i).map((f) => visible(f)).join(" · ");
  let cls = "";
  if (d.status === "error" || d.status === "failed" || e.type === "ToolCallParseError") cls = "bad";
  else if (e.type === "RunFinished" || e.type === "ToolCallResult") cls = "good";
  else if (e.type.startsWith("Approval") || e.type === "RunPaused") cls = "wait";
  else if (e.type.startsWith("ToolCall")) cls = "call";
  const body = el("div");
  const item = el("details", {},
    el("summary", {}, el("time", { title: e.time }, `+${(after / 1000).toFixed(3)} s`), el("b", {}, e.type), el("span", { class: "meta" }, facts)), body);
  item.addEventListener("toggle", () => {
    const text = content(member(data, "content"));
    body.append(shown(member(data, "data")), ...(text ? [el("h3", {}, "Content"), shown(text)] : []));
  }, { once: true });
  return el("li", { class: cls }, item);
}
