// The conversation of a run: messages and tool calls in their order.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now, query } from "../api";
import { ApprovalCard, type WaitingCall } from "../components/ApprovalCard";
import { Badge, Copy, JsonView, Link, Pieces, Seen, StateBadge } from "../components/basics";
import { CallCard, failureOf, inOneLine } from "../components/CallCard";
import { Markdown } from "../components/Markdown";
import type { ToolsDigest } from "../../events";
import { bytes, count, duration, measured, notReported, unmarked, words } from "../text/format";
import { pieces, visible } from "../text/visible";
import { stateOf } from "../state";
import { useWide } from "../wide";
import { itemsOf, modelFailure, ofCall, type Call, type Item } from "./items";
import { filesOf, micros, money, type RunEvent } from "./types";

const manyCalls = 8; // beyond which calls are closed at first

interface Props {
  events: RunEvent[];
  live: boolean;
  open?: (event: number) => void; // shows an event, where there is a list of them
  runId?: string;
  waiting?: WaitingCall[]; // calls of the run that the person may decide about here
  decided?: () => void;
}

export function Conversation({ events, live, open, runId, waiting, decided }: Props) {
  const { items, history, system, text, thought, writing } = useMemo(() => itemsOf(events), [events]);
  const [unfolded, set] = useState(false), [fold, setFold] = useState<{ open: boolean }>();
  const list = useRef<HTMLOListElement>(null), wide = useWide("(min-width: 80rem)"), calls = items.filter((i, n) => i.kind === "call" && n >= (unfolded ? 0 : history)).length;
  const from = unfolded ? 0 : history, many = items.filter((i) => i.kind === "call").length > manyCalls;
  const outlined = wide && items.length - from >= leastOutlined;
  return <div class={`run-talk${outlined ? " outlined" : ""}`}><div class="run-said"><Asked started={events.find((e) => e.type === "RunStarted")} system={system} />
    {calls > 1 && <p class="answers run-fold"><button type="button" class="quiet small" onClick={() => setFold({ open: true })}>Open all calls</button><button type="button" class="quiet small" onClick={() => setFold({ open: false })}>Close all calls</button></p>}<ol class="run-items" ref={list}>
    {history > 0 && <li><button type="button" class="quiet small" aria-expanded={unfolded} onClick={() => set(!unfolded)}>{unfolded ? "Hide" : "Show"} {count(history, "earlier message or call", "earlier messages and calls")} of the conversation</button></li>}
    {items.slice(from).map((item, n) => { const i = from + n; return <li key={i} data-item={i} class={`run-item ${item.kind === "text" ? `says-${item.role}` : item.kind}${i < history ? " earlier" : ""}`}>
      {item.step && <Step event={item.step} attempts={attemptsOf(item)} />}
      {item.kind === "text" ? <Said text={item.text} role={item.role} note={item.note} at={i}><EventLink event={item.event} open={open} /></Said>
        : item.kind === "call" ? <RunCall call={item.call} live={live} closed={many} fold={fold} open={open} runId={runId} waiting={waiting?.find((w) => w.tool_call_id === item.call.id)} decided={decided} />
        : attemptsOf(item) > 1 ? <Attempts text={item.text} attempts={item.attempts!} open={open} />
        : <p class={item.bad ? "run-note bad" : "run-note"}><Seen text={item.text} />{item.removed ? ` (${bytes(item.removed)})` : ""} <EventLink event={item.event} open={open} /></p>}
    </li>; })}
    {thought && <li class="run-item says-assistant"><div class="run-who"><b>assistant</b><Badge>reasoning</Badge></div><div class="run-text soft" dir="auto"><Pieces cut={pieces(thought, "\n\t")} /></div></li>}
    {(text || writing) && <li class="run-item says-assistant"><div class="run-who"><b>assistant</b><Badge kind="run">writing{writing && " a call of "}{writing}</Badge></div>{text && <div class="run-text"><Markdown text={text} /></div>}</li>}
  </ol></div>{outlined && <Outline items={items} from={from} live={live} show={(i) => { const item = list.current?.querySelector<HTMLElement>(`[data-item="${i}"]`); item?.scrollIntoView({ block: "start" }); item?.querySelector<HTMLElement>("summary, button, a")?.focus({ preventScroll: true }); }} />}</div>;
}

const leastOutlined = 4; // items beside which their outline stands

// Outline names what was said and called, each a line that leads to it.
function Outline({ items, from, live, show }: { items: Item[]; from: number; live: boolean; show: (item: number) => void }) {
  const line = (i: Item) => {
    if (i.kind === "note") return <span class={i.bad ? "outline-text bad" : "outline-text soft"}><Seen text={i.text} /></span>;
    if (i.kind === "text") return <><b>{i.note === "reasoning" ? "reasoning" : i.role}</b> <span class="outline-text soft" dir="auto"><Seen text={unmarked(i.text.slice(0, 200)).slice(0, 90)} /></span></>;
    const { kind, sign } = stateOf(ofCall(i.call, live)), ms = i.call.executed?.data.latency_ms;
    return <><b class="mono"><Seen text={i.call.name} /></b> <span class="outline-text soft">{inOneLine(i.call.args).slice(0, 90)}</span><span class={`outline-state ${kind}`}>{sign === "✓" ? "" : sign}</span>{ms !== undefined && <span class="soft num">{measured(ms)}</span>}</>;
  };
  return <nav class="run-outline" aria-label="Outline"><h2 class="label">Outline</h2><ol>{items.slice(from).map((i, n) => <li key={from + n} class={i.kind === "call" ? "inner" : ""}>{i.step && i.step.turn > 0 && <span class="outline-turn soft num">{turnOf(i.step, attemptsOf(i))}{attemptsOf(i) < 2 && ` · ${measured(i.step.data.latency_ms ?? 0)}`}</span>}<button type="button" class="plain" onClick={() => show(from + n)}>{line(i)}</button></li>)}</ol></nav>;
}

const attemptsOf = (item: Item) => item.kind === "note" ? item.attempts?.length ?? 0 : 0;

// Attempts are the model calls of a turn that failed one after another, in one line that opens to each of them.
function Attempts({ text, attempts, open }: { text: string; attempts: RunEvent[]; open?: (event: number) => void }) {
  const several = new Set(attempts.map((e) => e.data.model)).size > 1;
  return <details class="run-note bad"><summary><Seen text={text} /></summary><ol class="run-attempts">{attempts.map((e) => <li key={e.event_id}><span class="num">Attempt {e.data.attempt}, {measured(e.data.latency_ms ?? 0)}</span>{several && <> <Seen text={e.data.model ?? ""} /></>}: <Seen text={modelFailure(e)} /> <EventLink event={e.event_id ?? 0} open={open} /></li>)}</ol></details>;
}

// turnOf names a model call by its turn, and its attempt if it is not the only one.
const turnOf = ({ turn, data: d }: RunEvent, attempts: number) => `Turn ${turn}${attempts > 1 ? `, ${attempts} attempts` : (d.attempt ?? 1) > 1 ? `, attempt ${d.attempt}` : ""}`;

// Asked is what the model was asked with: settings, limits, and the system text.
function Asked({ started, system }: { started?: RunEvent; system: string }) {
  const d = started?.data, input = started?.content?.input as { sampling?: Record<string, unknown> } | undefined, limits = d?.limits, tools = d?.tools as ToolsDigest | undefined;
  if (!d?.model && !system) return null;
  const set = Object.entries(input?.sampling ?? {}).map(([name, v]) => `${words(name)} ${visible(typeof v === "string" ? v : JSON.stringify(v))}`);
  return <details class="card-box run-asked"><summary>Settings{system && " and system text"} <span class="soft small">{[d?.model && visible(d.model), tools && count(tools.count, "tool"), ...set].filter(Boolean).join(" · ")}</span></summary>
    {d?.model && <dl class="facts"><dt>Model</dt><dd><Seen text={`${d.model} (${d.provider ?? ""})`} /></dd><dt>Parameters</dt><dd>{set.join(", ") || "those of the model server"}</dd>
      <dt>Tools</dt><dd>{tools?.count ?? 0} offered, {words(d.tool_use_mode ?? "")}, called in the form {words(d.dialect ?? "")}{tools?.withheld_count ? `; ${tools.withheld_count} withheld by policy` : ""}</dd>
      {limits && <><dt>Limits</dt><dd>{count(limits.max_iterations, "model call")}, {count(limits.max_total_tool_calls, "tool call")}, {duration(limits.run_timeout_ms)}</dd></>}</dl>}
    {system && <><h2 class="label">System text</h2><div class="run-text plain" dir="auto"><Pieces cut={pieces(system, "\n\t")} /></div></>}
  </details>;
}

// Step is what a model call took, above the first thing that it said.
function Step({ event, attempts }: { event: RunEvent; attempts: number }) {
  const d = event.data, u = d.usage;
  return <p class="meta num run-step"><span>{turnOf(event, attempts)}</span><Seen text={d.model ?? ""} />
    {u && u.input_tokens + u.output_tokens > 0 ? <span>{u.input_tokens.toLocaleString()} tokens in{u.cached_tokens ? ` (${u.cached_tokens.toLocaleString()} cached)` : ""}, {u.output_tokens.toLocaleString()} out{u.reasoning_tokens ? ` (${u.reasoning_tokens.toLocaleString()} reasoning)` : ""}</span> : d.status === "success" && <span>tokens {notReported}</span>}
    {attempts < 2 && <span>{measured(d.latency_ms ?? 0)}{d.first_token_ms ? `, first token after ${measured(d.first_token_ms)}` : ""}</span>}{d.cost ? <span>{money(d.cost)}</span> : null}</p>;
}

// Said is one message. What the model writes is shown as Markdown, or as it stands.
function Said({ text, role, note, at, children }: { text: string; role: string; note?: string; at: number; children: preact.ComponentChildren }) {
  const [raw, set] = useState(false), markdown = role === "assistant" && !note;
  return <>
    <div class="run-who"><b>{role}</b>{note === "error" ? <StateBadge of="failed" /> : note && <Badge>{note}</Badge>}<span class="run-acts">{markdown && <button type="button" class="quiet small" aria-pressed={raw} onClick={() => set(!raw)}>{raw ? "Formatted" : "Raw"}</button>}<Copy text={text} />{children}</span></div>
    {role === "tool" ? <JsonView text={text} copy={false} label={`Result ${at + 1}`} /> : markdown && !raw ? <div class="run-text"><Markdown text={text} /></div> : <div class="run-text plain" dir="auto"><Pieces cut={pieces(text, "\n\t")} /></div>}
  </>;
}

// EventLink leads to an event where there is a list of them.
const EventLink = ({ event, open }: { event: number; open?: (event: number) => void }) => open &&
  <button type="button" class="link small" onClick={() => open(event)} aria-label={`Event ${event}`}>#{event}</button>;

function RunCall({ call, live, closed, fold, open, runId, waiting, decided }: { call: Call; live: boolean; closed: boolean; fold?: { open: boolean } } & Omit<Props, "events" | "waiting"> & { waiting?: WaitingCall }) {
  const [touched, touch] = useState<boolean>();
  useEffect(() => { if (fold) touch(fold.open); }, [fold]);
  const result = call.result?.data, done = call.executed?.data, by = call.resolved?.data, step = call.progress, state = ofCall(call, live);
  const asks = state === "awaiting_approval" && waiting && runId, began = (call.resolved ?? call.planned)?.time, said = call.result ? call.result.content?.result ?? "" : call.stored?.content;
  return <article class="run-call" aria-label={`Call of ${call.name}`}>
    <CallCard open={Boolean(asks) || (touched ?? !closed)} toggle={touch} now={now}
      call={{ id: call.id, name: call.name, args: call.args, state, ms: done?.latency_ms, since: began ? micros(began) / 1000 : undefined, result: said, files: filesOf(call.result?.content?.blobs ?? call.stored?.blobs),
        progress: step && { done: step.data.done ?? 0, total: step.data.total, message: step.content?.text }, why: result?.cause ? `${words(result.error_type ?? "")}: ${failureOf(result.cause)}` : said && failureOf(said) }}
      instead={asks ? <ApprovalCard key={waiting.args_digest} runId={runId} call={waiting} onDecided={decided} /> : undefined}
      facts={<div class="run-who">
        {result?.error_type && <Badge kind="bad">{words(result.error_type)}</Badge>}
        {done?.cached && <Badge>from the cache</Badge>}
        {done?.attempts && done.attempts > 1 ? <Badge kind="wait">{done.attempts} attempts</Badge> : null}
        {done?.output_truncated && <Badge kind="wait">cut from {bytes(done.output_size_bytes ?? 0)}</Badge>}
        {result?.repaired && <Badge kind="wait">arguments repaired</Badge>}
        {result?.policy_decision && <Link class="policy-link" to={query("/policy", { tool: call.name, rule: result.policy_rule ?? "" })}><Badge kind={result.policy_decision === "deny" ? "bad" : ""}>policy: {result.policy_decision}{result.policy_rule ? `, ${result.policy_rule}` : ""}</Badge></Link>}
        {by && <StateBadge of={by.decision ?? ""}> by {by.by || "nobody"}</StateBadge>}
        {result?.limit && <Badge kind="wait">limit {result.limit}</Badge>}
        {call.planned?.data.args_schema_version && <Badge>schema {call.planned.data.args_schema_version}</Badge>}
        {done?.child_run_id && <Link to={`/runs/${done.child_run_id}`}>its run</Link>}
        <EventLink event={call.result?.event_id ?? call.event} open={open} />
      </div>} />
  </article>;
}
