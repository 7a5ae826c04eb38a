// The last runs, with the cards of those that wait for an approval.

import { $, el, ago, clock, count, put } from "./dom.js";
import { json } from "./server.js";
import { Card } from "./card.js";

const words = { answered: "answered", client_tool_calls: "handed over", awaiting_approval: "waits for an approval", awaiting_tool_results: "waits for results" };
const listed = 12; // runs
const every = 15_000; // ms between two looks while the page is in view

export class Runs {
  // session returns the id of the chat that is shown.
  constructor({ showRun, session }) {
    Object.assign(this, { showRun, session, rows: new Map(), durable: undefined });
    $("again").addEventListener("click", () => this.refresh());
    $("waiting").addEventListener("click", () => this.focusWaiting());
    document.addEventListener("visibilitychange", () => this.look());
    setInterval(() => this.look(), every);
  }

  look() { if (!document.hidden && this.durable) this.refresh(); }

  // refresh reads the list again. It reports whether the server keeps runs; undefined: that is not known yet.
  async refresh() {
    try {
      const [{ data: runs }, { data: calls }] = await Promise.all([json(`api/runs?limit=${listed}`), json("api/approvals")]);
      this.durable = true;
      this.show(runs, calls);
    } catch (e) {
      if (e.status === 404) this.durable = false;
      if (e.status === 404 || this.rows.size === 0) {
        put($("runs"), [el("li", { class: "none" }, e.status === 404 ? "This server keeps no runs. Start it with a store to see them here." : e.message)]);
      }
    }
    return this.durable;
  }

  show(runs, calls) {
    const waiting = Map.groupBy(calls, (c) => c.run_id);
    const older = [...waiting.keys()].filter((id) => !runs.some((r) => r.run_id === id))
      .map((id) => ({ ...waiting.get(id)[0], status: "parked", reason: "awaiting_approval" }));
    const all = [...older, ...runs];
    const rows = new Map(all.map((r) => [r.run_id, this.row(r, waiting.get(r.run_id) ?? [])]));
    this.rows = rows;
    put($("runs"), all.length ? all.map((r) => rows.get(r.run_id).element) : [el("li", { class: "none" }, "No run yet.")]);
    const elsewhere = calls.filter((c) => c.session_id !== this.session()).length;
    const others = elsewhere && elsewhere < calls.length ? `, ${elsewhere.toLocaleString()} of them from elsewhere` : elsewhere ? " from elsewhere" : "";
    const text = calls.length ? `${count(calls.length, "call")}${others} ${calls.length === 1 ? "waits" : "wait"} for approval` : "";
    if (text && $("waiting").textContent !== text) $("waiting").textContent = text;
    $("waiting").hidden = calls.length === 0;
  }

  row(r, calls) {
    const row = this.rows.get(r.run_id) ?? this.newRow(r.run_id);
    const word = words[r.reason] ?? (r.reason || r.status).replaceAll("_", " ");
    const facts = [word];
    if (r.turns !== undefined) facts.push(count(r.turns, "turn"), count(r.tool_calls, "tool call"), count(r.usage.total_tokens || r.usage.input_tokens + r.usage.output_tokens, "token"));
    row.button.replaceChildren(
      el("span", { class: "top" }, el("span", { class: `dot ${r.status}` }), el("b", {}, r.target || r.model), el("span", { class: "right", title: new Date(r.started).toLocaleString() }, ago(r.started))),
      el("small", {}, facts.join(" · ")),
      el("small", {}, [`began ${clock(r.started)}`, r.session_id && r.session_id === this.session() ? "this chat" : "", r.principal ? `key ${r.principal}` : "", `…${r.run_id.slice(-6)}`].filter(Boolean).join(" · ")));
    for (const call of calls) if (!row.cards.has(call.args_digest)) row.cards.set(call.args_digest, this.card(row, call));
    for (const [digest, { card, box }] of row.cards) {
      const waits = calls.some((c) => c.args_digest === digest);
      if (!waits && !card.decision) card.look();
      if (!waits && card.decision && !box.contains(document.activeElement)) row.cards.delete(digest);
    }
    put(row.element, [row.button, ...[...row.cards.values()].map((c) => c.box)]);
    return row;
  }

  newRow(id) {
    const button = el("button", { type: "button", class: "row", onclick: () => this.showRun(id) });
    return { element: el("li", {}, button), button, cards: new Map() };
  }

  card(row, call) {
    const state = el("span", { class: "state wait" }, "● asks for your approval");
    const card = new Card(call.run_id, call, () => {
      Object.assign(state, { className: "state", textContent: "decided" });
      box.classList.remove("asks");
      this.decided();
    });
    const first = [...this.rows.values()].every((r) => r.cards.size === 0) && row.cards.size === 0 && call.session_id !== this.session();
    const box = el("details", { class: "tool asks", open: first }, el("summary", {}, el("b", {}, call.tool), state), card.element);
    return { card, box };
  }

  decided() { setTimeout(() => this.refresh(), 300); } // what the run makes of it

  // focusWaiting opens the first card that waits.
  focusWaiting() {
    for (const row of this.rows.values()) {
      for (const { card, box } of row.cards.values()) {
        if (card.decision) continue;
        box.open = true;
        card.element.focus();
        card.element.scrollIntoView({ block: "nearest" });
        return;
      }
    }
  }
}
