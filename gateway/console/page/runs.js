// The last runs, and what happened in one.

import { $, el, pretty, ago, count } from "./dom.js";
import { ask, events, json, refusal } from "./server.js";

const words = { answered: "answered", client_tool_calls: "handed over", awaiting_approval: "waits for an approval", awaiting_tool_results: "waits for results" };

export async function listRuns() {
  const list = $("runs");
  try {
    const { data } = await json("api/runs?limit=12");
    list.replaceChildren(...(data.length ? data.map((r) => el("li", {}, row(r))) : [el("li", { class: "none" }, "No run yet.")]));
    return true;
  } catch (e) {
    list.replaceChildren(el("li", { class: "none" }, e.status === 404 ? "This server keeps no runs. Start it with a store to see them here." : e.message));
    return false;
  }
}

function row(r) {
  const word = words[r.reason] ?? (r.reason || r.status).replaceAll("_", " ");
  return el("button", { type: "button", class: "row", onclick: () => showRun(r.run_id) },
    el("span", { class: "top" }, el("span", { class: `dot ${r.status}` }), el("b", {}, r.model), el("span", { class: "right" }, ago(r.started))),
    el("small", {}, `${word} · ${count(r.turns, "turn")} · ${count(r.tool_calls, "tool call")} · ${count(r.usage.total_tokens || r.usage.input_tokens + r.usage.output_tokens, "token")}`));
}

export async function showRun(id) {
  $("timeline-title").textContent = id;
  const body = $("timeline-body");
  body.replaceChildren(el("p", { class: "none" }, "…"));
  $("timeline").showModal();
  try {
    const response = await ask(`api/runs/${encodeURIComponent(id)}/events?follow=false`);
    if (!response.ok) throw await refusal(response);
    const list = el("ol", { class: "events rows" });
    let began;
    for await (const data of events(response)) {
      const e = JSON.parse(data);
      began ??= Date.parse(e.time);
      list.append(event(e, Date.parse(e.time) - began));
    }
    body.replaceChildren(list);
  } catch (e) {
    body.replaceChildren(el("p", { class: "problem", role: "alert" }, e.message));
  }
}

function event(e, after) {
  const d = e.data;
  const facts = [d.tool ?? d.tool_name, d.reason, d.status, d.error_type ?? d.error_code, d.decision, d.finish_reason]
    .filter((f, i, all) => f && all.indexOf(f) === i).join(" · ");
  let cls = "";
  if (d.status === "error" || d.status === "failed" || e.type === "ToolCallParseError") cls = "bad";
  else if (e.type === "RunFinished" || e.type === "ToolCallResult") cls = "good";
  else if (e.type.startsWith("Approval") || e.type === "RunPaused") cls = "wait";
  else if (e.type.startsWith("ToolCall")) cls = "call";
  return el("li", { class: cls }, el("details", {},
    el("summary", {}, el("time", {}, `+${(after / 1000).toFixed(3)} s`), el("b", {}, e.type), el("span", { class: "meta" }, facts)),
    el("div", {}, el("pre", { tabIndex: 0 }, pretty(d)), e.content ? [el("h3", {}, "Content"), el("pre", { tabIndex: 0 }, pretty(e.content))] : "")));
}
