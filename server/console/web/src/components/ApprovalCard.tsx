// The card of a call that waits for an approval: what will run, exactly, and what is known of it. It is the same wherever
// a call can be decided.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { enc, get, now, Refusal, send } from "../api";
import { clock, count, words } from "../text/format";
import { escapes, exactly, visible, writable } from "../text/visible.js";
import { Pieces } from "./basics";

export interface Decision {
  decision: string; // approved, edited, answered, denied, expired
  by?: string;
  decided_at?: string;
  args_digest?: string;
  mine?: boolean;
}

// A WaitingCall is an open call of GET /api/runs/{id}, or a row of GET /api/approvals.
export interface WaitingCall {
  run_id?: string;
  session_id?: string;
  tool_call_id: string;
  tool: string;
  state: string;
  arguments: string;
  exact_arguments?: string;
  visible_arguments?: string;
  args_digest: string;
  origin?: string;
  effect?: string;
  rule?: string;
  reason?: string;
  tool_labels?: string[];
  expires_at?: string;
  facts?: { name: string; value: string; model?: boolean }[];
}

export interface Run {
  run_id: string;
  session_id?: string;
  status: string;
  reason?: string;
  last_event_id: number;
  open_calls: WaitingCall[];
  decisions?: Decision[];
}

const verdicts: Record<string, string> = { approved: "approved", edited: "approved with other arguments", answered: "answered in place of the tool", denied: "denied", expired: "not decided in time, and has expired" };

// by says who has decided.
function by(d: Decision): string {
  if (d.mine) return " by you";
  if (!d.by) return "";
  return d.by === "http" ? " by another page or program" : ` by ${visible(d.by)}`;
}

// decidedText says what was decided about a call, by whom and when.
export function decidedText(d: Decision): string {
  const at = d.decided_at ? ` at ${clock(d.decided_at)}` : "";
  if (d.decision === "expired") return `The request has expired${at}: the call is not made.`;
  return `${d.mine ? "This call was" : "This call was already"} ${verdicts[d.decision] ?? d.decision}${by(d)}${at}.`;
}

// decisionIn returns what a run says has become of a call, undefined while it waits.
export function decisionIn(run: Run, digest: string): Decision | undefined {
  const decision = run.decisions?.findLast((d) => d.args_digest === digest);
  if (decision) return decision;
  return run.open_calls.some((o) => o.args_digest === digest) ? undefined : { decision: "withdrawn: its run has moved on" };
}

const scopes = [["", "this call only"], ["call", "equal calls of this run"], ["run", "all calls of this tool in this run"], ["session", "all calls of this tool in this chat"]] as const;

const left = (ms: number) => {
  const s = Math.floor(ms / 1000);
  if (s < 120) return count(s, "second");
  return s < 7200 ? count(Math.floor(s / 60), "minute") : count(Math.floor(s / 3600), "hour");
};

const isObject = (text: string) => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false; // it is cut, or no JSON
  }
};

// fault says why what is shown is not all that would run: then it cannot be approved here.
function fault(call: WaitingCall, text: string): string {
  if (!isObject(text)) return "The arguments are not shown whole, so the call cannot be approved here. It can be denied.";
  if (visible(text) !== (call.visible_arguments ?? text)) return "This page and the server do not agree on what can be seen of the arguments, so the call cannot be approved here. Reload the page.";
  return "";
}

// useLeft returns the ms until a time, brought up to date while the card is shown.
function useLeft(at: string | undefined): number {
  const [ms, set] = useState(() => at ? Date.parse(at) - now() : Infinity);
  useEffect(() => {
    if (!at || ms <= 0) return;
    const timer = setTimeout(() => set(Date.parse(at) - now()), Math.min(ms, ms < 120_000 ? 1000 : 15_000));
    return () => clearTimeout(timer);
  }, [at, ms]);
  return ms;
}

// ApprovalCard decides about one call. decision is what was decided elsewhere, if the caller knows; onDecided is called once,
// with the decision, the run after it where the server told it, and whether the card had the focus.
export function ApprovalCard({ runId, call, decision: elsewhere, onDecided }: { runId: string; call: WaitingCall; decision?: Decision; onDecided?: (d: Decision, run: Run | undefined, focused: boolean) => void }) {
  const text = call.exact_arguments ?? call.arguments;
  const box = useRef<HTMLDivElement>(null), editor = useRef<HTMLTextAreaElement>(null), change = useRef<HTMLButtonElement>(null);
  const [mine, setMine] = useState<Decision>();
  const [status, setStatus] = useState(() => fault(call, text));
  const [mode, setMode] = useState<"" | "edit" | "answer">("");
  const [scope, setScope] = useState("");
  const busy = useRef(false);
  const told = useRef(false);
  const [whole] = useState(() => fault(call, text) === "");
  const ms = useLeft(call.expires_at);
  // While an answer is on its way the card stays as it is: what the run tells of it meanwhile would be this answer.
  const decision = mine ?? (busy.current ? undefined : elsewhere ?? (ms <= 0 ? { decision: "expired" } : undefined));
  const hadFocus = useRef(false); // before this render, which may remove what has the focus
  hadFocus.current = box.current?.contains(document.activeElement) ?? false;

  const settle = (d: Decision, run?: Run) => {
    if (told.current) return;
    told.current = true;
    const focused = hadFocus.current || (box.current?.contains(document.activeElement) ?? false);
    setMine(d);
    if (focused) box.current?.focus();
    onDecided?.(d, run, focused);
  };
  useEffect(() => { if (decision && !mine) settle(decision); });
  useEffect(() => { if (mode) editor.current?.focus(); }, [mode]);

  // A button that is disabled would lose the focus: the card is marked as busy instead.
  const post = async (verb: "approve" | "deny" | "edit" | "answer", more = "") => {
    if (decision || busy.current) return;
    busy.current = true;
    box.current?.setAttribute("aria-busy", "true");
    setStatus("");
    if (verb === "approve" && scope) more = `,"scope":${JSON.stringify(scope)}`;
    try {
      const run = await send<Run>("POST", `api/runs/${enc(runId)}/approvals/${enc(call.tool_call_id)}`, `{"decision":"${verb}","digest":${JSON.stringify(call.args_digest)}${more}}`);
      settle({ decision: { approve: "approved", edit: "edited", deny: "denied", answer: "answered" }[verb], mine: true, decided_at: new Date().toISOString() }, run);
    } catch (e) {
      if (e instanceof Refusal && e.problem.decision) return settle(e.problem as unknown as Decision);
      if (e instanceof Refusal && e.code === "approval_expired") return settle({ decision: "expired" });
      if (e instanceof Refusal && e.status === 409) {
        const run = await get<Run>(`api/runs/${enc(runId)}`).catch(() => undefined);
        const found = run && decisionIn(run, call.args_digest);
        if (found) return settle(found, run);
      }
      setStatus((e as Error).message);
    } finally {
      busy.current = false;
      box.current?.setAttribute("aria-busy", "false");
    }
  };
  const sendEdited = () => {
    const value = editor.current!.value;
    if (mode === "answer") return void post("answer", `,"answer":${JSON.stringify(value)}`);
    if (!isObject(value)) return setStatus("The arguments must be a JSON object, such as {\"name\": \"value\"}.");
    void post("edit", `,"arguments":${value}`);
  };

  const known = Object.fromEntries((call.facts ?? []).filter((f) => !f.model).map((f) => [f.name, f.value]));
  const row = (name: string, value: ComponentChildren) => value ? <><dt>{name}</dt><dd>{typeof value === "string" ? visible(value) : value}</dd></> : null;
  const why = known["why asked"] ?? (call.reason ? `${call.reason} (rule ${call.rule})` : call.rule && `rule ${call.rule}`);
  const bytes = new TextEncoder().encode(text).length, hidden = escapes(text);
  return <div class={`card${decision ? " decided" : ""}`} role="group" aria-label={`Approval of ${visible(call.tool)}`} tabIndex={-1} ref={box}>
    {!decision && <p class="card-ask">{call.effect === "read_only" ? "Should this call be made, exactly as it stands here?" : "This call changes something. Should it be made, exactly as it stands here?"}</p>}
    <dl class="facts">
      {row("Tool", call.tool)}{row("From", call.origin ?? known.origin)}{row("Effect", words(call.effect ?? known.effect ?? ""))}{row("Asked because of", why)}
      {row("Labels", call.tool_labels?.join(" ") ?? known.labels)}{row("Expires", call.expires_at && `${clock(call.expires_at)}, ${ms > 0 ? `in ${left(ms)}` : "now"}`)}{row("Digest", <span class="mono">{call.args_digest}</span>)}
    </dl>
    <h2 class="label">Arguments</h2>
    <pre class="exact" tabIndex={0} role="region" aria-label="Arguments"><Pieces cut={exactly(text)} /></pre>
    <p class="meta">These are all {count(bytes, "byte")} of the arguments{bytes > 1500 ? ": scroll to read them to their end" : ""}.{hidden ? ` Characters that cannot be seen are shown as escapes, in ${count(hidden, "place")}.` : ""}</p>
    {!decision && mode && <div class="editor">
      <textarea ref={editor} key={mode} rows={6} spellcheck={false} aria-label={mode === "edit" ? "Arguments to approve instead" : "Text that the model gets instead of a result"} defaultValue={mode === "edit" ? writable(text) : ""} />
      <button type="button" onClick={sendEdited}>{mode === "edit" ? "Approve the edited arguments" : "Send this answer"}</button>
      <button type="button" class="quiet" onClick={() => { setMode(""); setTimeout(() => change.current?.focus()); }}>{mode === "edit" ? "Keep them as they are" : "Back"}</button>
    </div>}
    {!decision && !mode && <div class="answers">
      <button type="button" class="approve" disabled={!whole} onClick={() => void post("approve")}>Approve</button>
      <button type="button" class="danger deny" onClick={() => void post("deny")}>Deny</button>
      <button type="button" class="quiet change" ref={change} disabled={!whole} onClick={() => setMode("edit")}>Edit…</button>
      <button type="button" class="quiet answer" onClick={() => setMode("answer")}>Answer instead…</button>
      <label class="scope">Approve for <select value={scope} onChange={(e) => setScope(e.currentTarget.value)}>{scopes.filter(([value]) => value !== "session" || call.session_id).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select></label>
    </div>}
    {status && !decision && <p class="card-status" role="alert">{status}</p>}
    {decision && <p class="meta card-decided" role="status">{decidedText(decision)}</p>}
  </div>;
}
