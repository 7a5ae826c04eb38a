// One run: conversation, timeline, events and exchange, as they happen.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { enc, get, getText, now, query, send, type Refusal } from "../api";
import { announce, Copy, Dialog, Empty, ErrorState, Link, Loading, PageHeader, Seen, StateBadge, Tabs, Time } from "../components/basics";
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
import { bytes, count, duration, inAndOut, measured } from "../text/format";
import { visible } from "../text/visible";
import type { ScreenProps } from ".";

const tabs = ["conversation", "timeline", "events", "exchange"] as const;
type Tab = (typeof tabs)[number];

// A List has the filters of the list of runs that a run was opened from; the address has them as list.
type List = Record<string, string>;

// before returns the newest run of a list that is older than a run, after the oldest one that is newer.
async function before(run: Run, list: List): Promise<Run | undefined> {
  let page: RunPage | undefined;
  do page = await get<RunPage>(query("api/runs", { ...list, until: run.started, limit: 1, after: page?.next })); while (!page.data[0] && page.next);
  return page.data[0];
}

async function after(run: Run, list: List): Promise<Run | undefined> {
  for (const minutes of [1, 60, 24 * 60, 30 * 24 * 60, undefined]) { // lists have the newest first: the end of a short one is near
    const until = minutes && new Date(Date.parse(run.started) + minutes * 6e4).toISOString();
    let found: Run | undefined, page: RunPage | undefined;
    do {
      page = await get<RunPage>(query("api/runs", { ...list, since: run.started, until: !until || Date.parse(list.until ?? "") < Date.parse(until) ? list.until : until, limit: 200, after: page?.next }));
      found = page.data.findLast((r) => r.run_id !== run.run_id) ?? found;
    } while (page.next);
    if (found) return found;
  }
  return undefined;
}

// Beside leads to the runs next to a run in its list, which are looked for when they are asked for.
function Beside({ run, list }: { run: Run; list: List }) {
  const [note, set] = useState(""), failed = list.status === "failed" ? " failed" : "";
  useEffect(() => set(""), [run.run_id]);
  const seek = (find: typeof after, none: string) => () => find(run, list).then((r) => r ? go(query(`/runs/${enc(r.run_id)}`, { list: param("list"), tab: param("tab") })) : set(none), (e: Error) => set(visible(e.message)));
  return <span class="run-beside" role="group" aria-label="Runs of the list"><button type="button" class="link small" onClick={seek(before, "This is the first run of the list.")}>‹ Previous{failed}</button><button type="button" class="link small" onClick={seek(after, "This is the last run of the list.")}>Next{failed} ›</button><span class="soft small" role="status">{note}</span></span>;
}

// doing says what a run that goes on is doing: which model answers and how much of it is there, which tools run and how far they have come, or wait for an approval.
function doing(events: RunEvent[]): string {
  const spans = spansOf(events), written = events.reduce((n, e) => n + (e.event_id === undefined && (e.type === "TextDelta" || e.type === "CommentaryDelta") ? e.content?.text?.length ?? 0 : 0), 0);
  const open = spans.filter((s) => s.to === undefined), of = (kind: string, waits: boolean) => [...new Set(open.filter((s) => s.kind === kind && waits === (s.parts.at(-1)?.kind === "approval" && s.parts.at(-1)?.to === undefined)).map((s) => `${visible(s.label)}${s.progress?.total && spans.filter((o) => o.label === s.label && o.to === undefined).length === 1 ? ` (${s.progress.done.toLocaleString()} of ${s.progress.total.toLocaleString()})` : ""}`))].join(", ");
  const model = of("model", false), tools = of("tool", false), asks = of("tool", true);
  return [model && `${model} is answering${written ? `, ${count(written, "character")} so far` : ""}`, tools && `${tools} ${tools.includes(", ") ? "run" : "runs"}`, asks && `${asks} ${asks.includes(", ") ? "await" : "awaits"} an approval`].filter(Boolean).join("; ");
}

export default function RunScreen({ params }: ScreenProps) {
  const id = params.id!;
  const [paused, setPaused] = useState(false);
  const [asking, setAsking] = useState<"" | "stop" | "delete">("");
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
  const page = useRef<HTMLDivElement>(null), atEnd = useRef(true), [behind, setBehind] = useState(false);
  const look = () => {
    const el = page.current!;
    atEnd.current = el.scrollTop + el.clientHeight > el.scrollHeight - 40;
    setBehind(!atEnd.current);
  };
  useEffect(() => { // a run that goes on is followed to its end, until the person scrolls away from it
    if (atEnd.current && run?.status === "running" && page.current && param("tab") === "") page.current.scrollTop = page.current.scrollHeight;
  }, [events]);
  const stored = useMemo(() => events.filter((e) => e.event_id !== undefined), [events]);
  const tab = (tabs as readonly string[]).includes(param("tab")) ? param("tab") as Tab : "conversation";
  const selected = Number(param("event")) || undefined;
  const select = (event: number | undefined) => setParams({ event: event ? String(event) : "" });
  const show = (next: Tab, event?: number) => setParams({ tab: next === "conversation" ? "" : next, event: event ? String(event) : "" });

  const list = param("list"), back = { to: list ? `/runs?${list}` : "/runs", label: "Runs" };
  const missing = (refused as Refusal | undefined)?.status;
  if (missing === 404 || missing === 410) return <div class="page"><PageHeader title="Run" back={back} />
    <Empty title={missing === 410 ? "This run was removed." : "There is no such run, or it belongs to another key."}>{refused!.message}</Empty></div>;
  if (!run) return <div class="page"><PageHeader title="Run" back={back} />{refused ? <ErrorState error={refused} retry={reload} /> : <Loading />}</div>;
  const question = questionOf(stored), cause = run.status === "failed" ? causeIn(stored) : undefined;
  const live = run.status === "running" || run.status === "parked", ended = stored.filter((e) => e.type === "ModelCallFinished"), answered = ended.some((e) => e.data.status === "success"), sum = (of: "input_tokens" | "output_tokens") => ended.reduce((n, e) => n + (e.data.usage?.[of] ?? 0), 0);
  const told = live ? { turns: last?.turn ?? run.turns, calls: stored.filter((e) => e.type === "ToolCallPlanned").length, input: sum("input_tokens"), output: sum("output_tokens") } : { turns: run.turns, calls: run.tool_calls, input: run.usage.input_tokens, output: run.usage.output_tokens };
  return <div class="page run" ref={page} onScroll={look}>
    <PageHeader title={question ? question.slice(0, 120) : `Run of ${run.target || run.model}`} back={back} beside={<Beside run={run} list={Object.fromEntries(new URLSearchParams(list))} />} note={<><span class="mono">{run.run_id}</span> <Copy text={run.run_id} label="Copy id" /></>}>
      <Link class="button" to={`/runs/${enc(id)}/replay`}>Run again…</Link>
      <button type="button" class="quiet" onClick={() => { getText(`api/runs/${enc(id)}/export`).then((text) => download(`${id}.jsonl`, "application/x-ndjson", text), setFailed); }}>Export</button>
      {run.status !== "running" && <button type="button" class="quiet" onClick={() => setAsking("delete")}>Delete</button>}
    </PageHeader>
    {live && <div class={`run-live${run.status === "parked" ? " waits" : ""}`} role="group" aria-label="The run goes on"><span class="run-doing"><StateBadge of={ofRun(run)}><span class="num" aria-hidden="true"> · {duration(Math.round(lasted(run, now()) / 1000) * 1000)}</span></StateBadge> <span>{doing(events)}</span></span>
      <span class="answers">{behind && tab === "conversation" && run.status === "running" && <button type="button" class="quiet small" onClick={() => { page.current!.scrollTop = page.current!.scrollHeight; }}>↓ Newest</button>}<button type="button" class="quiet small" aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? `Follow${held ? ` (${held} more)` : ""}` : "Pause following"}</button>
        <button type="button" class="danger small" onClick={() => setAsking("stop")}>Stop the run</button></span></div>}
    <dl class="run-facts">
      {!live && <div><dt>Status</dt><dd><StateBadge of={ofRun(run)} /> <Seen text={reasonOf(run)} /></dd></div>}
      <div><dt>Model</dt><dd><Seen text={run.target || run.model} /></dd></div>
      {run.session_id && <div><dt>Chat</dt><dd><Link to={`/chats/${enc(run.session_id)}`}>Open the chat</Link></dd></div>}
      <div><dt>Started</dt><dd><Time at={run.started} /></dd></div>
      {!live && <div><dt>Duration</dt><dd class="num">{measured(lasted(run, now()))}</dd></div>}
      <div><dt>Turns, calls</dt><dd class="num">{told.turns}, {told.calls}</dd></div>
      <div><dt>Tokens</dt><dd class="num">{told.input + told.output === 0 && stored.length > 0 && !answered ? live ? "none yet" : "none" : inAndOut({ input_tokens: told.input, output_tokens: told.output })}</dd></div>
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
        : tab === "timeline" ? <Timeline events={events} live={live && !finished} selected={selected} select={select} open={(e) => show("events", e)} />
        : tab === "events" ? <Events events={stored} selected={selected} select={select} size={bytes(stored.reduce((n, e) => n + e.raw.length, 0))} />
        : tab === "exchange" ? <Exchange events={stored} />
        : <Conversation events={events} live={live && !finished} open={(e) => show("events", e)} runId={id} waiting={run.open_calls?.filter((c) => c.state === "awaiting_approval")} decided={reload} />}
    </Tabs>
    {asking === "stop" && <Dialog title="Stop this run?" close={() => setAsking("")}>
      <p>{count(run.tool_calls, "call")} so far. What was done stays done; open calls are answered cancelled.</p>
      <div class="answers"><button type="button" class="danger" onClick={() => { setAsking(""); send("POST", `api/runs/${enc(id)}/cancel`).then(reload, setFailed); }}>Stop the run</button>
        <button type="button" class="quiet" onClick={() => setAsking("")}>Let it go on</button></div>
    </Dialog>}
    {asking === "delete" && <Dialog title="Delete this run?" close={() => setAsking("")}>
      <p>The gateway removes its events, messages and results, for good. Lines of the audit log stay.</p>
      <div class="answers"><button type="button" class="danger" onClick={() => { setAsking(""); send("DELETE", `api/runs/${enc(id)}`).then(() => { announce("The run is deleted."); go(back.to); }, setFailed); }}>Delete for good</button>
        <button type="button" class="quiet" onClick={() => setAsking("")}>Keep it</button></div>
    </Dialog>}
  </div>;
}
