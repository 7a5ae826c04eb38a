// The card of a call that waits for an approval: what will run, exactly, and what is known of it. It is the same wherever
// a call can be decided.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { enc, get, now, Refusal, send } from "../api";
import { effectOf } from "../state";
import { count } from "../text/format";
import { content, entries } from "../text/jsontext.js";
import { escapes, exactly, pieces, visible, writable } from "../text/visible.js";
import { Copy, JsonView, Link, Pieces, Seen, StateBadge, Time } from "./basics";

export interface Decision {
  decision: string; // approved, edited, answered, denied, expired
  by?: string;
  decided_at?: string;
  args_digest?: string;
  scope?: string; // of an approval: the further calls that it is good for
  mine?: boolean;
}

// A WaitingCall is an open call of GET /api/runs/{id}, or a row of GET /api/approvals.
export interface WaitingCall {
  run_id?: string;
  session_id?: string;
  principal?: string;
  model?: string;
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
  may_decide?: boolean;
  requested_at?: string;
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

const verdicts: Record<string, string> = { approved: "approved", edited: "approved with other arguments", answered: "answered in place of the tool", denied: "denied", expired: "not decided in time, and has expired", withdrawn: "withdrawn: its run has moved on" };

// by says who has decided.
function by(d: Decision): string {
  if (d.mine) return " by you";
  if (!d.by) return "";
  return d.by === "http" ? " by another page or program" : ` by ${visible(d.by)}`;
}

// Decided says what was decided about a call, by whom and when.
export function Decided({ decision: d }: { decision: Decision }) {
  if (d.decision === "expired") return <>The request has expired: the call is not made.</>;
  return <>{d.mine ? "This call was" : "This call was already"} {visible(verdicts[d.decision] ?? d.decision)}{by(d)}{d.decided_at && <>, <Time at={d.decided_at} /></>}.</>;
}

// decisionIn returns what a run says has become of a call, undefined while it waits.
export function decisionIn(run: Run, digest: string): Decision | undefined {
  const decision = run.decisions?.findLast((d) => d.args_digest === digest);
  if (decision) return decision;
  return run.open_calls.some((o) => o.args_digest === digest) ? undefined : { decision: "withdrawn" };
}

const scopes = [["", "this call only"], ["call", "equal calls of this run"], ["run", "all calls of this tool in this run"], ["session", "all calls of this tool in this chat"]] as const;

// decidedLine says what was decided about a call of a tool, in one sentence.
export function decidedLine(tool: string, d: Decision): string {
  if (d.decision === "expired") return `The request for ${visible(tool)} has expired: the call is not made.`;
  const scope = d.scope && scopes.find(([value]) => value === d.scope)?.[1];
  return `${visible(tool)} was ${verdicts[d.decision] ?? d.decision}${by(d)}${scope ? ` for ${scope}` : ""}.`;
}

const isJSON = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // it is cut, or no JSON
  }
};
const isObject = (text: string) => entries(text)?.array === false;

// fault says why what is shown is not all that would run: then it cannot be approved here.
export function fault(call: WaitingCall, text = call.exact_arguments ?? call.arguments): string {
  if (!isJSON(text)) return "The arguments are not shown whole, so the call cannot be approved here. It can be denied.";
  if (!isObject(text)) return "The arguments are not a JSON object, so the call cannot be approved. It can be denied.";
  if (visible(text) !== (call.visible_arguments ?? text)) return "This page and the gateway do not agree on what can be seen of the arguments, so the call cannot be approved here. Reload the page.";
  return "";
}

// Reading shows arguments that have several lines, such as a mail, as a person reads them. What is approved stands below, exactly.
function Reading({ text }: { text: string }) {
  const long = (entries(text)?.of ?? []).filter(([, value]) => value[0] === '"' && content(value)?.trim().includes("\n"));
  if (!long.length) return null;
  return <div class="reading">{long.map(([name, value]) => <section key={name} aria-label={`${visible(name ?? "")} as text`}><h3>{visible(name ?? "")}</h3><p dir="auto" tabIndex={0}><Pieces cut={pieces(content(value) ?? "", "\n\t")} /></p></section>)}</div>;
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

type Verb = "approve" | "deny" | "edit" | "answer";
type Mode = "" | Exclude<Verb, "approve">;

const past: Record<Verb, string> = { approve: "approved", edit: "edited", deny: "denied", answer: "answered" };
const editors: Record<Exclude<Mode, "">, { label: string; submit: string; back: string; rows: number }> = {
  edit: { label: "Arguments to approve instead", submit: "Approve the edited arguments", back: "Keep them as they are", rows: 6 },
  answer: { label: "Text that the model gets instead of a result; the tool is not called", submit: "Send this answer", back: "Back", rows: 3 },
  deny: { label: "Reason for the model and the log, in a few words", submit: "Deny with this reason", back: "Back", rows: 1 },
};

const mostReason = 64; // characters

// reasonOf returns the code that the gateway stores for a reason in words, such as wrong_account, and why there is none.
export function reasonOf(words: string): { code: string; problem: string } {
  const code = words.normalize("NFKD").toLowerCase().replace(/\p{M}/gu, "").replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "");
  if (code.length > mostReason) return { code: "", problem: `A reason has at most ${mostReason} characters. Answer instead gives the model a longer text.` };
  return { code, problem: words.trim() && !code ? "A reason needs letters a to z or digits, since it is stored as a code. Answer instead gives the model any text." : "" };
}

// Exact shows the arguments of a call, whole and with nothing hidden.
export const Exact = ({ call }: { call: WaitingCall }) => <pre class="exact" tabIndex={0} role="region" aria-label={`Arguments of ${visible(call.tool)} ${[call.tool_call_id, call.run_id].filter(Boolean).join(" of ")}`}><Pieces cut={exactly(call.exact_arguments ?? call.arguments)} /></pre>;

// ApprovalCard decides about one call. decision is what was decided elsewhere, if the caller knows; onDecided is called once,
// with the decision, the run after it where the server told it, and whether the card had the focus. A card that is alone
// names its tool and its run, shows question, what its run was asked, and takes the focus: A approves the call once, R denies it.
// While reading is set the question is being read, and the call cannot be approved. note is a line below the title.
export function ApprovalCard({ runId, call, decision: elsewhere, onDecided, alone = false, question, reading = false, note }: { runId: string; call: WaitingCall; decision?: Decision; question?: ComponentChildren; reading?: boolean; note?: ComponentChildren; onDecided?: (d: Decision, run: Run | undefined, focused: boolean) => void; alone?: boolean }) {
  const text = call.exact_arguments ?? call.arguments;
  const box = useRef<HTMLDivElement>(null), editor = useRef<HTMLTextAreaElement>(null), opener = useRef<HTMLElement | null>(null);
  const [mine, setMine] = useState<Decision>();
  const [status, setStatus] = useState(() => fault(call, text));
  const [mode, setMode] = useState<Mode>("");
  const [scope, setScope] = useState(""), [code, setCode] = useState(""); // code: of the reason that is being written
  const busy = useRef(false);
  const told = useRef(false);
  const [whole] = useState(() => fault(call, text) === "");
  const ms = useLeft(call.expires_at), mayApprove = whole && !reading;
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
  const post = async (verb: Verb, { scope = "", more = "" } = {}) => {
    if (decision || busy.current || call.may_decide === false || (verb === "approve" || verb === "edit") && !mayApprove) return;
    busy.current = true;
    box.current?.setAttribute("aria-busy", "true");
    setStatus("");
    if (scope) more = `,"scope":${JSON.stringify(scope)}`;
    try {
      const run = await send<Run>("POST", `api/runs/${enc(runId)}/approvals/${enc(call.tool_call_id)}`, `{"decision":"${verb}","digest":${JSON.stringify(call.args_digest)}${more}}`);
      settle({ decision: past[verb], scope, mine: true, decided_at: new Date().toISOString() }, run);
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
  const submit = () => {
    const value = editor.current!.value;
    if (mode === "answer") return void post("answer", { more: `,"result":${JSON.stringify(value)}` });
    if (mode === "deny") {
      const { code, problem } = reasonOf(value);
      if (problem) return setStatus(problem);
      return void post("deny", { more: code && `,"reason":"${code}"` });
    }
    if (!isObject(value)) return setStatus("The arguments must be a JSON object, such as {\"name\": \"value\"}.");
    void post("edit", { more: `,"arguments":${value}` });
  };
  const choose = (to: Mode) => { opener.current = document.activeElement as HTMLElement; setStatus(""); setCode(""); setMode(to); };
  const back = () => {
    const name = opener.current?.dataset.mode;
    setMode("");
    setTimeout(() => box.current?.querySelector<HTMLElement>(`[data-mode=${name}]`)?.focus());
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Escape" && mode) back();
    else if (e.target !== box.current || e.ctrlKey || e.metaKey || e.altKey) return;
    else if (e.key === "a") void post("approve");
    else if (e.key === "r") void post("deny");
    else return;
    e.preventDefault();
  };

  const known = Object.fromEntries((call.facts ?? []).filter((f) => !f.model).map((f) => [f.name, f.value]));
  const row = (name: string, value: ComponentChildren) => value ? <><dt>{name}</dt><dd>{typeof value === "string" ? <Seen text={value} /> : value}</dd></> : null;
  const why = known["why asked"] ?? (call.reason ? `${call.reason} (rule ${call.rule})` : call.rule && `rule ${call.rule}`);
  const bytes = new TextEncoder().encode(text).length, hidden = escapes(text), other = mode && editors[mode];
  return <div class={`card${decision ? " decided" : ""}${alone ? " card-box" : ""}`} role="group" aria-label={`Approval of ${visible(call.tool)}`} tabIndex={alone ? 0 : -1} ref={box} onKeyDown={keys}>
    {alone && <div class="approval-head"><h2><Seen text={call.tool} /></h2><StateBadge of="awaiting_approval" />{call.requested_at && <span class="soft small">asked <Time at={call.requested_at} /></span>}</div>}
    {!decision && <p class="card-ask">{call.effect === "read_only" ? "Should this call be made, exactly as it stands here?" : "This call changes something. Should it be made, exactly as it stands here?"}</p>}
    {!decision && note}
    <div class="card-halves"><div class="stack">{question}<dl class="facts">{row("From", call.origin ?? known.origin)}{row("Effect", effectOf(call.effect ?? known.effect ?? "").name)}{row("Model", call.model)}{row("Key", alone && (call.principal || "none, the local user"))}{row("Asked because of", why)}{row("Expires", call.expires_at && <Time at={call.expires_at} due />)}</dl></div>
    <div class="stack"><Reading text={text} />
    {alone ? <h3>Arguments, written by the model</h3> : <h2 class="label">Arguments, written by the model</h2>}
    <Exact call={call} />
    <p class="meta">{isJSON(text) ? <>These are all {count(bytes, "byte")} of the arguments{bytes > 1500 ? ": scroll to read them to their end" : ""}.</> : <>{count(bytes, "byte")} of the arguments are shown.</>}{hidden ? ` Characters that cannot be seen are shown as escapes, in ${count(hidden, "place")}.` : ""}</p>
    {call.exact_arguments !== undefined && call.exact_arguments !== call.arguments && <details><summary class="small">What the model wrote before it was unwrapped</summary><JsonView text={call.arguments} exact label="As the model wrote it" /></details>}</div></div>
    {!decision && call.may_decide === false && <p class="soft">Your key may not decide about this call.</p>}
    {!decision && other && <div class="editor">
      <textarea ref={editor} key={mode} rows={other.rows} spellcheck={false} aria-label={other.label} placeholder={mode === "edit" ? "" : other.label} defaultValue={mode === "edit" ? writable(text) : ""} onInput={(e) => { if (mode === "deny") setCode(reasonOf(e.currentTarget.value).code); }} />
      {mode === "deny" && code && <p class="meta">The model gets <span class="mono">{code}</span></p>}
      <button type="button" class={mode === "deny" ? "danger" : ""} onClick={submit}>{other.submit}</button>
      <button type="button" class="quiet" onClick={back}>{other.back}</button>
    </div>}
    {!decision && !mode && call.may_decide !== false && <><div class="answers card-main">
      <button type="button" class="approve" disabled={!mayApprove} title={reading ? "What the run was asked is being read." : undefined} onClick={() => void post("approve", { scope })}>Approve</button>
      <button type="button" class="danger deny" onClick={() => void post("deny")}>Deny</button></div>
      <div class="answers card-others"><button type="button" class="quiet" data-mode="deny" onClick={() => choose("deny")}>Deny with a reason…</button>
      <button type="button" class="quiet change" data-mode="edit" disabled={!mayApprove} onClick={() => choose("edit")}>Edit…</button>
      <button type="button" class="quiet answer" data-mode="answer" onClick={() => choose("answer")}>Answer instead…</button>
      <label class="scope">Approve for <select value={scope} disabled={!mayApprove} onChange={(e) => setScope(e.currentTarget.value)}>{scopes.filter(([value]) => value !== "session" || call.session_id).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select></label>
    </div></>}
    <details class="card-more"><summary class="small">More about this call</summary><dl class="facts">
      {row("Labels", call.tool_labels?.join(" ") ?? known.labels)}
      {row("Digest", <><span class="mono"><Seen text={call.args_digest} /></span> <Copy text={call.args_digest} label="Copy digest" /></>)}
      {row("Run", alone && <Link to={`/runs/${enc(runId)}`}><Seen text={runId} /></Link>)}
    </dl></details>
    {status && !decision && <p class="card-status" role="alert">{visible(status)}</p>}
    {decision && <p class="meta card-decided" role="status"><Decided decision={decision} /></p>}
  </div>;
}
