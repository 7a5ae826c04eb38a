// The conversation: what is shown of it, and what is asked of the server.

import { $, el, pretty, count } from "./dom.js";
import { ask, events, refusal } from "./server.js";
import { take, waits, sent } from "./message.js";

const saved = "lathe.chat";
const tries = ["What is 7 + 35, and what time is it in Tokyo?", "What is 12.5 * 48?", "What time is it in New York?"];

const states = {
  "input-streaming": ["run", "◌ writing the call"],
  "input-available": ["run", "◌ running"],
  "approval-requested": ["wait", "● asks for your approval"],
  "approval-responded": ["run", "◌ answered"],
  "output-available": ["ok", "✓ done"],
  "output-error": ["bad", "✗ failed"],
  "output-denied": ["bad", "⊘ denied"],
};

const reasons = {
  max_iterations: "The run used all the model calls that it may make.",
  max_total_tool_calls: "The run used all the tool calls that it may make.",
  tool_loop: "The model went round in circles and was stopped.",
  run_timeout: "The run took too long and was stopped.",
  budget_exceeded: "The run used up its budget.",
  length: "The answer was cut off: it was too long for the model.",
  content_filter: "The model's content filter stopped the answer.",
  cancelled: "You stopped the run.",
};

export class Chat {
  // durable says that the server keeps runs: they go on when the page is left.
  constructor({ model, effects, showRun, onChange }) {
    Object.assign(this, { model, effects, showRun, onChange, durable: false, aborter: null });
    const old = JSON.parse(sessionStorage.getItem(saved) ?? "null");
    this.id = old?.id ?? crypto.randomUUID();
    this.messages = old?.messages ?? [];
    this.nodes = new Map();
    this.frame = 0;
    this.draw();
  }

  fresh() {
    this.stop();
    this.id = crypto.randomUUID();
    this.messages = [];
    this.save();
    this.draw();
    $("prompt").focus();
  }

  save() { sessionStorage.setItem(saved, JSON.stringify({ id: this.id, messages: this.messages })); }

  say(text) {
    this.messages.push({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] });
    return this.run();
  }

  // run asks for the next message of the assistant, or for the rest of the last one.
  async run() {
    let message = this.messages.at(-1);
    const messages = this.messages.map(sent);
    if (message.role === "user") {
      message = { id: crypto.randomUUID(), role: "assistant", parts: [] };
      this.messages.push(message);
    }
    const body = JSON.stringify({ id: this.id, model: this.model(), messages, lathe: this.durable ? { detach: true } : undefined });
    await this.follow(message, (signal) => ask("api/chat", { method: "POST", body, signal }));
  }

  // again follows the run of a message that was left while it was made.
  async again() {
    const message = this.messages.at(-1);
    if (!message?.working) return;
    if (!this.durable || !message.metadata?.runId) {
      message.working = false;
      message.problem = "The page was left before the answer was complete.";
      this.draw();
      return;
    }
    message.parts = [];
    await this.follow(message, (signal) => ask(`api/chat/${encodeURIComponent(message.metadata.runId)}/stream`, { signal }));
  }

  async follow(message, request) {
    this.aborter = new AbortController();
    message.working = true;
    message.problem = undefined;
    this.busy(true);
    this.save();
    this.draw();
    try {
      const response = await request(this.aborter.signal);
      if (!response.ok) throw await refusal(response);
      const runId = response.headers.get("X-Lathe-Run-Id");
      if (runId) message.metadata = { ...message.metadata, runId };
      this.save(); // who loads the page again finds the run
      let whole = false;
      for await (const data of events(response)) {
        if (data === "[DONE]") { whole = true; break; }
        const problem = take(message, JSON.parse(data));
        if (problem) message.problem = problem;
        this.later(message);
      }
      if (!whole) message.problem ??= "The connection broke off before the answer was complete.";
    } catch (e) {
      message.problem = e.name === "AbortError" ? undefined : e.message;
      if (e.name === "AbortError") message.metadata = { ...message.metadata, reason: "cancelled" };
    }
    for (const p of message.parts) {
      if (p.state === "input-streaming") p.state = "input-available";
      if (p.state === "approval-responded") Object.assign(p, { state: "approval-requested", approval: { id: p.approval.id } }); // it did not arrive
      if (p.state === "streaming") p.state = "done";
    }
    message.working = false;
    this.aborter = null;
    this.busy(false);
    this.save();
    this.show(message);
    this.onChange();
  }

  stop() {
    const message = this.messages.at(-1);
    if (!this.aborter) return;
    const runId = message?.metadata?.runId;
    if (this.durable && runId) ask(`api/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST" }).catch(() => this.aborter?.abort());
    else this.aborter.abort();
  }

  decide(message, part, approved) {
    part.state = "approval-responded";
    part.approval = { id: part.approval.id, approved };
    this.show(message);
    if (waits(message).length === 0) this.run();
    else this.nodes.get(message)?.querySelector(".ask button")?.focus();
  }

  busy(on) {
    $("send").hidden = on;
    $("stop").hidden = !on;
    $("talk").setAttribute("aria-busy", String(on));
  }

  // later shows a message with the next picture: many parts may come before it.
  later(message) {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.show(message);
    });
  }

  draw() {
    const talk = $("talk");
    this.nodes.clear();
    if (this.messages.length === 0) {
      talk.replaceChildren(el("div", { class: "welcome" },
        el("img", { src: "icon.svg", alt: "" }),
        el("strong", {}, "What should be done?"),
        el("p", {}, "Ask, and watch which tools the model calls, with what, and what they say. What changes the world waits for your approval."),
        el("div", { class: "tries" }, tries.map((t) => el("button", { type: "button", class: "quiet", onclick: () => this.say(t) }, t)))));
      return;
    }
    talk.replaceChildren(...this.messages.map((m) => this.node(m)));
    talk.scrollTop = talk.scrollHeight;
  }

  node(message) {
    const node = el("article", { class: `turn ${message.role}`, "aria-label": message.role === "user" ? "You" : "Assistant" });
    this.nodes.set(message, node);
    this.fill(node, message);
    return node;
  }

  show(message) {
    const node = this.nodes.get(message);
    if (!node) return this.draw();
    const talk = $("talk");
    const atEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
    this.fill(node, message);
    if (atEnd) talk.scrollTop = talk.scrollHeight;
  }

  // fill shows the message. Parts that have not changed keep their element, and with it whether they
  // are open and who has the focus.
  fill(node, message) {
    const old = new Map([...node.children].map((c) => [c.dataset.part, c]));
    const children = [];
    const keep = (name, version, make) => {
      let child = old.get(name);
      if (!child || child.dataset.version !== version) {
        const open = child?.open;
        const touched = child?.dataset.touched;
        child = make();
        child.dataset.part = name;
        child.dataset.version = version;
        if (touched && open !== undefined) {
          child.open = open;
          child.dataset.touched = touched;
        }
        child.querySelector?.(":scope > summary")?.addEventListener("click", () => { child.dataset.touched = "yes"; });
      }
      children.push(child);
    };
    message.parts.forEach((p, i) => {
      if (p.type === "text" && p.text) {
        const cls = p.providerMetadata?.lathe?.commentary ? "said commentary" : "said";
        keep(`p${i}`, p.text, () => el("div", { class: cls }, p.text));
      } else if (p.type === "reasoning" && p.text) {
        keep(`p${i}`, p.text, () => el("details", { class: "think" }, el("summary", {}, "Reasoning"), el("div", {}, el("div", { class: "said" }, p.text))));
      } else if (p.toolCallId) {
        keep(`p${i}`, JSON.stringify([p, message.working]), () => this.tool(message, p));
      } else if (p.type === "file") {
        keep(`p${i}`, p.mediaType, () => el("div", { class: "meta" }, `A file of type ${p.mediaType}`));
      }
    });
    if (message.working) {
      keep("working", "", () => el("div", { class: "working" }, "working"));
    } else if (message.role === "assistant") {
      const meta = message.metadata ?? {};
      if (message.problem) keep("problem", message.problem, () => this.problem(message.problem));
      else if (reasons[meta.reason]) keep("problem", meta.reason, () => el("div", { class: "problem note", role: "note" }, reasons[meta.reason]));
      keep("meta", JSON.stringify(meta), () => this.meta(meta));
    }
    node.replaceChildren(...children);
  }

  problem(text) {
    const cut = text.match(/^([a-z_]+): (.*)$/s);
    return el("div", { class: "problem", role: "alert" }, el("b", {}, cut ? cut[1].replaceAll("_", " ") : "That did not work"), el("span", {}, cut ? cut[2] : text));
  }

  meta(meta) {
    const facts = [];
    if (meta.model) facts.push(meta.model.startsWith("sim/") ? `${meta.model} (simulated)` : meta.model);
    if (meta.turns) facts.push(count(meta.turns, "model call"));
    if (meta.toolCalls) facts.push(count(meta.toolCalls, "tool call"));
    if (meta.usage) facts.push(count(meta.usage.inputTokens + meta.usage.outputTokens, "token"));
    return el("div", { class: "meta" }, facts.map((f) => el("span", {}, f)),
      meta.runId && this.durable ? el("button", { type: "button", onclick: () => this.showRun(meta.runId) }, "see the run") : "");
  }

  tool(message, p) {
    const name = p.type.slice("tool-".length);
    const [cls, word] = p.state === "input-available" && !message.working ? ["wait", "○ waits"] : states[p.state] ?? ["", p.state];
    const effect = this.effects.get(name);
    const asks = p.state === "approval-requested";
    const failed = p.state === "output-error" || p.state === "output-denied";
    const body = el("div", {});
    if (asks) {
      body.append(el("div", { class: "ask" },
        el("p", {}, effect === "writes" || !effect ? "This call changes something. Should it be made, exactly as it stands here?" : "Should this call be made, exactly as it stands here?"),
        el("button", { type: "button", onclick: () => this.decide(message, p, true) }, "Approve"),
        el("button", { type: "button", class: "danger", onclick: () => this.decide(message, p, false) }, "Deny")));
    }
    body.append(el("h3", {}, "Arguments"), el("pre", { tabIndex: 0 }, pretty(p.written ?? p.input) || "{}"));
    if (p.state === "output-available") body.append(el("h3", {}, "Result"), el("pre", { tabIndex: 0 }, pretty(p.output)));
    if (p.state === "output-error") body.append(el("h3", {}, "Failure"), el("pre", { tabIndex: 0 }, pretty(p.errorText)));
    return el("details", { class: `tool ${asks ? "asks" : ""} ${failed ? "failed" : ""}`, open: asks || p.state === "output-error" },
      el("summary", {}, el("b", {}, name), effect ? el("span", { class: `tag ${effect}` }, effect.replace("_", " ")) : "",
        el("span", { class: `state ${cls}` }, word)), body);
  }
}
