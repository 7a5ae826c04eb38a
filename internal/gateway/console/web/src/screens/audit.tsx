// The audit log: its newest lines, those of one call as one, and whether its chain is whole.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { enc, now, Refusal } from "../api";
import { entriesOf, summaryOf, type Entry, type Line, type Summary } from "../audit";
import { Badge, Copy, Empty, ErrorState, Link, Loading, PageHeader, Seen, StateBadge, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { TimeRange } from "../components/TimeRange";
import { download } from "../download";
import { useResource } from "../resource";
import { param, place, setParams } from "../router";
import type { RunPage } from "../run/types";
import { failureName, stateOf } from "../state";
import { count, measured, words } from "../text/format";
import { visible } from "../text/visible";
import { useWide } from "../wide";
import { verdict } from "./tools";

interface Audit { ok: boolean; broken?: string; lines: number; files: number; head?: string; data: Line[] }

// what names the kind of a line; said is its name for people, such as "Tool call executed".
const what = (l: Line) => l.type || l.kind;
const said = (name: string) => { if (name === "Call") return "Tool call begins"; const w = words(name.replace(/([a-z])(?=[A-Z])/g, "$1 ")); return w.charAt(0).toUpperCase() + w.slice(1).toLowerCase(); };

// short is such a name below that of its call.
const short = (name: string) => { const rest = name.replace(/^(?:Tool|Model) call /, ""); return rest.charAt(0).toUpperCase() + rest.slice(1); };

// keyOf is the key that caused a line, "" for none. The approver of a decision is named beside the decision.
const keyOf = (l: Line) => !l.decision && l.by || l.principal || "", noKey = "no key";
const whoOf = (l: Line) => keyOf(l) || (["begin", "rotated", "recovered"].includes(l.kind) ? "gateway" : noKey);
const Who = ({ of: l }: { of: Line }) => <span class={keyOf(l) ? "" : "soft audit-none"}><Seen text={whoOf(l)} /></span>;

// Reason is the rule and the approver of a decision.
function Reason({ of: { rule, by } }: { of: Summary }) {
  return <span class="soft" title={visible([by && `by ${by}`, rule].filter(Boolean).join(", "))}>{by && <span class="audit-by">by <Seen text={by} /></span>}{rule && <span class="audit-rest">{by && ", "}<Seen text={rule} /></span>}</span>;
}

const idEnd = 8; // characters of a run's id that rows show

function RunId({ id = "" }: { id?: string }) {
  const end = <span title={visible(id)}><Seen text={id.length > idEnd + 1 ? `…${id.slice(-idEnd)}` : id} /></span>;
  return id.startsWith("run_") ? <Link to={`/runs/${enc(id)}`}>{end}</Link> : end;
}

const keysOf = (l: Line) => [l.principal, l.by].filter((k): k is string => Boolean(k));

// decisions are verdicts of the policy and of people.
const kinds: Record<string, "ok" | "wait" | "bad"> = { ...verdict, approve: "ok", approved: "ok", edit: "ok", edited: "ok", answer: "ok", answered: "ok", denied: "bad", expired: "bad" };

const times = [["", "any time"], ["1h", "the last hour"], ["24h", "the last 24 hours"], ["7d", "the last 7 days"]] as const;
const unit: Record<string, number> = { h: 3_600_000, d: 86_400_000 }; // ms

// begin is the time in ms that since names: a date, or how long ago, such as 24h.
function begin(since: string): number {
  const [, n, u] = /^(\d+)([hd])$/.exec(since) ?? [];
  return n ? now() - Number(n) * unit[u!]! : since ? Date.parse(since) : -Infinity;
}

// A Row is a day, an entry, or a line of an entry that is open.
type Row = { day: string } | { day?: undefined; line: Line; of: Summary; run?: RunOf; entry?: Entry; open?: boolean; inner?: boolean; toggle?: () => void };
type Shown = Exclude<Row, { day: string }>;

const dayOf = (l: Line) => new Date(l.time).toLocaleDateString(undefined, { weekday: "long", year: "numeric", month: "long", day: "numeric" });
const clock = (l: Line) => <time dateTime={l.time} title={l.time}>{new Date(l.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })}</time>;
const folds = { tool: "Tool call", model: "Model call", line: "" };

// What names an entry, with a button that opens its lines.
function What({ of: { entry, line, open, inner, toggle } }: { of: Shown }) {
  if (!entry || entry.lines.length < 2) return <span class={inner ? "audit-inner" : ""} title={visible(what(line))}><Seen text={inner ? short(said(what(line))) : said(what(line))} /></span>;
  return <button type="button" class="plain audit-fold" aria-expanded={open ?? false} onClick={toggle}><span aria-hidden="true">{open ? "▾" : "▸"} </span>{folds[entry.kind]} <span class="soft small">{count(entry.lines.length, "line")}</span></button>;
}

const Took = ({ of: { ms, most, waited } }: { of: Summary }) => ms === undefined && waited === undefined ? null : <span class="num" title={waited !== undefined ? `${measured(waited)} until the approval` : most && "at most: a wait before the retry may be part of it"}>{ms === undefined ? "" : `${most ? "≤ " : ""}${measured(ms).replace("< ", most ? "" : "< ")}`}{waited !== undefined && <span class="soft audit-rest"> +{measured(waited)}</span>}</span>;

// RunOf is what the store has of the run of a line: the model that the run named, and why it failed.
interface RunOf { model?: string; cause?: string }

// About is the tool of a line, of a model call the model.
const About = ({ of: { line, inner, run } }: { of: Shown }) => inner ? null : isModel(line) ? <span class="audit-model" title={run?.model && `the model of the run: ${visible(run.model)}`}><Seen text={run?.model ?? ""} /></span> : <span title={visible(line.tool ?? "")}><Seen text={line.tool ?? ""} /></span>;
const isModel = (l: Line) => l.type === "ModelCallStarted" || l.type === "ModelCallFinished";

// Decided is the decision about a call, of a run that failed the cause.
const Decided = ({ of: { of, line, run } }: { of: Shown }) => of.decision ? <><Badge kind={kinds[of.decision] ?? ""}>{words(of.decision)}</Badge> <Reason of={of} /></> : line.type === "RunFinished" && of.outcome === "failed" && run?.cause ? <span class="soft" title={visible(run.cause)}><Seen text={run.cause} /></span> : null;

const cell = (show: (r: Shown) => ComponentChildren) => (r: Row) => r.day === undefined ? show(r) : null;
const columns: Column<Row>[] = [
  { key: "n", title: "Line", cell: cell(({ line, entry }) => <span class="num">{entry && entry.lines.length > 1 ? `${entry.lines[0]!.n}–${line.n}` : line.n}</span>), width: "4.6rem", phone: false },
  { key: "audit-time", title: "Time", cell: cell(({ line }) => clock(line)), width: "5.7rem", phone: true },
  { key: "audit-what", title: "What", cell: cell((r) => <What of={r} />), width: "minmax(9rem, 1fr)", phone: true },
  { key: "audit-who", title: "Who", cell: cell(({ line }) => <Who of={line} />), phone: "only" },
  { key: "audit-tool", title: "Tool or model", cell: cell((r) => <About of={r} />), width: "minmax(6rem, 1.6fr)", phone: 2 },
  { key: "decision", title: "Decision or cause", cell: cell((r) => <Decided of={r} />), width: "minmax(8rem, 1.8fr)", phone: 2 },
  { key: "outcome", title: "Outcome", cell: cell(({ of }) => of.outcome && <StateBadge of={of.outcome} />), width: "8.6rem", phone: true },
  { key: "took", title: "Took", cell: cell(({ of }) => <Took of={of} />), width: "5.6rem", align: "end", phone: 2 },
  { key: "by", title: "Key", cell: cell(({ line, inner }) => inner ? null : <Who of={line} />), width: "4.4rem" },
  { key: "run", title: "Run", cell: cell(({ line, inner }) => inner ? null : <RunId id={line.run_id} />), width: "6.5rem" },
];

const single = (line: Line): Entry => ({ kind: "line", lines: [line] });

// rowsOf returns the rows of entries, the newest first, each day below its heading. open are the newest lines of the entries that are open.
function rowsOf(entries: Entry[], open: Set<number>, toggle: (n: number) => void, runs?: Map<string, RunOf>): Row[] {
  const rows: Row[] = [];
  let day = "";
  for (const entry of entries) {
    const line = entry.lines.at(-1)!, opened = open.has(line.n);
    if (dayOf(line) !== day) rows.push({ day: day = dayOf(line) });
    rows.push({ line, of: summaryOf(entry), run: runs?.get(line.run_id ?? ""), entry, open: opened, toggle: () => toggle(line.n) });
    if (opened && entry.lines.length > 1) for (const l of entry.lines.toReversed()) rows.push({ line: l, of: summaryOf(single(l)), inner: true });
  }
  return rows;
}

const mostKinds = 40; // choices of a filter
const mostRuns = 200; // whose models are read

export default function AuditScreen() {
  const { data, error, loading, reload } = useResource<Audit>("api/audit?limit=1000");
  const text = param("q").toLowerCase(), kind = param("kind"), key = param("key"), decision = param("decision"), outcome = param("outcome"), run = param("run"), since = param("since"), until = param("until"), chosen = param("line");
  const flat = Boolean(kind) || param("every") !== ""; // each line for itself
  const [open, setOpen] = useState(new Set<number>()), [unfolded, setUnfolded] = useState(Boolean(text || kind || key || decision || outcome || run || since || until)); // unfolded: the filters of a narrow screen
  const known = useResource<RunPage>(`api/runs?limit=${mostRuns}`).data?.data, runs = useMemo(() => new Map(known?.map((r): [string, RunOf] => [r.run_id, { model: r.target || r.model, cause: r.error_code && failureName(r.error_code) }])), [known]);
  const toggle = (n: number) => setOpen((all) => { const next = new Set(all); if (!next.delete(n)) next.add(n); return next; });
  const distinct = (of: (l: Line) => string[]) => [...new Set(data?.data.flatMap(of))].sort().slice(0, mostKinds);
  const names = distinct((l) => [what(l)]), keys = distinct(keysOf), decisions = distinct((l) => l.decision ? [l.decision] : []), [from, to] = [begin(since), until ? Date.parse(until) : Infinity];
  const fits = (l: Line) => (!kind || what(l) === kind) && (!key || (key === noKey ? whoOf(l) === noKey : keysOf(l).includes(key))) && (!decision || l.decision === decision) && (!run || (l.run_id ?? "").toLowerCase().endsWith(run.replace(/^…/, "").toLowerCase())) && (from === -Infinity && to === Infinity || Date.parse(l.time) >= from && Date.parse(l.time) < to) && (!text || [...Object.values(l), isModel(l) ? runs.get(l.run_id ?? "")?.model : ""].join(" ").toLowerCase().includes(text));
  const all = useMemo(() => entriesOf(data?.data ?? []), [data]);
  const units = useMemo(() => flat ? (data?.data ?? []).map(single) : all, [data, all, flat]), outcomes = useMemo(() => [...new Set(units.map((e) => summaryOf(e).outcome))].filter(Boolean).sort(), [units]);
  const entries = units.filter((e) => e.lines.some(fits) && (!outcome || summaryOf(e).outcome === outcome)), lines = entries.flatMap((e) => e.lines.toReversed());
  const line = data?.data.find((l) => String(l.n) === chosen), holder = line && all.find((e) => e.lines.includes(line)); // the entry of the chosen line is open
  const rows = rowsOf(entries, holder && holder.lines.length > 1 ? new Set([...open, holder.lines.at(-1)!.n]) : open, toggle, runs);
  const keyOfRow = (r: Row) => r.day ?? (r.entry && r.entry.lines.length > 1 ? `of ${r.line.n}` : String(r.line.n));
  return <div class="page fill">
    <PageHeader title="Audit log" note="Each line holds the hash of the line before it.">{data && <button type="button" class="quiet" disabled={!lines.length} onClick={() => download("audit.jsonl", "application/x-ndjson", lines.map((l) => `${JSON.stringify(l)}\n`).join(""))}>Export {count(lines.length, "line")}</button>}<button type="button" class="quiet" disabled={loading} onClick={reload}>{loading ? "Checking…" : "Check again"}</button></PageHeader>
    {error && !data && (error instanceof Refusal && error.code === "no_audit_log" ? <Empty title="This gateway keeps no audit log."><code>audit.path</code> in lathe.yaml names its file.</Empty> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading what="Checking the chain" />}
    {data && <>{data.ok ? <p role="status" class="audit-chain"><Badge kind="ok">whole</Badge> {count(data.lines, "line")} in {count(data.files, "file")}{data.lines > data.data.length && <span class="soft">, the newest {data.data.length.toLocaleString()} below</span>} {data.head && <span class="soft small">head <span class="mono" title={visible(data.head)}>{visible(data.head.slice(0, 12))}…</span> <Copy text={data.head} label="Copy head" /></span>}</p>
        : <div class="problem" role="alert"><b>The chain is broken</b><span><Seen text={data.broken ?? ""} /></span><span>Lines may have been changed or removed. Compare the file with a copy, such as that of the collector that gets its lines.</span></div>}
      <div class={`filters runs-filters${unfolded ? "" : " folded"}`} role="search" aria-label="Audit log"><button type="button" class="quiet small runs-fold" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>{unfolded ? "Hide filters" : "Filters"}</button>
        <label>Search<input type="search" class="audit-search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
        <label>What<select value={kind} onChange={(e) => setParams({ kind: e.currentTarget.value })}><option value="">any</option>{names.map((k) => <option key={k} value={k}>{said(k)}</option>)}</select></label>
        {decisions.length > 1 && <label>Decision<select value={decision} onChange={(e) => setParams({ decision: e.currentTarget.value })}><option value="">any</option>{decisions.map((k) => <option key={k} value={k}>{words(k)}</option>)}</select></label>}
        {(outcomes.length > 1 || outcome) && <label>Outcome<select value={outcome} onChange={(e) => setParams({ outcome: e.currentTarget.value })}><option value="">any</option>{[...new Set([...outcomes, ...outcome ? [outcome] : []])].map((k) => <option key={k} value={k}>{stateOf(k).name}</option>)}</select></label>}
        <label>Key<select value={key} onChange={(e) => setParams({ key: e.currentTarget.value })}><option value="">any</option><option value={noKey}>{noKey}</option>{keys.map((k) => <option key={k} value={k}>{visible(k)}</option>)}</select></label>
        <label>Run<input class="mono audit-run" placeholder="id, or its end" autocomplete="off" value={run} onInput={(e) => setParams({ run: e.currentTarget.value.trim() })} /></label>
        <TimeRange label="Time" times={[...times]} since={since} until={until} />
        <label class="check"><input type="checkbox" checked={flat} disabled={Boolean(kind)} onChange={(e) => setParams({ every: e.currentTarget.checked ? "1" : "" })} /> every line</label></div>
      <div class={`split${line ? " chosen" : ""}`}>
        <DataTable label="Audit log" columns={line ? columns.filter((c) => !["took", "by", "run"].includes(c.key)) : columns} rows={rows} rowKey={keyOfRow} heading={(r) => r.day} to={(r) => r.day !== undefined || r.entry && r.entry.lines.length > 1 ? "" : lineAt(r.line)} choose={(r) => { if (r.day === undefined) r.toggle?.(); }} chosen={chosen} empty={<Empty title="No line fits.">{data.lines > data.data.length && <>Among the newest {data.data.length.toLocaleString()} lines, which reach back to <Time at={data.data.at(-1)!.time} exact />. The log's files have the others.</>}</Empty>} />
        {line && <LineDetail line={line} hash={hashOf(line, data)} ok={data.ok} />}
      </div></>}
  </div>;
}

// lineAt is the address of the screen with a line chosen; the filters stay.
function lineAt(l: Line): string {
  const query = new URLSearchParams(place.value.query);
  query.set("line", String(l.n));
  return `/audit?${query}`;
}

// hashOf is the hash of a line, as the line after it holds it, of the last one as the head of the log.
const hashOf = (l: Line, { data, head }: Audit) => data.find((o) => o.n === l.n + 1)?.prev ?? (head?.startsWith(`${l.n}:`) ? head.slice(head.indexOf(":") + 1) : undefined);

const Hash = ({ name, text }: { name: string; text: string }) => <><dt>{name}</dt><dd class="mono audit-hash"><Seen text={text} /> <Copy icon text={text} label={`Copy the ${name}`} /></dd></>;

// LineDetail has all members of a line, and its place in the chain.
function LineDetail({ line, hash, ok }: { line: Line; hash?: string; ok: boolean }) {
  const wide = useWide("(min-width: 52.01rem)");
  return <aside class="card-box" aria-label={`Line ${line.n}`}><div class="approval-head"><h2>Line {line.n}</h2>{line.run_id && <button type="button" class="quiet small" onClick={() => setParams({ run: line.run_id!, line: "" })}>Only this run</button>}<button type="button" class="quiet small" onClick={() => setParams({ line: "" })}>Close</button></div>
    <dl class="facts">{Object.entries(line).filter(([name, v]) => name !== "n" && name !== "prev" && v !== "").map(([name, v]) => <><dt>{words(name)}</dt><dd>{name === "run_id" && String(v).startsWith("run_") ? <Link to={`/runs/${enc(String(v))}`}><Seen text={String(v)} /></Link>
      : name === "tool" ? <Link to={`/tools/${enc(String(v))}`}><Seen text={String(v)} /></Link> : name === "rule" && line.tool ? <Link to={`/policy?tool=${enc(line.tool)}&rule=${enc(String(v))}`}><Seen text={String(v)} /></Link> : <Seen text={String(v)} />}</dd></>)}
      <dt>chain</dt><dd>{ok ? <Badge kind="ok">whole</Badge> : <Badge kind="bad">broken after the newest line here</Badge>}</dd></dl>
    {(hash || line.prev) && <details open={wide}><summary class="small">Hashes</summary><dl class="facts">{hash && <Hash name="hash" text={hash} />}{line.prev && <Hash name="previous hash" text={line.prev} />}</dl></details>}</aside>;
}
