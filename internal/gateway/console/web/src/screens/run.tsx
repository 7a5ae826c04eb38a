// One run: conversation, timeline, events and exchange, as they happen.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { enc, get, getText, now, query, send, type Refusal } from "../api";
import { Copy, Dialog, Empty, ErrorState, Link, Loading, PageHeader, Seen, StateBadge, Tabs, Time } from "../components/basics";
import { causeIn } from "../chat/cause";
import type { WaitingCall } from "../components/ApprovalCard";
import { CauseLines } from "../components/Cause";
import { questionOf } from "../run/items";
import { Conversation } from "../run/Conversation";
import { Events } from "../run/Events";
import { Exchange } from "../run/Exchange";
import { Timeline } from "../run/Timeline";
import { useEvents } from "../run/follow";
import { spansOf } from "../run/spans";
import { lasted, money, reasonOf, type Run, type RunEvent, type RunPage } from "../run/types";
import { download } from "../download";
import { useResource } from "../resource";
import { go, param, setParams } from "../router";
import { ofRun } from "../state";
import { bytes, count, duration } from "../text/format";
import { visible } from "../text/visible";
import type { ScreenProps } from ".";

const tabs = ["conversation", "timeline", "events", "exchange"] as const;
type Tab = (typeof tabs)[number];

// failedBefore returns the newest failed run that is older than a run, failedAfter the oldest one that is newer.
const failedBefore = async (run: Run) => (await get<RunPage>(query("api/runs", { status: "failed", until: run.started, limit: 1 }))).data[0];

async function failedAfter(run: Run): Promise<Run | undefined> {
  for (const hours of [1, 24, 24 * 30, undefined]) { // lists have the newest first: the end of a short one is near
    let found: Run | undefined, after: string | undefined;
    do {
      const page: RunPage = await get(query("api/runs", { status: "failed", since: run.started, until: hours && new Date(Date.parse(run.started) + hours * 36e5).toISOString(), limit: 200, after }));
      found = page.data.findLast((r) => r.run_id !== run.run_id) ?? found;
      after = page.next;
    } while (after);
    if (found) return found;
  }
  return undefined;
}

// Failed leads to the failed runs next to a run, which are looked for when they are asked for.
function Failed({ run }: { run: Run }) {
  const [note, set] = useState("");
  useEffect(() => set(""), [run.run_id]);
  const seek = (find: typeof failedAfter, none: string) => () => find(run).then((r) => r ? go(`/runs/${enc(r.run_id)}`) : set(none), (e: Error) => set(visible(e.message)));
  return <span class="run-failed" role="group" aria-label="Failed runs"><button type="button" class="link small" onClick={seek(failedBefore, "No earlier run failed.")}>‹ Previous failed</button><button type="button" class="link small" onClick={seek(failedAfter, "No later run failed.")}>Next failed ›</button><span class="soft small" role="status">{note}</span></span>;
}

// doing says what a run that goes on is doing: which model answers, which tools run or wait for an approval.
function doing(stored: RunEvent[]): string {
  const open = spansOf(stored).filter((s) => s.to === undefined), of = (kind: string, waits: boolean) => [...new Set(open.filter((s) => s.kind === kind && waits === (s.parts.at(-1)?.kind === "approval" && s.parts.at(-1)?.to === undefined)).map((s) => visible(s.label)))].join(", ");
  const model = of("model", false), tools = of("tool", false), asks = of("tool", true);
  return [model && `${model} is answering`, tools && `${tools} ${tools.includes(", ") ? "run" : "runs"}`, asks && `${asks} ${asks.includes(", ") ? "await" : "awaits"} an approval`].filter(Boolean).join("; ");
}

export default function RunScreen({ params }: ScreenProps) {
  const id = params.id!;
  const [paused, setPaused] = useState(false);
  const [asking, setAsking] = useState(false);
  const [failed, setFailed] = useState<Error>();
  const { events, error, over, held } = useEvents(id, paused);
  const finished = events.some((e) => e.type === "RunFinished");
  const last = events.findLast((e) => e.event_id !== undefined);
  const { data: run, error: refused, reload } = useResource<Run & { open_calls?: WaitingCall[] }>(`api/runs/${enc(id)}`);
  useEffect(() => { if (last?.type.startsWith("Run")) reload(); }, [last?.event_id]);
  const [, tick] = useState(0);
  useEffect(() => {
    if (finished) return;
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [finished]);
  const page = useRef<HTMLDivElement>(null), atEnd = useRef(true);
  useEffect(() => { // a run that goes on is followed to its end, until the person scrolls away from it
    if (atEnd.current && run?.status === "running" && page.current && param("tab") === "") page.current.scrollTop = page.current.scrollHeight;
  }, [events]);
  const stored = useMemo(() => events.filter((e) => e.event_id !== undefined), [events]);
  const tab = (tabs as readonly string[]).includes(param("tab")) ? param("tab") as Tab : "conversation";
  const selected = Number(param("event")) || undefined;
  const select = (event: number | undefined) => setParams({ event: event ? String(event) : "" });
  const show = (next: Tab, event?: number) => setParams({ tab: next === "conversation" ? "" : next, event: event ? String(event) : "" });

  const missing = (refused as Refusal | undefined)?.status;
  if (missing === 404 || missing === 410) return <div class="page"><PageHeader title="Run" back={{ to: "/runs", label: "Runs" }} />
    <Empty title={missing === 410 ? "This run was removed." : "There is no such run, or it belongs to another key."}>{refused!.message}</Empty></div>;
  if (!run) return <div class="page"><PageHeader title="Run" back={{ to: "/runs", label: "Runs" }} />{refused ? <ErrorState error={refused} retry={reload} /> : <Loading />}</div>;
  const question = questionOf(stored), cause = run.status === "failed" ? causeIn(stored) : undefined;
  const live = run.status === "running" || run.status === "parked";
  return <div class="page run" ref={page} onScroll={(e) => { const el = e.currentTarget; atEnd.current = el.scrollTop + el.clientHeight > el.scrollHeight - 40; }}>
    <PageHeader title={question ? question.slice(0, 120) : `Run of ${run.target || run.model}`} back={{ to: "/runs", label: "Runs" }} beside={<Failed run={run} />} note={<><span class="mono">{run.run_id}</span> <Copy text={run.run_id} label="Copy id" /></>}>
      <Link class="button" to={`/runs/${enc(id)}/replay`}>Run again…</Link>
      <button type="button" class="quiet" onClick={() => { getText(`api/runs/${enc(id)}/export`).then((text) => download(`${id}.jsonl`, "application/x-ndjson", text), setFailed); }}>Export</button>
    </PageHeader>
    {live && <div class={`run-live${run.status === "parked" ? " waits" : ""}`} role="group" aria-label="The run goes on"><span class="run-doing"><StateBadge of={ofRun(run)}><span class="num" aria-hidden="true"> · {duration(Math.round(lasted(run, now()) / 1000) * 1000)}</span></StateBadge> <span>{doing(stored)}</span></span>
      <span class="answers"><button type="button" class="quiet small" aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? `Follow${held ? ` (${held} more)` : ""}` : "Pause"}</button>
        <button type="button" class="danger small" onClick={() => setAsking(true)}>Stop the run</button></span></div>}
    <dl class="run-facts">
      {!live && <div><dt>Status</dt><dd><StateBadge of={ofRun(run)} /> <Seen text={reasonOf(run)} /></dd></div>}
      <div><dt>Model</dt><dd><Seen text={run.target || run.model} /></dd></div>
      {run.session_id && <div><dt>Chat</dt><dd><Link to={`/chats/${enc(run.session_id)}`}>Open the chat</Link></dd></div>}
      <div><dt>Started</dt><dd><Time at={run.started} /></dd></div>
      {!live && <div><dt>Duration</dt><dd class="num">{duration(lasted(run, now()))}</dd></div>}
      <div><dt>Turns, calls</dt><dd class="num">{run.turns}, {run.tool_calls}</dd></div>
      <div><dt>Tokens</dt><dd class="num">{run.usage.input_tokens.toLocaleString()} in, {run.usage.output_tokens.toLocaleString()} out</dd></div>
      {run.cost ? <div><dt>Cost</dt><dd class="num">{money(run.cost)}</dd></div> : null}
      {run.principal && <div><dt>Key</dt><dd><Seen text={run.principal} /></dd></div>}
      {run.replays && <div><dt>Repeats</dt><dd><Link to={`/runs/${enc(run.replays)}/replay?with=${enc(id)}`}>Compare with the recorded run</Link></dd></div>}
      {run.parent_run_id && <div><dt>Called by</dt><dd><Link to={`/runs/${enc(run.parent_run_id)}`}>a run</Link></dd></div>}
    </dl>
    {cause && <div class="problem run-why" role="note"><CauseLines cause={cause} /></div>}
    {failed && <ErrorState error={failed} />}
    {error && <ErrorState error={error} />}
    <Tabs label="Views of the run" chosen={tab} choose={(t) => show(t, selected)} tabs={[
      { id: "conversation", label: "Conversation" }, { id: "timeline", label: "Timeline" }, { id: "events", label: `Events (${stored.length})` }, { id: "exchange", label: "Exchange" },
    ]}>
      {events.length === 0 ? <Loading what={over ? "No events" : "Reading the events"} />
        : tab === "timeline" ? <Timeline events={stored} live={live && !finished} selected={selected} select={select} open={(e) => show("events", e)} />
        : tab === "events" ? <Events events={stored} selected={selected} select={select} size={bytes(stored.reduce((n, e) => n + e.raw.length, 0))} />
        : tab === "exchange" ? <Exchange events={stored} />
        : <Conversation events={events} live={live && !finished} open={(e) => show("events", e)} runId={id} waiting={run.open_calls?.filter((c) => c.state === "awaiting_approval")} decided={reload} />}
    </Tabs>
    {asking && <Dialog title="Stop this run?" close={() => setAsking(false)}>
      <p>{count(run.tool_calls, "call")} so far. What was done stays done; open calls are answered cancelled.</p>
      <div class="answers"><button type="button" class="danger" onClick={() => { setAsking(false); send("POST", `api/runs/${enc(id)}/cancel`).then(reload, setFailed); }}>Stop the run</button>
        <button type="button" class="quiet" onClick={() => setAsking(false)}>Let it go on</button></div>
    </Dialog>}
  </div>;
}
