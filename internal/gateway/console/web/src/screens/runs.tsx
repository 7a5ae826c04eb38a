// All runs, the newest first, with filters in the address.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { enc, get, isAbort, now, query, send } from "../api";
import { announce, Badge, Copy, Dialog, Empty, ErrorState, Link, Loading, PageHeader, Seen, StateBadge, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { day, TimeRange } from "../components/TimeRange";
import { useResource } from "../resource";
import { go, param, place, setParams } from "../router";
import { lasted, money, newer, reasonOf, type Run, type RunPage } from "../run/types";
import { Chosen } from "../run/Chosen";
import { Facet } from "../run/Facet";
import { dropView, keepView, views as named } from "../run/views";
import { ofRun, stateOf } from "../state";
import { count, measured, notReported, unmarked, words } from "../text/format";
import { visible } from "../text/visible";
import { useWide } from "../wide";

const filters = ["status", "reason", "error_code", "tool", "model", "principal", "text", "since", "until", "session_id"];
const pageSize = 200, every = 3000; // ms
const mostSorted = 2000; // runs that are loaded to be sorted

const views = (): [label: string, to: string][] => [["All", "/runs"], ["Running", "/runs?status=running"], ["Waiting", "/runs?status=parked"], ["Failed today", "/runs?status=failed&since=24h"], ["Yesterday", query("/runs", { since: day(1), until: day(0) })]];
const statuses = ["running", "parked", "completed", "limited", "cancelled", "failed"];
const reasons = ["answered", "client_tool_calls", "awaiting_approval", "awaiting_tool_results", "max_iterations", "max_total_tool_calls", "tool_loop", "run_timeout",
  "budget_exceeded", "budget_exhausted", "no_tool_calls", "invalid_answer", "empty_answer", "tool_error", "unknown_tool", "content_filter", "length", "upstream_error", "guest_fault", "cancelled", "interrupted", "internal"];
const times: [value: string, label: string][] = [["", "any time"], ["15m", "15 minutes"], ["1h", "hour"], ["24h", "24 hours"], ["7d", "7 days"]];

const columns: (Column<Run> & { spare?: boolean })[] = [ // spare: shown if it is chosen, or if a row has something in it
  { key: "started", title: "Started", width: "8.7rem", phone: true, value: (r) => r.started, cell: (r) => <span class="runs-when"><Time at={r.started} /><span class="soft runs-at"><Time at={r.started} exact /></span></span> },
  { key: "status", title: "Status", width: "9.2rem", phone: 2, value: (r) => r.status, cell: (r) => <StateBadge of={ofRun(r)} /> },
  { key: "question", title: "Question, answer", width: "minmax(11rem, 5fr)", phone: true, cell: (r) => <span class="runs-said"><span dir="auto" title={visible(r.question ?? "")}>{r.replays && <><Badge>↻ again</Badge> </>}<Seen text={r.question || "(no text kept)"} /></span><Below run={r} /></span> },
  { key: "facts", title: "Model, tools, duration, tokens", phone: "only", cell: (r) => <Seen text={[measured(lasted(r, now())), r.usage.total_tokens ? `${r.usage.total_tokens.toLocaleString()} tokens` : "", r.target || r.model, (r.tools ?? []).join(", ")].filter(Boolean).join(" · ")} /> },
  { key: "model", title: "Model, tools", width: "minmax(8rem, 2.2fr)", value: (r) => r.target || r.model, cell: (r) => <span class="runs-said" title={visible([r.target || r.model, ...r.tools ?? []].join(", "))}><span><Seen text={r.target || r.model} /></span>{r.tools?.length ? <span class="mono soft runs-at"><Seen text={r.tools.join(", ")} /></span> : null}</span> },
  { key: "turns", title: "Turns", width: "3.4rem", align: "end", spare: true, value: (r) => r.turns, cell: (r) => r.turns },
  { key: "lasted", title: "Duration", width: "5.5rem", align: "end", value: (r) => lasted(r, now()), cell: (r) => measured(lasted(r, now())) },
  { key: "tokens", title: "Tokens", width: "5.6rem", align: "end", value: (r) => r.usage.total_tokens, cell: (r) => r.usage.total_tokens ? r.usage.total_tokens.toLocaleString() : r.ended && r.status !== "failed" && <span class="soft small">{notReported}</span> },
  { key: "cost", title: "Cost", width: "4.5rem", align: "end", spare: true, value: (r) => r.cost ?? 0, cell: (r) => r.cost ? money(r.cost) : "" },
  { key: "principal", title: "Key", width: "minmax(4rem, .6fr)", spare: true, value: (r) => r.principal ?? "", cell: (r) => <Seen text={r.principal ?? ""} /> },
  { key: "reason", title: "Reason", width: "minmax(5rem, 1.2fr)", spare: true, cell: (r) => <span title={visible(reasonOf(r))}><Seen text={reasonOf(r)} /></span> },
  { key: "id", title: "Id", width: "minmax(6rem, 1fr)", spare: true, cell: (r) => <span class="mono" title={visible(r.run_id)}><Seen text={r.run_id} /></span> },
];
const has: Record<string, (r: Run) => boolean> = { cost: (r) => Boolean(r.cost), principal: (r) => Boolean(r.principal), reason: (r) => Boolean(r.answer) && reasonOf(r) !== "" };

// Below is the second line of a run: its answer, or why it has none.
function Below({ run: r }: { run: Run }) {
  const why = r.answer ? "" : reasonOf(r);
  return r.answer ? <span class="soft runs-answer" dir="auto" title={visible(r.answer)}><Seen text={unmarked(r.answer)} /></span> : why ? <span class={`runs-answer ${r.status === "failed" ? "bad" : "soft"}`} title={visible(why)}><Seen text={why} /></span> : null;
}

// chosenColumns are those that the address names, else those that are not spare or have something in a row.
function chosenColumns(rows: Run[]) {
  const chosen = param("columns").split(",").filter(Boolean);
  return chosen.length ? columns.filter((c, i) => i === 0 || c.phone === "only" || chosen.includes(c.key)) : columns.filter((c) => !c.spare || rows.some((r) => has[c.key]?.(r)));
}

function Columns({ shown }: { shown: typeof columns }) {
  const keys = shown.map((c) => c.key), choices = columns.filter((c, i) => i > 0 && c.phone !== "only");
  return <details class="runs-more"><summary>Columns</summary><fieldset class="filters"><legend class="unseen">Columns</legend>{choices.map((c) => <label key={c.key} class="check"><input type="checkbox" checked={keys.includes(c.key)}
    onChange={(e) => setParams({ columns: choices.filter((o) => o.key === c.key ? e.currentTarget.checked : keys.includes(o.key)).map((o) => o.key).join(",") })} />{c.title}</label>)}
    {param("columns") && <button type="button" class="quiet small" onClick={() => setParams({ columns: "" })}>As at first</button>}</fieldset></details>;
}

// Views are the selections of everybody, and those that this person has named.
function Views({ here }: { here: string }) {
  return <nav class="runs-views" aria-label="Selections">{views().map(([label, to]) => <Link key={to} to={to} aria-current={here === to ? "page" : undefined}>{label}</Link>)}
    {named.value.map(({ name, to }) => <span key={name} class="runs-own"><Link to={`/runs?${to}`} aria-current={here === `/runs?${to}` ? "page" : undefined}><Seen text={name} /></Link><button type="button" class="icon" title="Remove this view" onClick={() => { dropView(name); announce("The view is removed."); }}>×<span class="unseen"> Remove the view {visible(name)}</span></button></span>)}</nav>;
}

// KeepView asks for the name of the selection that is shown.
function KeepView({ to }: { to: string }) {
  const [asking, ask] = useState(false), [name, set] = useState("");
  const keep = (e: Event) => {
    e.preventDefault();
    if (!name.trim()) return;
    keepView({ name: name.trim().slice(0, 40), to });
    announce("The view is saved.");
    ask(false);
    set("");
  };
  return <><button type="button" class="quiet small" onClick={() => ask(true)}>Save view…</button>
    {asking && <Dialog title="Save this view" close={() => ask(false)}><form class="stack" onSubmit={keep}>
      <p>The filters, columns and order that are chosen now, as a link above the list. It is kept in this browser.</p>
      <label>Name <input autofocus value={name} maxLength={40} onInput={(e) => set(e.currentTarget.value)} /></label>
      <div class="answers"><button type="submit" disabled={!name.trim()}>Save</button><button type="button" class="quiet" onClick={() => ask(false)}>Cancel</button></div></form></Dialog>}</>;
}

// useTotal returns how many runs there are, where only times are filtered: the server counts those, up to a limit.
function useTotal(values: Record<string, string>, wanted: boolean): string {
  const only = wanted && filters.every((f) => !values[f] || f === "since" || f === "until" || f === "session_id");
  const { data } = useResource<{ total: { runs?: number }; complete_since?: string }>(only ? query("api/stats", { since: values.since || "1970-01-02", until: values.until ?? "", session_id: values.session_id ?? "", buckets: 1 }) : undefined);
  return data ? `${(data.total.runs ?? 0).toLocaleString()}${data.complete_since ? " or more" : ""}` : "";
}

// extent says how many runs are listed, of how many, and in which order: a part of them is sorted by itself.
function extent(listed: number, whole: boolean, total: string, by?: string): string {
  const n = listed.toLocaleString(), part = total ? `${n} of ${total}` : n;
  return whole ? `${n}, ${by ? `by ${by.toLowerCase()}` : "the newest first"}` : by ? `Only the newest ${part} are loaded, and sorted by ${by.toLowerCase()}` : total ? `${part}, the newest first` : `The newest ${n}`;
}

interface State { rows: Run[]; next?: string; truncated: boolean; error?: Error; loading: boolean }

// useRuns reads the runs that fit, page by page, and the first page again every few seconds.
function useRuns(path: string) {
  const [state, set] = useState<State>({ rows: [], truncated: false, loading: true });
  const busy = useRef(false), alive = useRef(path);
  useEffect(() => {
    alive.current = path;
    busy.current = false;
    const aborter = new AbortController();
    set({ rows: [], truncated: false, loading: true });
    const first = async (merge: boolean) => {
      try {
        const page = await get<RunPage>(path, aborter.signal);
        set((s) => merge ? { ...s, ...merged(s, page), error: undefined } : { rows: page.data, next: page.next, truncated: !!page.truncated, loading: false });
      } catch (e) {
        if (!isAbort(e)) set((s) => ({ ...s, error: e as Error, loading: false }));
      }
    };
    void first(false);
    const timer = setInterval(() => { if (!document.hidden) void first(true); }, every);
    return () => { clearInterval(timer); aborter.abort(); };
  }, [path]);
  const more = useCallback(async () => {
    if (busy.current || !state.next) return;
    busy.current = true;
    try {
      const page = await get<RunPage>(`${path}&after=${encodeURIComponent(state.next)}`);
      if (alive.current !== path) return;
      set((s) => {
        const known = new Set(s.rows.map((r) => r.run_id));
        return { ...s, rows: [...s.rows, ...page.data.filter((r) => !known.has(r.run_id))], next: page.next, truncated: !!page.truncated };
      });
    } catch (e) {
      set((s) => ({ ...s, error: e as Error }));
    } finally {
      busy.current = false;
    }
  }, [path, state.next]);
  const forget = (ids: string[]) => set((s) => ({ ...s, rows: s.rows.filter((r) => !ids.includes(r.run_id)) }));
  return { ...state, more, forget };
}

// merged puts a first page in the place of the rows that it covers.
function merged(s: State, page: RunPage): Partial<State> {
  const last = page.data.at(-1);
  if (!page.next || !last) return { rows: page.data, next: page.next, truncated: !!page.truncated };
  const older = s.rows.filter((r) => newer(last, r) < 0);
  return older.length ? { rows: [...page.data, ...older] } : { rows: page.data, next: page.next, truncated: !!page.truncated };
}

function Field({ name, label, list = [], width = "9rem" }: { name: string; label: string; list?: string[]; width?: string }) {
  return <label>{label}<input name={name} value={param(name)} list={`list-${name}`} style={{ width }} onChange={(e) => setParams({ [name]: e.currentTarget.value.trim() })} />
    <datalist id={`list-${name}`}>{list.map((v) => <option key={v} value={v} />)}</datalist></label>;
}

// logsOf cuts a file into the logs of its runs: each line is an event, and names its run.
function logsOf(text: string): string[] {
  const logs = new Map<string, string[]>();
  for (const line of text.split("\n").filter((l) => l.trim())) {
    const id = /^\{.*?"run_id":"([^"]*)"/.exec(line)?.[1] ?? "";
    logs.set(id, [...logs.get(id) ?? [], line]);
  }
  return [...logs.values()].map((lines) => `${lines.join("\n")}\n`);
}

function Import() {
  const [error, set] = useState<Error>();
  const file = useRef<HTMLInputElement>(null);
  return <>
    <button type="button" class="quiet" onClick={() => file.current?.click()}>Import runs</button>
    <input ref={file} type="file" hidden aria-label="Runs that were exported" accept=".jsonl,.ndjson,.json" onChange={async (e) => {
      const chosen = e.currentTarget.files?.[0];
      if (!chosen) return;
      try {
        const text = await chosen.text(), logs = logsOf(text);
        let run: Run | undefined;
        for (const log of logs.length > 1 ? logs : [text]) run = await send<Run>("POST", "api/runs/import", log);
        if (logs.length > 1) announce(`${count(logs.length, "run")} imported.`);
        else go(`/runs/${run!.run_id}`);
      } catch (e) {
        set(e as Error);
      }
      if (file.current) file.current.value = "";
    }} />
    {error && <ErrorState error={error} />}
  </>;
}

// Stop asks before it ends a run.
function Stop({ run, close, failed }: { run: Run; close: () => void; failed: (e: Error) => void }) {
  const cancel = () => {
    close();
    send("POST", `api/runs/${enc(run.run_id)}/cancel`).then(() => announce("The run is stopped."), failed);
  };
  return <Dialog title="Stop this run?" close={close}>
    <p>A run of <Seen text={run.target || run.model} />, started <Time at={run.started} />. What was done stays done; open calls are answered cancelled.</p>
    <div class="answers"><button type="button" class="danger" onClick={cancel}>Stop the run</button><button type="button" class="quiet" onClick={close}>Let it go on</button></div>
  </Dialog>;
}

export default function Runs() {
  const [ending, setEnding] = useState<Run>(), [failed, setFailed] = useState<Error>();
  const values = Object.fromEntries(filters.map((f) => [f, param(f)]));
  const path = query("api/runs", { ...values, questions: "true", limit: pageSize }), { rows, next, truncated, error, loading, more, forget } = useRuns(path);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set()), last = useRef(""), [choosing, setChoosing] = useState(false), wide = useWide("(min-width: 52.01rem)");
  useEffect(() => setPicked(new Set()), [path]);
  const pick = (run: Run, through = false) => { // through: with all between it and the one that was picked before
    const ids = rows.map((r) => r.run_id), [a, b] = [ids.indexOf(last.current), ids.indexOf(run.run_id)].sort((x, y) => x - y), of = through && a! >= 0 ? ids.slice(a, b! + 1) : [run.run_id], now = new Set(picked), add = !picked.has(run.run_id);
    for (const id of of) if (add) now.add(id); else now.delete(id);
    last.current = run.run_id;
    setPicked(now);
    announce(`${count(now.size, "run")} chosen.`);
  };
  const pickAll = (all: boolean) => { setPicked(new Set(all ? rows.map((r) => r.run_id) : [])); announce(all ? `${count(rows.length, "run")} chosen.` : "No run is chosen."); };
  const chosen = rows.filter((r) => picked.has(r.run_id)), keyed = rows.some((r) => r.principal) || Boolean(values.principal);
  const choice: Column<Run> = { key: "pick", title: "Choose", width: "1.4rem", phone: true, head: <label class="runs-pick" title="Choose all; x or Space chooses a row"><input type="checkbox" checked={chosen.length > 0 && chosen.length === rows.length} ref={(el) => { if (el) el.indeterminate = chosen.length > 0 && chosen.length < rows.length; }} onClick={(e) => pickAll(e.currentTarget.checked)} /><span class="unseen">Choose all runs of the list</span></label>,
    cell: (r) => <label class="runs-pick"><input type="checkbox" tabIndex={-1} checked={picked.has(r.run_id)} onClick={(e) => pick(r, e.shiftKey)} /><span class="unseen">Choose the run {visible(r.run_id)}</span></label> };
  const whole = next === undefined && !truncated, sort = param("sort");
  const [sorting, setSorting] = useState(mostSorted), partial = sort !== "" && !whole && !truncated;
  useEffect(() => { if (partial && rows.length < sorting) void more(); }, [partial, rows.length, sorting, more]); // the server sorts by time only
  const total = useTotal(values, next !== undefined), shown = chosenColumns(rows), live = rows.some((r) => r.status === "running" || r.status === "parked");
  const filtered = filters.some((f) => values[f]), [unfolded, setUnfolded] = useState(filtered); // on a narrow screen
  const models = [...new Set(rows.map((r) => r.target || r.model))], tools = [...new Set(rows.flatMap((r) => r.tools ?? []))], keys = [...new Set(rows.flatMap((r) => r.principal ?? []))], codes = [...new Set(rows.flatMap((r) => r.error_code ?? []))];
  const list = query("", values).slice(1); // leads from a run to those beside it
  const here = `/runs${place.value.query.size ? `?${place.value.query}` : ""}`;
  return <div class="page fill">
    <PageHeader title="Runs" note={loading ? undefined : extent(rows.length, whole, total, columns.find((c) => c.key === sort.replace("-", ""))?.title)}>
      <Copy text={() => location.href} label="Copy link" />
      <Import />
    </PageHeader>
    <Views here={here} />
    <form class={`filters runs-filters${unfolded ? "" : " folded"}`} role="search" aria-label="Runs" onSubmit={(e) => e.preventDefault()}>
      <button type="button" class="quiet small runs-fold" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>{unfolded ? "Hide filters" : "Filters"}</button>
      {!wide && rows.length > 0 && <button type="button" class="quiet small runs-fold" aria-pressed={choosing} onClick={() => { setChoosing(!choosing); pickAll(false); }}>Choose runs</button>}
      <Facet name="status" label="Status" known={statuses} only nameOf={(s) => stateOf(s).name} time={values} />
      <TimeRange label="Started in the last" times={times} since={values.since ?? ""} until={values.until ?? ""} />
      <Field name="text" label="Text" width="12rem" />
      <Facet name="tool" label="Tool" known={tools} time={values} />
      <Facet name="model" label="Model" known={models} time={values} />
      {keyed && <Facet name="principal" label="Key" known={keys} time={values} />}
      <details class="runs-more" open={Boolean(values.reason || values.error_code || values.session_id)}><summary>More filters</summary><div class="filters">
        <Facet name="reason" label="Reason" known={reasons} only nameOf={words} time={values} />
        <Field name="error_code" label="Error code" list={codes} />
        <Field name="session_id" label="Session" />
      </div></details>
      <Columns shown={shown} />
      {here !== "/runs" && ![...views(), ...named.value.map((v) => ["", `/runs?${v.to}`])].some(([, to]) => to === here) && <KeepView to={here.slice("/runs?".length)} />}
      {filtered && <button type="button" class="quiet small" onClick={() => setParams(Object.fromEntries(filters.map((f) => [f, ""])))}>Clear</button>}
    </form>
    {(error ?? failed) && <ErrorState error={(error ?? failed)!} />}
    {ending && <Stop run={ending} close={() => setEnding(undefined)} failed={setFailed} />}
    {partial && rows.length >= sorting && <p class="problem note" role="status">The gateway lists runs by time: those that are not loaded are missing in this order. <button type="button" class="link" onClick={() => setSorting(rows.length + mostSorted)}>Load more</button></p>}
    {truncated && <p class="problem note" role="status">The search reached its limit at {rows.length ? "these rows" : "runs that do not fit"}. <button type="button" class="link" onClick={() => void more()}>Search further back</button></p>}
    {loading ? <Loading /> : rows.length === 0 ? filtered ? <Empty title="No run fits these filters." /> : <Empty title="There are no runs yet.">A run appears here when a client asks a model. <Link to="/">Ask one in the chat</Link></Empty>
      : <DataTable label="Runs" columns={[...wide || choosing ? [choice] : [], ...shown, ...!live ? [] : [{ key: "end", title: "", width: "4.4rem", cell: (r) => r.status === "running" || r.status === "parked" ? <button type="button" class="quiet small" onClick={() => { setFailed(undefined); setEnding(r); }}>Stop<span class="unseen"> the run {visible(r.run_id)}</span></button> : "" } satisfies Column<Run>]]} rows={rows} rowHeight={56} lines={88} sort={sort} order="-started" sortBy={(to) => { setSorting(mostSorted); setParams({ sort: to === "-started" ? "" : to }); }} rowKey={(r) => r.run_id} pick={pick} picked={(r) => picked.has(r.run_id)} to={(r) => query(`/runs/${r.run_id}`, { list })} more={next && !truncated && !sort ? () => void more() : undefined} />}
    {chosen.length > 0 && <Chosen runs={chosen} all={rows.length} chooseAll={() => pickAll(true)} clear={() => pickAll(false)} removed={(ids) => { forget(ids); setPicked((p) => new Set([...p].filter((id) => !ids.includes(id)))); }} />}
  </div>;
}
