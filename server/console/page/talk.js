// The conversation as it is shown, and as it is read aloud.

import { $, el, put } from "./dom.js";
import { isBehind } from "./message.js";
import { facts, problem, reasons, view } from "./parts.js";

const tries = ["What is 7 + 35, and what time is it in Tokyo?", "What is 12.5 * 48?", "What time is it in New York?"];
const longest = 20; // stretches that the live region keeps

// A Speaker puts each stretch of a text into the live region once, a sentence or more at a time: what is in there is
// read aloud.
class Speaker {
  constructor(region) { Object.assign(this, { region, said: new Map() }); }

  say(text) {
    if (!text.trim()) return;
    this.region.append(el("p", {}, text));
    while (this.region.childElementCount > longest) this.region.firstChild.remove();
  }

  // follow says what is new of a text; of one that is not over, up to its last whole sentence.
  follow(key, text, over) {
    const from = this.said.get(key) ?? 0;
    let to = text.length;
    if (!over) {
      const ends = text.slice(from).match(/^[^]*[.!?:\n](?=\s)/);
      to = ends ? from + ends[0].length : from;
    }
    if (to <= from) return;
    this.said.set(key, to);
    this.say(text.slice(from, to));
  }

  // skip counts what is shown as said.
  skip(key, text) { this.said.set(key, text.length); }
}

export class Talk {
  // context has what views need, what a person may have done (say, showRun, retry, edit), and has and isLast, which
  // say whether a message is of the chat, and its last.
  constructor(context) {
    Object.assign(this, { context, shown: new Map(), frame: 0, speaker: new Speaker($("spoken")) });
  }

  draw(messages) {
    this.shown.clear();
    if (messages.length === 0) {
      $("talk").replaceChildren(el("div", { class: "welcome" },
        el("img", { src: "icon.svg", alt: "" }),
        el("strong", {}, "What should be done?"),
        el("p", {}, "Ask, and watch which tools the model calls, with what, and what they say. What changes the world waits for your approval."),
        el("div", { class: "tries" }, tries.map((t) => el("button", { type: "button", class: "quiet", onclick: () => this.context.say(t) }, t)))));
      return;
    }
    for (const m of messages) m.parts.forEach((p, i) => this.speaker.skip(`${m.id} ${i}`, p.text ?? ""));
    $("talk").replaceChildren(...messages.map((m) => this.node(m).element));
    $("talk").scrollTop = $("talk").scrollHeight;
  }

  // node is what is shown of a message: an element, and the views of its parts by their keys.
  node(message) {
    let node = this.shown.get(message);
    if (!node) {
      node = { element: el("article", { class: `turn ${message.role}`, "aria-label": message.role === "user" ? "You" : "Assistant" }), views: new Map(), ends: {} };
      this.shown.set(message, node);
      this.fill(node, message);
    }
    return node;
  }

  // later shows a message with the next picture: many parts may come before it.
  later(message) {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.show(message);
    });
  }

  // show brings a message up to date; end has it seen, wherever the reader is.
  show(message, end = false) {
    if (!this.context.has(message)) return; // it is of a chat that was left
    const talk = $("talk");
    const atEnd = end || talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
    const node = this.node(message);
    this.fill(node, message);
    if (node.element.parentNode !== talk) {
      talk.querySelector(".welcome")?.remove();
      talk.append(node.element);
    }
    if (message.role === "assistant") this.speak(message);
    if (atEnd) talk.scrollTop = talk.scrollHeight;
  }

  fill(node, message) {
    const children = [], views = new Map();
    message.parts.forEach((p, i) => {
      if ((p.type === "text" || p.type === "reasoning") && !p.text) return;
      const key = `${i} ${p.type} ${p.toolCallId ?? ""} ${Boolean(p.providerMetadata?.lathe?.commentary)}`;
      const v = node.views.get(key) ?? view(p, this.context);
      if (!v) return;
      v.show(p, message.working);
      views.set(key, v);
      children.push(v.element);
    });
    node.views = views;
    put(node.element, [...children, ...this.end(node, message)]);
  }

  // end shows how it stands with the message, below its parts.
  end(node, message) {
    const { ends } = node, meta = message.metadata ?? {};
    const keep = (name, value, make) => {
      const version = JSON.stringify(value);
      if (ends[name]?.version !== version) ends[name] = { version, element: make() };
      return ends[name].element;
    };
    if (message.working) {
      const text = message.lost ? "The connection to the server is lost. Trying again…" : isBehind(message) ? "working: the rest of this text appears when the model call ends" : "working";
      return [keep("working", text, () => el("div", { class: message.lost ? "working lost" : "working" }, text))];
    }
    if (message.role !== "assistant") return [];
    const last = this.context.isLast(message);
    const out = [];
    if (message.problem) out.push(keep("problem", [message.problem, last], () => problem(message.problem, last ? this.actions(message) : [])));
    else if (reasons[meta.reason]) out.push(keep("problem", meta.reason, () => el("div", { class: "problem note", role: "note" }, reasons[meta.reason])));
    out.push(keep("meta", [meta, this.context.durable()], () => facts(meta, this.context.durable() && this.context.showRun)));
    return out;
  }

  actions(message) {
    const made = message.parts.some((p) => p.state === "output-available");
    return [el("button", { type: "button", onclick: () => this.context.retry() }, "Try again"),
      el("button", { type: "button", class: "quiet", onclick: () => this.context.edit() }, "Edit the question"),
      made ? el("small", {}, "Calls above were made. They may be made once more.") : ""];
  }

  speak(message) {
    message.parts.forEach((p, i) => {
      const key = `${message.id} ${i}`;
      if (p.type === "text") this.speaker.follow(key, p.text, p.state !== "streaming" || !message.working);
      if (p.state === "approval-requested" && !this.speaker.said.has(key)) {
        this.speaker.follow(key, `The call of ${p.type.slice("tool-".length)} asks for your approval.`, true);
      }
    });
  }

  // focusCall puts the focus on a call of a message.
  focusCall(message, part) {
    const views = this.shown.get(message)?.views;
    for (const [key, v] of views ?? []) if (key.includes(` ${part.toolCallId} `)) v.focus?.();
  }

  busy(on) {
    $("send").hidden = on;
    $("stop").hidden = !on;
  }
}

