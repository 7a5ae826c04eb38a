// The conversation: what was said, and what is asked of the server.

import { $ } from "./dom.js";
import { ask, delay, events, isReached, json, Lost, onConnection, pause, refusal } from "./server.js";
import { mark, rewind, sent, settle, take, waits } from "./message.js";
import { Card } from "./card.js";
import { Talk } from "./talk.js";
import { inView, news } from "./watch.js";

const saved = "lathe.chat";
const saveEvery = 1000; // ms between two saves while an answer streams
const attempts = 5; // to find a run whose answer never began

export class Chat {
  // durable says that the server keeps runs: they go on when the page is left.
  constructor({ model, effects, showRun, onChange }) {
    Object.assign(this, { model, onChange, durable: false, aborter: null, watcher: null, more: false, cards: new Map(), savedAt: 0 });
    this.talk = new Talk({ effects, showRun, cards: this.cards, durable: () => this.durable, isLast: (m) => m === this.messages.at(-1), has: (m) => this.messages.includes(m),
      say: (t) => this.say(t), retry: () => this.retry(), edit: () => this.edit() });
    const old = JSON.parse(sessionStorage.getItem(saved) ?? "null");
    this.id = old?.id ?? crypto.randomUUID();
    this.messages = old?.messages ?? [];
    addEventListener("pagehide", () => this.save());
    onConnection((reached) => this.connected(reached));
    this.draw();
  }

  draw() { this.talk.draw(this.messages); }

  fresh() {
    this.stop();
    this.watcher?.abort();
    this.id = crypto.randomUUID();
    this.messages = [];
    this.cards.clear();
    this.save();
    this.draw();
    $("prompt").focus();
  }

  // save keeps the conversation for a reload of the page, as far as the browser has room for it.
  save() {
    this.savedAt = Date.now();
    try {
      sessionStorage.setItem(saved, JSON.stringify({ id: this.id, messages: this.messages }));
    } catch {
      sessionStorage.removeItem(saved);
    }
  }

  say(text) {
    const message = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
    const before = this.messages.at(-1);
    this.messages.push(message);
    if (before) this.talk.show(before); // what may be done about its failure is over
    this.talk.show(message, true);
    return this.run();
  }

  // run asks for the answer to the last message.
  async run() {
    const messages = this.messages.map(sent);
    const message = { id: crypto.randomUUID(), role: "assistant", parts: [] };
    this.messages.push(message);
    const body = JSON.stringify({ id: this.id, model: this.model(), messages, lathe: this.durable ? { detach: true } : undefined });
    await this.follow(message, (signal) => ask("api/chat", { method: "POST", body, signal }));
  }

  // retry asks the last question again, unless its run goes on: then it is followed.
  async retry() {
    const message = this.messages.at(-1);
    if (this.aborter || message?.role !== "assistant") return;
    const found = message.metadata?.runId ? undefined : await this.find().catch(() => undefined);
    if (found) return this.follow(message, this.stream(message, found));
    this.messages.pop();
    this.draw();
    await this.run();
  }

  // edit puts the last question back into the box.
  edit() {
    if (this.aborter) return;
    this.messages.pop();
    const text = this.messages.pop()?.parts.map((p) => p.text).join("") ?? "";
    $("prompt").value = [text, $("prompt").value].filter(Boolean).join("\n");
    $("prompt").dispatchEvent(new Event("input"));
    this.save();
    this.draw();
    $("prompt").focus();
  }

  // find returns the id of a run of this chat that no message knows.
  async find() {
    if (!this.durable) return undefined;
    const { data } = await json(`api/runs?limit=1&session_id=${encodeURIComponent(this.id)}`);
    const id = data[0]?.run_id;
    return this.messages.some((m) => m.metadata?.runId === id) ? undefined : id;
  }

  // stream asks for what the run of a message says after what was told of it.
  stream(message, runId = message.metadata.runId) {
    return (signal) => ask(`api/chat/${encodeURIComponent(runId)}/stream`, { signal, headers: message.told ? { "Last-Event-ID": message.told.id } : {} });
  }

  // again follows the run of a message that was left while it was made, or that waits.
  async again() {
    const message = this.messages.at(-1);
    if (message?.role !== "assistant") return;
    if (!message.working) return this.attend(message);
    const runId = message.metadata?.runId ?? await this.find().catch(() => undefined);
    if (this.durable && runId) {
      rewind(message);
      return this.follow(message, this.stream(message, runId));
    }
    settle(message);
    Object.assign(message, { working: false, lost: false, problem: { text: "The page was left before the answer was complete." } });
    this.talk.show(message);
  }

  // follow shows a stream until the run has ended or waits. A connection that breaks off is made again.
  async follow(message, request) {
    this.watcher?.abort();
    const { signal } = this.aborter = new AbortController();
    Object.assign(message, { working: true, lost: false, problem: undefined, seen: undefined });
    this.talk.busy(true);
    this.save();
    this.talk.show(message);
    try {
      for (let attempt = 0; !await this.read(message, request, signal); attempt++) {
        if (!this.durable) throw new Error("The connection broke off before the answer was complete.");
        if (message.heard) attempt = 0;
        message.heard = false;
        this.connected(isReached());
        await pause(delay(attempt), signal);
        const runId = message.metadata?.runId ?? await this.find().catch(() => undefined);
        if (!runId && attempt >= attempts) throw new Lost();
        if (!runId) {
          request = () => Promise.reject(new Lost());
          continue;
        }
        rewind(message);
        request = this.stream(message, runId);
      }
    } catch (e) {
      if (e.name === "AbortError") message.metadata = { ...message.metadata, reason: "cancelled" };
      else message.problem = { text: e.message, code: e.code };
    }
    settle(message);
    Object.assign(message, { working: false, lost: false, heard: undefined });
    this.aborter = null;
    this.talk.busy(false);
    this.save();
    this.talk.show(message);
    this.onChange();
    const more = this.more;
    this.more = false;
    if (more) return this.follow(message, this.stream(message));
    this.attend(message);
  }

  // connected shows whether the server of the run that is followed is there.
  connected(reached) {
    const message = this.messages.at(-1);
    if (!this.aborter || !message?.working) return;
    message.lost = !reached;
    this.talk.show(message);
  }

  // read reads one stream into the message. It reports whether it was whole.
  async read(message, request, signal) {
    try {
      const response = await request(signal);
      if (response.status === 204) { // all of it was told
        if (message.metadata?.reason === "awaiting_approval") delete message.metadata.reason;
        return true;
      }
      if (!response.ok) {
        const refused = await refusal(response);
        const known = message.metadata?.runId;
        if (refused.code === "event_id_ahead" && message.told) { // the store has lost what it had told
          message.told = undefined;
          return false;
        }
        if (known && [502, 503, 504].includes(refused.status)) return false;
        throw refused;
      }
      const runId = response.headers.get("X-Lathe-Run-Id");
      if (runId) message.metadata = { ...message.metadata, runId };
      message.lost = false;
      this.talk.show(message);
      this.save(); // a page that is loaded again finds the run
      let left = false;
      for await (const { id, data } of events(response)) {
        if (data === "[DONE]") return !left;
        message.heard = true;
        const text = take(message, data, id);
        left ||= text?.startsWith("unavailable:"); // the server stops, and the run goes on
        if (text && !left) message.problem = { text };
        this.talk.later(message);
        if (Date.now() - this.savedAt > saveEvery) this.save();
      }
      return false;
    } catch (e) {
      if (e instanceof Lost) return false;
      throw e;
    }
  }

  stop() {
    const message = this.messages.at(-1);
    if (!this.aborter) return;
    const runId = message?.metadata?.runId, aborter = this.aborter;
    if (this.durable && runId && !message.lost) ask(`api/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST" }).catch(() => aborter.abort());
    else aborter.abort();
  }

  // attend shows the cards of a message whose run waits for approvals, and follows the run once it goes on,
  // wherever it was decided.
  async attend(message) {
    if (!this.durable || message.metadata?.reason !== "awaiting_approval" || message !== this.messages.at(-1)) return;
    this.watcher?.abort();
    const { signal } = this.watcher = new AbortController();
    const { runId } = message.metadata;
    for (let attempt = 0; ;) {
      try {
        await inView(signal);
        const run = await json(`api/runs/${encodeURIComponent(runId)}`, { signal });
        attempt = 0;
        this.learn(message, run);
        if (signal.aborted) return;
        const untold = run.last_event_id !== message.looked && run.open_calls.some((o) => o.state === "awaiting_approval" && !message.parts.some((p) => p.approval?.id === o.args_digest));
        if (run.status !== "parked" || untold || run.last_event_id > (message.seen ??= run.last_event_id)) {
          message.looked = run.last_event_id;
          return this.goOn(message);
        }
        await news(runId, run.last_event_id, signal);
      } catch (e) {
        if (signal.aborted) return;
        if (e.status === 404 || e.status === 410) {
          message.metadata = { ...message.metadata, reason: undefined };
          message.problem = { text: e.message, code: e.code };
          this.talk.show(message);
          return;
        }
        await pause(delay(attempt++), signal).catch(() => {});
      }
    }
  }

  // learn brings the cards of a message up to date with its run.
  learn(message, run) {
    for (const part of waits(message)) {
      const digest = part.approval.id, call = run.open_calls.find((o) => o.args_digest === digest);
      const decided = run.decisions?.findLast((d) => d.args_digest === digest);
      const card = this.cards.get(digest);
      if (card) card.update(run);
      else if (decided || !call) this.decided(message, part, decided ?? { decision: "decided elsewhere" }, run);
      else this.cards.set(digest, new Card(run.run_id, { session_id: run.session_id, ...call }, (d, after, focused) => this.decided(message, part, d, after, focused)));
    }
    this.talk.show(message);
  }

  // decided shows a decision about a call, and follows what the run makes of it.
  decided(message, part, decision, run, focused) {
    part.state = "approval-responded";
    part.approval = { id: part.approval.id, approved: ["approved", "edited", "answered"].includes(decision.decision) };
    part.decision = decision;
    if (message.told) mark(message);
    this.talk.show(message);
    if (focused) {
      const next = waits(message).map((p) => this.cards.get(p.approval.id)).find(Boolean);
      if (next) next.element.focus();
      else this.talk.focusCall(message, part);
    }
    this.goOn(message);
  }

  goOn(message) {
    if (this.aborter) this.more = true;
    else this.follow(message, this.stream(message));
  }
}
