// The conversation of a run: messages and tool calls in their order.

import { useMemo, useState } from "preact/hooks";
import { query } from "../api";
import { Badge, Copy, JsonView, Link, Pieces, Seen } from "../components/basics";
import { ResultView } from "../components/ResultView";
import { bytes, count, duration, words } from "../text/format";
import { pieces } from "../text/visible";
import { itemsOf, type Call } from "./items";
import type { RunEvent, StoredBlob } from "./types";

export function Conversation({ events, live, open }: { events: RunEvent[]; live: boolean; open?: (event: number) => void }) {
  const { items, history, text } = useMemo(() => itemsOf(events), [events]);
  const [unfolded, set] = useState(false);
  const from = unfolded ? 0 : history;
  return <ol class="run-items">
    {history > 0 && <li><button type="button" class="quiet small" aria-expanded={unfolded} onClick={() => set(!unfolded)}>{unfolded ? "Hide" : "Show"} {count(history, "earlier message or call", "earlier messages and calls")} of the conversation</button></li>}
    {items.slice(from).map((item, n) => { const i = from + n; return <li key={i} class={`run-item ${item.kind === "text" ? `says-${item.role}` : item.kind}${i < history ? " earlier" : ""}`}>
      {item.kind === "text" ? <>
        <div class="run-who"><b>{item.role}</b>{item.note && <Badge kind={item.note === "error" ? "bad" : ""}>{item.note}</Badge>}<Copy text={item.text} /><EventLink event={item.event} open={open} /></div>
        {item.role === "tool" ? <JsonView text={item.text} copy={false} label={`Result ${i + 1}`} /> : <div class="run-text" dir="auto"><Pieces cut={pieces(item.text, "\n\t")} /></div>}
      </> : item.kind === "call" ? <CallCard call={item.call} live={live} open={open} />
        : <p class={item.bad ? "run-note bad" : "run-note"}><Seen text={item.text} />{item.removed ? ` (${bytes(item.removed)})` : ""} <EventLink event={item.event} open={open} /></p>}
    </li>; })}
    {text && <li class="run-item says-assistant"><div class="run-who"><b>assistant</b><Badge kind="run">writing</Badge></div><div class="run-text" dir="auto"><Pieces cut={pieces(text, "\n\t")} /></div></li>}
  </ol>;
}

const filesOf = (blobs: unknown) => (blobs as StoredBlob[] | undefined)?.map((b) => ({ mediaType: b.media_type ?? "", url: b.data ? `data:${b.media_type ?? ""};base64,${b.data}` : b.url ?? "" }));

// EventLink leads to an event where there is a list of them.
const EventLink = ({ event, open }: { event: number; open?: (event: number) => void }) => open &&
  <button type="button" class="link small" onClick={() => open(event)} aria-label={`Event ${event}`}>#{event}</button>;

function CallCard({ call, live, open }: { call: Call; live: boolean; open?: (event: number) => void }) {
  const result = call.result?.data, done = call.executed?.data, decided = call.resolved?.data;
  const state = result ? (result.status === "error" ? "bad" : "ok") : call.stored ? (call.stored.is_error ? "bad" : "ok") : live ? "run" : "";
  const step = live && !result && call.progress?.data, said = call.result ? call.result.content?.result ?? "" : call.stored?.content;
  return <article class="card-box run-call" aria-label={`Call of ${call.name}`}>
    <div class="run-who"><b class="mono"><Seen text={call.name} /></b>
      <Badge kind={state}>{result ? (result.error_type ?? result.status) : call.stored ? (call.stored.is_error ? "error" : "ok") : call.asked && !decided ? "waits for an approval" : live ? "runs" : "no result"}</Badge>
      {done?.latency_ms !== undefined && <Badge>{duration(done.latency_ms)}</Badge>}
      {done?.cached && <Badge>from the cache</Badge>}
      {done?.attempts && done.attempts > 1 ? <Badge kind="wait">{done.attempts} attempts</Badge> : null}
      {done?.output_truncated && <Badge kind="wait">cut from {bytes(done.output_size_bytes ?? 0)}</Badge>}
      {result?.repaired && <Badge kind="wait">arguments repaired</Badge>}
      {result?.policy_decision && <Link class="policy-link" to={query("/policy", { tool: call.name, rule: result.policy_rule ?? "" })}><Badge kind={result.policy_decision === "deny" ? "bad" : ""}>policy: {result.policy_decision}{result.policy_rule ? `, ${result.policy_rule}` : ""}</Badge></Link>}
      {decided && <Badge kind={decided.decision === "denied" ? "bad" : "ok"}>{decided.decision} by {decided.by || "nobody"}</Badge>}
      {result?.limit && <Badge kind="wait">limit {result.limit}</Badge>}
      {call.planned?.data.args_schema_version && <Badge>schema {call.planned.data.args_schema_version}</Badge>}
      {done?.child_run_id && <Link to={`/runs/${done.child_run_id}`}>its run</Link>}
      <EventLink event={call.result?.event_id ?? call.event} open={open} />
    </div>
    {step && <div class="tool-progress"><progress aria-label={`Progress of ${call.id}`} max={step.total} value={step.total ? Math.min(step.done ?? 0, step.total) : undefined} /><span class="num">{step.done}{step.total ? ` of ${step.total}` : ""}</span>{call.progress?.content?.text && <Seen text={call.progress.content.text} />}</div>}
    <div class="run-halves even"><div><h2 class="label">Arguments</h2><JsonView text={call.args} label={`Arguments of ${call.id}`} exact /></div>
    {said !== undefined && <div><ResultView text={said} files={filesOf(call.result?.content?.blobs ?? call.stored?.blobs)} label="Result" name={`Result of ${call.id}`} /></div>}</div>
    {result?.cause && <p class="soft small">{words(result.error_type ?? "")}: <Seen text={result.cause} /></p>}
  </article>;
}
