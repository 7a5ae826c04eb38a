// The card of a call that waits for an approval: what will run, exactly, and what is known of it. It is the same in
// the chat, in the list of runs and in the dialog of one run.

import { el, clock, count } from "./dom.js";
import { json, now } from "./server.js";
import { escapes, exactly, visible, writable } from "./visible.js";

const words = { approved: "approved", edited: "approved with other arguments", answered: "answered in place of the tool", denied: "denied", expired: "not decided in time, and has expired" };

// by says who has decided.
function by(d) {
  if (d.mine) return " by you";
  if (!d.by) return "";
  return d.by === "http" ? " by another page or program" : ` by ${visible(d.by)}`;
}

// decidedText says what was decided about a call, by whom and when.
export function decidedText(d) {
  const at = d.decided_at ? ` at ${clock(d.decided_at)}` : "";
  if (d.decision === "expired") return `The request has expired${at}: the call is not made.`;
  return `${d.mine ? "This call was" : "This call was already"} ${words[d.decision] ?? d.decision}${by(d)}${at}.`;
}

const scopes = [["", "this call only"], ["call", "equal calls of this run"], ["run", "all calls of this tool in this run"], ["session", "all calls of this tool in this chat"]];

const left = (ms) => {
  const s = Math.floor(ms / 1000);
  if (s < 120) return count(s, "second");
  return s < 7200 ? count(Math.floor(s / 60), "minute") : count(Math.floor(s / 3600), "hour");
};

export class Card {
  // call is an open call as the server tells it. onDecided is called once with the decision, which may be another's;
  // run is the run after it where the server told it.
  constructor(runId, call, onDecided) {
    Object.assign(this, { runId, call, onDecided, decision: undefined });
    this.text = call.exact_arguments ?? call.arguments;
    this.status = el("p", { class: "card-status", role: "alert" });
    this.note = el("p", { class: "meta card-decided", role: "status" });
    this.expires = el("dd");
    this.approve = el("button", { type: "button", onclick: () => this.send("approve") }, "Approve");
    this.deny = el("button", { type: "button", class: "danger", onclick: () => this.send("deny") }, "Deny");
    this.change = el("button", { type: "button", class: "quiet", onclick: () => this.edit() }, "Edit…");
    this.scope = el("select", {}, scopes.filter(([value]) => value !== "session" || call.session_id).map(([value, name]) => el("option", { value }, name)));
    this.element = this.draw();
    const fault = this.fault();
    if (fault) {
      this.status.textContent = fault;
      for (const b of [this.approve, this.change]) b.disabled = true;
    }
    this.tick();
  }

  // fault says why what is shown is not all that would run: then it cannot be approved here.
  fault() {
    let value;
    try {
      value = JSON.parse(this.text);
    } catch { /* it is cut, or no JSON */ }
    if (typeof value !== "object" || value === null || Array.isArray(value)) return "The arguments are not shown whole, so the call cannot be approved here. It can be denied.";
    if (visible(this.text) !== (this.call.visible_arguments ?? this.text)) return "This page and the server do not agree on what can be seen of the arguments, so the call cannot be approved here. Reload the page.";
    return "";
  }

  draw() {
    const { call } = this;
    const known = Object.fromEntries((call.facts ?? []).filter((f) => !f.model).map((f) => [f.name, f.value]));
    const row = (name, ...value) => value.some(Boolean) ? [el("dt", {}, name), value[0] instanceof Node ? value[0] : el("dd", {}, visible(value.find(Boolean)))] : [];
    const why = known["why asked"] ?? (call.reason ? `${call.reason} (rule ${call.rule})` : call.rule && `rule ${call.rule}`);
    const bytes = new TextEncoder().encode(this.text).length, hidden = escapes(this.text);
    const name = `Approval of ${call.tool}`;
    return el("div", { class: "card", role: "group", "aria-label": name, tabIndex: -1 },
      el("p", { class: "card-ask" }, call.effect === "read_only" ? "Should this call be made, exactly as it stands here?" : "This call changes something. Should it be made, exactly as it stands here?"),
      el("dl", { class: "facts" }, row("Tool", call.tool), row("From", call.origin, known.origin), row("Effect", (call.effect ?? known.effect ?? "").replaceAll("_", " ")),
        row("Asked because of", why), row("Labels", call.tool_labels?.join(" "), known.labels), row("Expires", call.expires_at && this.expires), row("Digest", call.args_digest)),
      el("h3", {}, "Arguments"), Object.assign(exactly(this.text), { className: "exact" }),
      el("p", { class: "meta" }, `These are all ${count(bytes, "byte")} of the arguments${bytes > 1500 ? ": scroll to read them to their end" : ""}.${hidden ? ` Characters that cannot be seen are shown as escapes, in ${count(hidden, "place")}.` : ""}`),
      this.editor = el("div", { class: "editor", hidden: true }),
      this.answers = el("div", { class: "answers" }, this.approve, this.deny, this.change, el("label", { class: "scope" }, "Approve for ", this.scope)),
      this.status, this.note);
  }

  // tick shows the time that is left, each second while the card is on the page.
  tick() {
    if (this.decision || !this.call.expires_at) return;
    const ms = Date.parse(this.call.expires_at) - now();
    this.expires.textContent = `${clock(this.call.expires_at)}, ${ms > 0 ? `in ${left(ms)}` : "now"}`;
    if (ms <= 0) return this.settle({ decision: "expired" });
    setTimeout(() => { if (this.element.isConnected) this.tick(); }, ms < 120_000 ? 1000 : 15_000);
  }

  edit() {
    const box = el("textarea", { value: writable(this.text), rows: 6, spellcheck: false, "aria-label": "Arguments to approve instead" });
    this.editor.replaceChildren(box, el("button", { type: "button", onclick: () => this.sendEdited(box.value) }, "Approve the edited arguments"),
      el("button", { type: "button", class: "quiet", onclick: () => this.leaveEditor() }, "Keep them as they are"));
    this.editor.hidden = false;
    this.answers.hidden = true;
    box.focus();
  }

  leaveEditor() {
    this.editor.hidden = true;
    this.answers.hidden = false;
    this.change.focus();
  }

  sendEdited(text) {
    let value;
    try {
      value = JSON.parse(text);
    } catch { /* said below */ }
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.status.textContent = "The arguments must be a JSON object, such as {\"name\": \"value\"}.";
      return;
    }
    this.send("edit", `,"arguments":${text}`);
  }

  async send(verb, more = "") {
    if (this.decision || this.sending) return;
    this.busy(true); // a button that is disabled would lose the focus
    this.status.textContent = "";
    if (verb === "approve" && this.scope.value) more = `,"scope":${JSON.stringify(this.scope.value)}`;
    const path = `api/runs/${encodeURIComponent(this.runId)}/approvals/${encodeURIComponent(this.call.tool_call_id)}`;
    try {
      const run = await json(path, { method: "POST", body: `{"decision":"${verb}","digest":${JSON.stringify(this.call.args_digest)}${more}}` });
      this.settle({ decision: { approve: "approved", edit: "edited", deny: "denied" }[verb], mine: true, decided_at: new Date().toISOString() }, run);
    } catch (e) {
      this.busy(false);
      if (e.problem?.decision) return this.settle(e.problem);
      if (e.code === "approval_expired") return this.settle({ decision: "expired" });
      if (e.status === 409 && await this.look()) return;
      this.status.textContent = e.message;
    }
  }

  busy(on) {
    this.sending = on;
    this.element.setAttribute("aria-busy", String(on));
  }

  // look asks for the run, and reports whether the call does not wait any more.
  async look() {
    try {
      this.update(await json(`api/runs/${encodeURIComponent(this.runId)}`));
    } catch { /* the card stays as it is */ }
    return Boolean(this.decision);
  }

  // update shows what has become of the call in the run.
  update(run) {
    if (this.decision || this.sending) return;
    const decision = run.decisions?.findLast((d) => d.args_digest === this.call.args_digest);
    if (decision) this.settle(decision, run);
    else if (!run.open_calls.some((o) => o.args_digest === this.call.args_digest)) this.settle({ decision: "withdrawn: its run has moved on" }, run);
  }

  settle(decision, run) {
    if (this.decision) return;
    this.decision = decision;
    this.busy(false);
    const focused = this.element.contains(document.activeElement);
    for (const part of [this.answers, this.editor]) part.hidden = true;
    this.element.classList.add("decided");
    this.element.querySelector(".card-ask").hidden = true;
    this.note.textContent = decidedText(decision);
    if (focused) this.element.focus();
    this.onDecided?.(decision, run, focused);
  }
}
