// The parts of a message, as elements. An element that is shown grows with its part and is not made again, so that
// what is selected in it stays.

import { el, grow, count, put } from "./dom.js";
import { shown } from "./visible.js";
import { decidedText } from "./card.js";

const states = {
  "input-streaming": ["run", "◌ writing the call"],
  "input-available": ["run", "◌ running"],
  "approval-requested": ["wait", "● asks for your approval"],
  "output-available": ["ok", "✓ done"],
  "output-error": ["bad", "✗ failed"],
  "output-denied": ["bad", "⊘ denied"],
};

// A view of a part has an element, and show, which brings the element up to date.
function text(p) {
  const element = el("div", { class: p.providerMetadata?.lathe?.commentary ? "said commentary" : "said" });
  return { element, show: (p) => grow(element, p.text) };
}

function reasoning() {
  const said = el("div", { class: "said" });
  return { element: el("details", { class: "think" }, el("summary", {}, "Reasoning"), el("div", {}, said)), show: (p) => grow(said, p.text) };
}

function file(p) {
  return { element: el("div", { class: "meta" }, `A file of type ${p.mediaType}`), show() {} };
}

function stateOf(p, working) {
  if (p.state === "input-available" && !working) return ["wait", "○ waits"];
  if (p.state === "approval-responded") return p.approval.approved ? ["run", "◌ approved"] : ["bad", "⊘ denied"];
  return states[p.state] ?? ["", p.state];
}

// A tool's part. cards has the cards of calls that wait, by their digest.
function tool(p, { effects, cards }) {
  const name = p.type.slice("tool-".length), effect = effects.get(name);
  const state = el("span"), streamed = el("pre", { tabIndex: 0 }), body = el("div");
  const summary = el("summary", {}, el("b", {}, name), effect ? el("span", { class: `tag ${effect}` }, effect.replace("_", " ")) : "", state);
  const element = el("details", {}, summary, body);
  let touched = false, before = "";
  summary.addEventListener("click", () => { touched = true; });
  const show = (p, working) => {
    const [cls, word] = stateOf(p, working);
    state.className = `state ${cls}`;
    grow(state, word);
    const asks = p.state === "approval-requested", failed = p.state === "output-error" || p.state === "output-denied";
    element.className = `tool ${asks ? "asks" : ""} ${failed ? "failed" : ""}`;
    if (!touched || asks && !before.startsWith('["approval-requested')) element.open = asks || p.state === "output-error";
    if (p.state === "input-streaming") {
      grow(streamed, p.input);
      if (before !== p.state) put(body, [el("h3", {}, "Arguments"), streamed]);
      before = p.state;
      return;
    }
    const card = asks ? cards.get(p.approval.id) : undefined;
    const now = JSON.stringify([p.state, p.input, p.output, p.errorText, p.decision, Boolean(card)]);
    if (now === before) return;
    before = now;
    if (asks) return put(body, [card?.element ?? el("p", { class: "none" }, "…")]);
    put(body, [p.decision ? el("p", { class: "meta" }, decidedText(p.decision)) : "", el("h3", {}, "Arguments"), shown(p.input || "{}"),
      ...(p.state === "output-available" ? [el("h3", {}, "Result"), shown(p.output ?? "")] : []),
      ...(p.state === "output-error" ? [el("h3", {}, "Failure"), shown(p.errorText ?? "")] : [])].filter(Boolean));
  };
  return { element, show, focus: () => summary.focus() };
}

// view makes the view of a part; undefined where it is not shown.
export function view(p, context) {
  if (p.type === "text") return text(p);
  if (p.type === "reasoning") return reasoning();
  if (p.toolCallId) return tool(p, context);
  if (p.type === "file") return file(p);
}

// what a person may do about a failure, by the code with which its text begins.
const next = {
  provider_unavailable: "Check that the model server runs (lathe doctor says what is wrong with it), then try again.",
  max_text: "Shorten the text, or raise serve.max_text.",
  draining: "Wait until the server has started again, then try again.",
  overloaded: "Wait a moment, then try again.",
  rate_limited: "Wait a moment, then try again.",
  run_not_found: "The server has been started again, or has removed the run. Ask again.",
  internal: "The server's log says why. Try again, or look at the run.",
};

// problem shows what went wrong, and what can be done.
export function problem({ text, code }, actions) {
  const cut = text.match(/^([a-z_]+): (.*)$/s);
  const hint = next[code || cut?.[1]];
  return el("div", { class: "problem", role: "alert" }, el("b", {}, cut ? cut[1].replaceAll("_", " ") : "That did not work"), el("span", {}, cut ? cut[2] : text),
    hint ? el("span", {}, hint) : "", el("div", { class: "answers" }, actions));
}

export const reasons = {
  max_iterations: "The run used all the model calls that it may make.",
  max_total_tool_calls: "The run used all the tool calls that it may make.",
  tool_loop: "The model went round in circles and was stopped.",
  run_timeout: "The run took too long and was stopped.",
  budget_exceeded: "The run used up its budget.",
  length: "The answer was cut off: it was too long for the model.",
  content_filter: "The model's content filter stopped the answer.",
  cancelled: "You stopped the run.",
};

// facts are the lines below an answer.
export function facts(meta, showRun) {
  const out = [];
  if (meta.model) out.push(meta.model.startsWith("sim/") ? `${meta.model} (simulated)` : meta.model);
  if (meta.turns) out.push(count(meta.turns, "model call"));
  if (meta.toolCalls) out.push(count(meta.toolCalls, "tool call"));
  if (meta.usage) out.push(count(meta.usage.inputTokens + meta.usage.outputTokens, "token"));
  return el("div", { class: "meta" }, out.map((f) => el("span", {}, f)),
    meta.runId && showRun ? el("button", { type: "button", onclick: () => showRun(meta.runId) }, "see the run") : "");
}
