// The conversation of a run: messages and tool calls in their order.

import { useMemo } from "preact/hooks";
import { Badge, Copy, JsonView, Link, Pieces, Seen } from "../components/basics";
import { bytes, duration, words } from "../text/format";
import { pieces } from "../text/visible";
import { itemsOf, type Call } from "./items";
import type { RunEvent } from "./types";

export function Conversation({ events, live, open }: { events: RunEvent[]; live: boolean; open?: (event: number) => void }) {
  const { items, text } = useMemo(() => itemsOf(events), [events]);
  return <ol class="run-items">
    {items.map((item, i) => <li key={i} class={`run-item ${item.kind === "text" ? item.role : item.kind}`}>
      {item.kind === "text" ? <>
        <div class="run-who"><b>{item.role}</b>{item.note && <Badge kind={item.note === "error" ? "bad" : ""}>{item.note}</Badge>}<Copy text={item.text} /><EventLink event={item.event} open={open} /></div>
        {item.role === "tool" ? <JsonView text={item.text} copy={false} label={`Result ${i + 1}`} /> : <div class="run-text"><Pieces cut={pieces(item.text, "\n\t")} /></div>}
      </> : item.kind === "call" ? <CallCard call={item.call} live={live} open={open} />
        : <p class={item.bad ? "run-note bad" : "run-note"}><Seen text={item.text} />{item.removed ? ` (${bytes(item.removed)})` : ""} <EventLink event={item.event} open={open} /></p>}
    </li>)}
    {text && <li class="run-item assistant"><div class="run-who"><b>assistant</b><Badge kind="run">writing</Badge></div><div class="run-text"><Pieces cut={pieces(text, "\n\t")} /></div></li>}
  </ol>;
}

// EventLink leads to an event where there is a list of them.
const EventLink = ({ event, open }: { event: number; open?: (event: number) => void }) => open &&
  <button type="button" class="link small" onClick={() => open(event)} aria-label={`Event ${event}`}>#{event}</button>;

function CallCard({ call, live, open }: { call: Call; live: boolean; open?: (event: number) => void }) {
  const result = call.result?.data, done = call.executed?.data, decided = call.resolved?.data;
  const state = result ? (result.status === "error" ? "bad" : "ok") : live ? "run" : "";
  return <article class="card-box run-call" aria-label={`Call of ${call.name}`}>
    <div class="run-who"><b class="mono"><Seen text={call.name} /></b>
      <Badge kind={state}>{result ? (result.error_type ?? result.status) : call.asked && !decided ? "waits for an approval" : live ? "runs" : "no result"}</Badge>
      {done?.latency_ms !== undefined && <Badge>{duration(done.latency_ms)}</Badge>}
      {done?.cached && <Badge>from the cache</Badge>}
      {done?.attempts && done.attempts > 1 ? <Badge kind="wait">{done.attempts} attempts</Badge> : null}
      {done?.output_truncated && <Badge kind="wait">cut from {bytes(done.output_size_bytes ?? 0)}</Badge>}
      {result?.repaired && <Badge kind="wait">arguments repaired</Badge>}
      {result?.policy_decision && <Badge kind={result.policy_decision === "deny" ? "bad" : ""}>policy: {result.policy_decision}{result.policy_rule ? `, ${result.policy_rule}` : ""}</Badge>}
      {decided && <Badge kind={decided.decision === "denied" ? "bad" : "ok"}>{decided.decision} by {decided.by || "nobody"}</Badge>}
      {result?.limit && <Badge kind="wait">limit {result.limit}</Badge>}
      {call.planned?.data.args_schema_version && <Badge>schema {call.planned.data.args_schema_version}</Badge>}
      {done?.child_run_id && <Link to={`/runs/${done.child_run_id}`}>its run</Link>}
      <EventLink event={call.result?.event_id ?? call.event} open={open} />
    </div>
    <JsonView text={call.args} label={`Arguments of ${call.id}`} exact />
    {call.result && <JsonView text={call.result.content?.result ?? ""} label={`Result of ${call.id}`} class="result" />}
    {result?.cause && <p class="soft small">{words(result.error_type ?? "")}: <Seen text={result.cause} /></p>}
  </article>;
}
