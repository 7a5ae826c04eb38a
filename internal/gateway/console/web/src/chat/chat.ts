// The conversation: what was said, and what is asked of the server. It lives as long as the page: a stream goes on while
// another screen is shown.

import { signal } from "@preact/signals";
import { connection, delay, enc, events, get, getText, isGone, Lost, pause, Refusal, refusal, request, send } from "../api";
import { decisionIn, type Decision, type Run, type WaitingCall } from "../components/ApprovalCard";
import { member } from "../text/jsontext.js";
import { Branches, type Fork } from "./branches";
import { causeIn, storedEvents } from "./cause";
import { draftOf, keepDraft } from "./drafts";
import { mark, rewind, sent, settle, take, textOf, waits, type Message, type Part } from "./message";
import { optionsOf } from "./options";
import { Speaker } from "./speaker";
import { inView, news } from "./watch";
import { recount } from "../waiting";

const saved = "lathe.chat";
const saveEvery = 1000; // ms between two saves while an answer streams
const draftAfter = 300; // ms without a key before a draft is saved
const mostFile = 200_000; // characters of a file of a result that is saved
const attempts = 5; // to find a run whose answer never began

type Ask = (signal: AbortSignal) => Promise<Response>;

export class Chat {
  id: string = crypto.randomUUID();
  messages: Message[] = [];
  durable: boolean | undefined; // whether the server keeps runs: they go on when the page is left
  readonly cards = new Map<string, { runId: string; call: WaitingCall; decision?: Decision }>(); // of calls that wait, by digest
  readonly revision = signal(0); // grows with every change
  readonly busy = signal(false);
  readonly loading = signal<Error | boolean>(false);
  readonly draft = signal("");
  readonly editing = signal<Message | undefined>(undefined); // the question that is edited in its place
  readonly elsewhere = signal(false); // the chat went on in another page, and a message was not sent for that
  readonly branches = new Branches();
  readonly revisions = new WeakMap<Message, number>();
  onChange: () => void = () => {}; // a run of the chat has begun, waits or has ended
  focusWanted: string | undefined; // the id of a call whose view is to get the focus
  private aborter: AbortController | undefined;
  private watcher: AbortController | undefined;
  private announced: Ask | undefined; // the request whose run the other tabs know of
  private more = false;
  private savedAt = 0;
  private frame = 0;
  private readonly speaker = new Speaker();
  private readonly others = new BroadcastChannel("lathe.chats"); // the other tabs of this browser, which are told the id of a chat that goes on

  constructor() {
    const old = JSON.parse(sessionStorage.getItem(saved) ?? "null") as { id: string; messages: Message[]; forks?: Record<string, Fork> } | null;
    if (old && !old.messages.some((m) => m.parts.some((p) => p.type === "file" && !p.url))) { // without a file it is read from the server
      this.id = old.id;
      this.messages = old.messages;
      this.branches.forks = old.forks ?? {};
    }
    this.draft.value = draftOf(this.id);
    for (const m of this.messages) this.speaker.skip(m);
    addEventListener("pagehide", () => { this.save(); keepDraft(this.id, this.draft.value); });
    let due = 0;
    this.draft.subscribe((text) => {
      const { id } = this;
      clearTimeout(due);
      due = window.setTimeout(() => { if (this.id === id) keepDraft(id, text); }, draftAfter);
    });
    this.others.onmessage = (e: MessageEvent<string>) => { if (e.data === this.id) void this.catchUp(); };
    connection.subscribe((state) => this.connected(state !== "lost"));
  }

  get last(): Message | undefined { return this.messages.at(-1); }

  // changed shows a message again, or all.
  private changed(message?: Message) {
    if (message) {
      this.revisions.set(message, (this.revisions.get(message) ?? 0) + 1);
      if (message.role === "assistant") this.speaker.follow(message);
    } else for (const m of this.messages) this.revisions.set(m, (this.revisions.get(m) ?? 0) + 1);
    this.revision.value++;
  }

  // later shows a message with the next picture: many parts may come before it.
  private later(message: Message) {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.changed(message);
    });
  }

  // reset leaves the chat that is shown. Its run goes on where the server keeps runs.
  private reset(id: string, messages: Message[]) {
    if (this.busy.value && !this.durable) this.aborter?.abort();
    this.aborter?.abort("left");
    this.watcher?.abort();
    this.aborter = undefined;
    this.busy.value = false;
    if (id !== this.id) {
      keepDraft(this.id, this.draft.value);
      this.branches.forks = {};
      this.elsewhere.value = false;
    }
    this.editing.value = undefined;
    this.id = id;
    this.draft.value = draftOf(id);
    this.messages = messages;
    this.cards.clear();
    for (const m of messages) this.speaker.skip(m);
    this.save();
    this.changed();
  }

  fresh() {
    this.loading.value = false;
    this.reset(crypto.randomUUID(), []);
  }

  // open shows a chat that the server keeps: what its last run was asked, and the stream of that run.
  async open(id: string, anew = false) {
    if (id === this.id && this.messages.length && !anew) return;
    keepDraft(this.id, this.draft.value);
    this.reset(id, []);
    this.loading.value = true;
    try {
      const { data } = await get<{ data: { run_id: string; parent_run_id?: string; target?: string; started?: string; ended?: string }[] }>(`api/runs?limit=20&session_id=${enc(id)}`);
      const run = data.find((r) => !r.parent_run_id);
      if (this.id !== id) return;
      if (!run) throw new Error("The gateway has no chat with this address. It may have been deleted.");
      this.durable = true;
      const first = (await getText(`api/runs/${enc(run.run_id)}/events?after=0&follow=false`)).match(/^data: (.*)$/m)?.[1] ?? "{}";
      if (this.id !== id) return;
      const answer: Message = { id: crypto.randomUUID(), role: "assistant", parts: [], metadata: { runId: run.run_id }, asked: run.target ?? "", began: run.started ? Date.parse(run.started) : undefined, ended: run.ended ? Date.parse(run.ended) : undefined };
      this.messages = [...history(member(member(first, "content") ?? "{}", "messages") ?? "[]"), answer];
      for (const m of this.messages.slice(0, -1)) this.speaker.skip(m);
      this.loading.value = false;
      this.changed();
      await this.follow(answer, this.stream(answer), true);
    } catch (e) {
      if (this.id === id) this.loading.value = e as Error;
    }
  }

  // save keeps the conversation for a reload of the page, as far as the browser has room for it.
  save() {
    this.savedAt = Date.now();
    try {
      const small = (key: string, value: unknown) => key === "url" && (value as string)?.length > mostFile ? undefined : key === "files" ? (value as Part["files"])?.filter((f) => f.url.length < mostFile) : value;
      if (this.messages.length) sessionStorage.setItem(saved, JSON.stringify({ id: this.id, messages: this.messages, forks: this.branches.forks }, small));
      else sessionStorage.removeItem(saved);
    } catch {
      sessionStorage.removeItem(saved);
    }
  }

  // newest returns the id of the newest run of this chat, undefined if the server keeps none.
  private async newest(): Promise<string | undefined> {
    if (!this.durable) return undefined;
    const { data } = await get<{ data: { run_id: string; parent_run_id?: string }[] }>(`api/runs?limit=5&session_id=${enc(this.id)}`);
    return data.find((r) => !r.parent_run_id)?.run_id;
  }

  private knows(runId: string): boolean {
    const told = (messages: Message[]) => messages.some((m) => m.metadata?.runId === runId);
    return told(this.messages) || Object.values(this.branches.forks).some((f) => f.tails.some(told));
  }

  // catchUp shows what another page made of this chat. It reports whether there was something.
  async catchUp(): Promise<boolean> {
    const { id } = this, newest = this.busy.value || this.editing.value ? undefined : await this.newest().catch(() => undefined);
    if (!newest || this.id !== id || this.busy.value || !this.messages.length || this.knows(newest)) return false;
    void this.open(id, true);
    return true;
  }

  // send says a text with files, unless the chat has gone on elsewhere: then that is shown, and the text stays in the box. It reports which.
  async send(text: string, files: Part[] = []): Promise<boolean> {
    this.elsewhere.value = false;
    if (this.messages.length && await this.catchUp()) {
      keepDraft(this.id, text);
      this.draft.value = text;
      this.elsewhere.value = true;
      return false;
    }
    void this.say(text, files);
    return true;
  }

  say(text: string, files: Part[] = []): Promise<void> {
    const message: Message = { id: crypto.randomUUID(), role: "user", parts: [...(text ? [{ type: "text", text }] : []), ...files] }; // the text first: it makes the title
    this.messages.push(message);
    this.changed();
    return this.run();
  }

  // run asks for the answer to the last message, from another model than that of the chat if one is named.
  private async run(model?: string) {
    const messages = this.messages.map(sent);
    const message: Message = { id: crypto.randomUUID(), role: "assistant", parts: [], began: Date.now() };
    this.messages.push(message);
    const asks: { model?: string } = { ...optionsOf(this.id, { id: this.id, messages }, this.durable !== false), ...(model ? { model } : {}) };
    message.asked = asks.model ?? "";
    const body = JSON.stringify(asks);
    await this.follow(message, (signal) => request("api/chat", { method: "POST", body, signal }));
  }

  // retry asks the last question again, of another model if one is named, unless its run goes on: then it is followed.
  async retry(model?: string) {
    const message = this.last;
    if (this.busy.value || message?.role !== "assistant") return;
    const found = message.metadata?.runId ? undefined : await this.find().catch(() => undefined);
    if (found) return this.follow(message, this.stream(message, found));
    if (message.parts.length) this.branches.fork(this.messages, this.messages.length - 1);
    else this.messages.pop();
    this.changed();
    await this.run(model);
  }

  // edit has a question be edited in its place. What was said after it stays until the edited question is sent.
  edit(message = this.messages.findLast((m) => m.role === "user")) {
    if (this.busy.value || !message) return;
    this.editing.value = message;
    this.changed(message);
  }

  endEdit() {
    const message = this.editing.value;
    this.editing.value = undefined;
    if (message) this.changed(message);
  }

  // replace asks the edited question. The old one and all after it are another version.
  async replace(message: Message, text: string) {
    const at = this.messages.indexOf(message);
    this.endEdit();
    if (this.busy.value || at < 0) return;
    this.watcher?.abort();
    const old = message.parts;
    this.branches.fork(this.messages, at);
    await this.say(text, old.filter((p) => p.type === "file" || p.filename));
  }

  // turn shows another version of a message and of all after it.
  turn(message: Message, by: number) {
    const at = this.messages.indexOf(message);
    if (this.busy.value || at < 0) return;
    this.watcher?.abort();
    this.branches.turn(this.messages, at, by);
    this.save();
    this.changed();
    if (this.last?.role === "assistant") void this.attend(this.last);
  }

  // find returns the id of a run of this chat that no message knows.
  private async find(): Promise<string | undefined> {
    if (this.durable === false) return undefined;
    const { data } = await get<{ data: { run_id: string }[] }>(`api/runs?limit=1&session_id=${enc(this.id)}`);
    const id = data[0]?.run_id;
    return this.messages.some((m) => m.metadata?.runId === id) ? undefined : id;
  }

  // stream asks for what the run of a message says after what was told of it.
  private stream(message: Message, runId = message.metadata?.runId ?? ""): Ask {
    return (signal) => request(`api/chat/${enc(runId)}/stream`, { signal, headers: message.told ? { "Last-Event-ID": message.told.id } : {} });
  }

  // again follows the run of a message that was left while it was made, or that waits.
  async again() {
    const message = this.last;
    if (message?.role !== "assistant" || this.busy.value) return;
    if (!message.working) return this.attend(message);
    const runId = message.metadata?.runId ?? await this.find().catch(() => undefined);
    if (this.durable && runId) {
      rewind(message);
      return this.follow(message, this.stream(message, runId));
    }
    settle(message);
    Object.assign(message, { working: false, lost: false, problem: { text: "The page was left before the answer was complete." } });
    this.changed(message);
  }

  // follow shows a stream until the run has ended or waits. A connection that breaks off is made again.
  private async follow(message: Message, ask: Ask, quiet = false): Promise<void> {
    this.watcher?.abort();
    const aborter = this.aborter = new AbortController(), { signal } = aborter;
    Object.assign(message, { working: true, lost: false, problem: undefined, seen: undefined });
    this.busy.value = true;
    this.save();
    this.changed(message);
    try {
      for (let attempt = 0; !await this.read(message, ask, signal); attempt++) {
        if (this.durable === false) throw new Error("The connection broke off before the answer was complete.");
        if (message.heard) attempt = 0;
        message.heard = false;
        this.connected(connection.value !== "lost");
        await pause(delay(attempt), signal);
        const runId = message.metadata?.runId ?? await this.find().catch(() => undefined);
        if (!runId && attempt >= attempts) throw new Lost();
        if (!runId) {
          ask = () => Promise.reject(new Lost());
          continue;
        }
        rewind(message);
        ask = this.stream(message, runId);
      }
    } catch (e) {
      if (signal.reason === "left") return;
      if (signal.aborted) message.metadata = { ...message.metadata, reason: "cancelled" };
      else message.problem = { text: (e as Error).message, code: e instanceof Refusal ? e.code : "" };
    }
    if (signal.reason === "left") return;
    settle(message);
    Object.assign(message, { working: false, lost: false, heard: undefined, took: message.began && (message.ended ?? Date.now()) - message.began });
    if (quiet) this.speaker.skip(message);
    this.aborter = undefined;
    this.busy.value = false;
    this.save();
    this.changed(); // what may be done about each message depends on the last
    this.onChange();
    if (!quiet) this.others.postMessage(this.id);
    if (message.problem) void this.explain(message);
    const more = this.more;
    this.more = false;
    if (more) return this.follow(message, this.stream(message));
    void this.timed(message);
    void this.attend(message);
  }

  // timed takes over from the run of an answer when it began and ended, where the gateway keeps it.
  private async timed(message: Message) {
    const runId = message.metadata?.runId;
    if (!runId || !this.durable || message.metadata?.reason === "awaiting_approval") return;
    const run = await get<{ started?: string; ended?: string }>(`api/runs/${enc(runId)}`).catch(() => undefined);
    if (!run?.started || !run.ended) return;
    const began = Date.parse(run.started), ended = Date.parse(run.ended);
    Object.assign(message, { began, ended, took: ended - began });
    this.save();
    this.changed(message);
  }

  // explain adds to the problem of a message why its run failed, where the run says it.
  private async explain(message: Message) {
    const problem = message.problem, runId = message.metadata?.runId;
    if (!problem || !runId || !this.durable) return;
    problem.cause = causeIn(await storedEvents(runId).catch(() => []));
    if (problem.cause) this.changed(message);
  }

  // connected shows whether the server of the run that is followed is there.
  private connected(reached: boolean) {
    const message = this.last;
    if (!this.aborter || !message?.working || message.lost === !reached) return;
    message.lost = !reached;
    this.changed(message);
  }

  // read reads one stream into the message. It reports whether it was whole.
  private async read(message: Message, ask: Ask, signal: AbortSignal): Promise<boolean> {
    try {
      const response = await ask(signal);
      if (response.status === 204) { // all of it was told
        if (message.metadata?.reason === "awaiting_approval") delete message.metadata.reason;
        return true;
      }
      const known = message.metadata?.runId, runId = response.headers.get("X-Lathe-Run-Id");
      if (runId) message.metadata = { ...message.metadata, runId };
      if (!response.ok) {
        const refused = await refusal(response);
        if (refused.code === "event_id_ahead" && message.told) { // the store has lost what it had told
          delete message.told;
          return false;
        }
        if (known && [502, 503, 504].includes(refused.status)) return false;
        throw refused;
      }
      message.lost = false;
      if (ask !== this.announced) this.others.postMessage(this.id);
      this.announced = ask;
      this.changed(message);
      this.save(); // a page that is loaded again finds the run
      let left = false;
      for await (const { id, data } of events(response)) {
        if (signal.aborted) throw new DOMException("left", "AbortError");
        if (data === "[DONE]") return !left;
        message.heard = true;
        const text = take(message, data, id);
        left ||= text?.startsWith("unavailable:") ?? false; // the server stops, and the run goes on
        if (text && !left) message.problem = { text };
        this.later(message);
        if (Date.now() - this.savedAt > saveEvery) this.save();
      }
      return false;
    } catch (e) {
      if (e instanceof Lost) return false;
      throw e;
    }
  }

  stop() {
    const message = this.last, aborter = this.aborter;
    if (!aborter) return;
    const runId = message?.metadata?.runId;
    if (this.durable !== false && runId && !message?.lost) send("POST", `api/runs/${enc(runId)}/cancel`).catch(() => aborter.abort());
    else aborter.abort();
  }

  // attend shows the cards of a message whose run waits for approvals, and follows the run once it goes on,
  // wherever it was decided.
  private async attend(message: Message) {
    if (this.durable === false || message.metadata?.reason !== "awaiting_approval" || message !== this.last) return;
    recount();
    this.watcher?.abort();
    const { signal } = this.watcher = new AbortController();
    const runId = message.metadata.runId ?? "";
    for (let attempt = 0; ;) {
      try {
        await inView(signal);
        const run = await get<Run>(`api/runs/${enc(runId)}`, signal);
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
        if (isGone(e)) {
          message.metadata = { ...message.metadata, reason: undefined };
          message.problem = { text: (e as Error).message, code: (e as Refusal).code };
          this.changed(message);
          return;
        }
        await pause(delay(attempt++), signal).catch(() => {});
      }
    }
  }

  // learn brings the cards of a message up to date with its run.
  private learn(message: Message, run: Run) {
    for (const part of waits(message)) {
      const digest = part.approval!.id, call = run.open_calls.find((o) => o.args_digest === digest);
      const decision = decisionIn(run, digest), card = this.cards.get(digest);
      if (card && decision) this.cards.set(digest, { ...card, decision });
      else if (!call) this.decided(message, digest, decision ?? { decision: "decided elsewhere" }, false);
      else if (!card) this.cards.set(digest, { runId: run.run_id, call: { ...call, session_id: run.session_id ?? call.session_id } });
    }
    this.changed(message);
  }

  // decided shows a decision about a call, and follows what the run makes of it. The focus goes to the next card, or to the
  // call, if the card had it.
  decided(message: Message, digest: string, decision: Decision, focused: boolean) {
    const part = message.parts.find((p) => p.approval?.id === digest);
    if (part?.state !== "approval-requested") return;
    recount();
    part.state = "approval-responded";
    part.approval = { id: digest, approved: ["approved", "edited", "answered"].includes(decision.decision) };
    part.decision = decision;
    part.began = Date.now();
    if (message.told) mark(message);
    if (focused) this.focusWanted = waits(message).find((p) => this.cards.has(p.approval!.id))?.toolCallId ?? part.toolCallId;
    this.changed(message);
    this.goOn(message);
  }

  private goOn(message: Message) {
    if (this.busy.value) this.more = true;
    else void this.follow(message, this.stream(message));
  }

  // adopt begins a chat of its own with messages that were exported. It throws an error for people if there are none.
  adopt(file: string) {
    let messages: Message[] = [];
    try {
      const parsed = JSON.parse(file) as { messages?: Message[] };
      messages = (parsed.messages ?? []).filter((m) => (m.role === "user" || m.role === "assistant") && Array.isArray(m.parts) && m.parts.every((p) => typeof p?.type === "string"));
    } catch { /* the same as none */ }
    if (!messages.length) throw new Error("This file is no chat that was exported as JSON.");
    this.loading.value = false;
    this.reset(crypto.randomUUID(), messages.map(({ role, parts }) => ({ id: crypto.randomUUID(), role, parts: sent({ id: "", role, parts }).parts as unknown as Part[] })));
  }

  // exported is the conversation as JSON, which adopt reads.
  exported(title: string): string { return JSON.stringify({ title, messages: this.messages.map(sent) }, null, 1); }

  // transcript is the conversation as Markdown.
  transcript(): string {
    return this.messages.map((m) => `## ${m.role === "user" ? "You" : "Assistant"}\n\n${textOf(m)}\n`).join("\n");
  }
}

const attachedText = /^([^\n]{1,250}\.\w{1,10}):\n(`{3,})\n[^]*\n\2$/; // the text of a file, as attach writes it

// history makes messages of those with which a run began; raw is their JSON. A tool's result belongs to its call.
function history(raw: string): Message[] {
  const out: Message[] = [];
  const results = new Map<string, { content?: string; blobs?: { media_type?: string; data?: string; url?: string }[] }>();
  const stored = JSON.parse(raw) as { role: string; parts?: { type: string; text?: string; id?: string; name?: string; arguments?: string; content?: string; media_type?: string; data?: string; url?: string; blobs?: { media_type?: string; data?: string; url?: string }[] }[] }[];
  for (const p of stored.flatMap((m) => m.parts ?? [])) if (p.type === "tool_result") results.set(p.id ?? "", p);
  for (const m of stored) {
    if (m.role !== "user" && m.role !== "assistant") continue;
    let message = out.at(-1);
    if (m.role === "user" || message?.role !== "assistant") out.push(message = { id: crypto.randomUUID(), role: m.role, parts: [] });
    else message.parts.push({ type: "step-start" });
    for (const p of m.parts ?? []) {
      if (p.type === "text" || p.type === "reasoning") message.parts.push({ type: p.type, text: p.text ?? "", state: "done", filename: m.role === "user" ? attachedText.exec(p.text ?? "")?.[1] : undefined });
      else if (p.type === "tool_call") message.parts.push({ type: `tool-${p.name}`, toolCallId: p.id ?? "", state: "output-available", input: p.arguments ?? "{}", output: results.get(p.id ?? "")?.content ?? "",
        files: results.get(p.id ?? "")?.blobs?.map((b) => ({ mediaType: b.media_type ?? "", url: b.data ? `data:${b.media_type ?? ""};base64,${b.data}` : b.url ?? "" })) });
      else if (p.type === "blob") message.parts.push({ type: "file", mediaType: p.media_type ?? "", filename: p.name, url: p.data ? `data:${p.media_type ?? ""};base64,${p.data}` : p.url });
    }
  }
  return out;
}

export const chat = new Chat();
