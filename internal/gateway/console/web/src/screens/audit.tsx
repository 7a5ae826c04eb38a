// The audit log: its newest lines, and whether its chain is whole.

import { enc, now, Refusal } from "../api";
import { Badge, Copy, Empty, ErrorState, Link, Loading, PageHeader, Seen, StateBadge, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { TimeRange } from "../components/TimeRange";
import { download } from "../download";
import { useResource } from "../resource";
import { param, place, setParams } from "../router";
import { count, words } from "../text/format";
import { visible } from "../text/visible";
import { useWide } from "../wide";
import { verdict } from "./tools";

interface Line { n: number; time: string; kind: string; type?: string; principal?: string; run_id?: string; tool?: string; decision?: string; rule?: string; by?: string; status?: string; prev?: string }
interface Audit { ok: boolean; broken?: string; lines: number; files: number; head?: string; data: Line[] }

// what names the kind of a line; said is its name for people, such as "tool call executed".
const what = (l: Line) => l.type || l.kind;
const said = (name: string) => { if (name === "call") return "Policy decision"; const w = words(name.replace(/([a-z])(?=[A-Z])/g, "$1 ")); return w.charAt(0).toUpperCase() + w.slice(1).toLowerCase(); };

// keyOf is the key that caused a line, "" for none. The approver of a decision is named beside the decision.
const keyOf = (l: Line) => !l.decision && l.by || l.principal || "";
const whoOf = (l: Line) => keyOf(l) || (["begin", "rotated", "recovered"].includes(l.kind) ? "gateway" : "no key");
const Who = ({ of: l }: { of: Line }) => <span class={keyOf(l) ? "" : "soft"}><Seen text={whoOf(l)} /></span>;

// outcomeOf is how what a line reports has ended, as a state; "" for a line without an outcome.
function outcomeOf({ type, status = "", decision }: Line): string {
  if (type === "RunPaused" || type === "RunResumed") return ""; // its status is what the run waits for
  return status === "error" ? decision === "deny" ? "denied" : "failed" : status === "success" ? "ok" : status;
}

// Reason is the rule and the approver of a decision.
function Reason({ of: l }: { of: Line }) {
  const text = [l.rule, l.by && `by ${l.by}`].filter(Boolean).join(", ");
  return <span class="soft" title={visible(text)}><Seen text={text} /></span>;
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

const columns: Column<Line>[] = [
  { key: "n", title: "Line", cell: (l) => <span class="num">{l.n}</span>, width: "4.5rem", phone: false },
  { key: "audit-time", title: "Time", cell: (l) => <Time at={l.time} exact />, width: "11.5rem", phone: true },
  { key: "audit-what", title: "What", cell: (l) => <span title={visible(what(l))}><Seen text={said(what(l))} /></span>, width: "minmax(8rem, 1.2fr)", phone: true },
  { key: "audit-who", title: "Who", cell: (l) => <Who of={l} />, phone: "only" },
  { key: "audit-tool", title: "Tool", cell: (l) => <Seen text={l.tool ?? ""} />, phone: 2 },
  { key: "decision", title: "Decision", cell: (l) => l.decision ? <><Badge kind={kinds[l.decision] ?? ""}>{words(l.decision)}</Badge> <Reason of={l} /></> : null, width: "minmax(0, 1.3fr)", phone: 2 },
  { key: "outcome", title: "Outcome", cell: (l) => { const of = outcomeOf(l); return of && <StateBadge of={of} />; }, width: "9rem", phone: true },
  { key: "by", title: "Key", cell: (l) => <Who of={l} />, width: "5rem" },
  { key: "run", title: "Run", cell: (l) => <RunId id={l.run_id} />, width: "6.5rem" },
];

const mostKinds = 40; // choices of a filter

export default function AuditScreen() {
  const { data, error, loading, reload } = useResource<Audit>("api/audit?limit=1000");
  const text = param("q").toLowerCase(), kind = param("kind"), key = param("key"), decision = param("decision"), since = param("since"), until = param("until"), chosen = param("line");
  const distinct = (of: (l: Line) => string[]) => [...new Set(data?.data.flatMap(of))].sort().slice(0, mostKinds);
  const names = distinct((l) => [what(l)]), keys = distinct(keysOf), decisions = distinct((l) => l.decision ? [l.decision] : []), [from, to] = [begin(since), until ? Date.parse(until) : Infinity];
  const rows = data?.data.filter((l) => (!kind || what(l) === kind) && (!key || keysOf(l).includes(key)) && (!decision || l.decision === decision) && (from === -Infinity && to === Infinity || Date.parse(l.time) >= from && Date.parse(l.time) < to) && (!text || Object.values(l).join(" ").toLowerCase().includes(text)));
  const line = data?.data.find((l) => String(l.n) === chosen);
  return <div class="page fill">
    <PageHeader title="Audit log" note="Each line holds the hash of the line before it."><button type="button" class="quiet" disabled={loading} onClick={reload}>{loading ? "Checking…" : "Check again"}</button></PageHeader>
    {error && !data && (error instanceof Refusal && error.code === "no_audit_log" ? <Empty title="This gateway keeps no audit log."><code>audit.path</code> in lathe.yaml names its file.</Empty> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading what="Checking the chain" />}
    {data && <>{data.ok ? <p role="status"><Badge kind="ok">whole</Badge> {count(data.lines, "line")} in {count(data.files, "file")}{data.lines > data.data.length && <span class="soft">, the newest {data.data.length.toLocaleString()} below</span>} {data.head && <span class="soft small">head <span class="mono" title={visible(data.head)}>{visible(data.head.slice(0, 12))}…</span> <Copy text={data.head} label="Copy head" /></span>}</p>
        : <div class="problem" role="alert"><b>The chain is broken</b><span><Seen text={data.broken ?? ""} /></span><span>Lines may have been changed or removed. Compare the file with a copy, such as that of the collector that gets its lines.</span></div>}
      <div class="filters"><label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
        <label>What<select value={kind} onChange={(e) => setParams({ kind: e.currentTarget.value })}><option value="">any</option>{names.map((k) => <option key={k} value={k}>{said(k)}</option>)}</select></label>
        {decisions.length > 1 && <label>Decision<select value={decision} onChange={(e) => setParams({ decision: e.currentTarget.value })}><option value="">any</option>{decisions.map((k) => <option key={k} value={k}>{words(k)}</option>)}</select></label>}
        {keys.length > 1 && <label>Key<select value={key} onChange={(e) => setParams({ key: e.currentTarget.value })}><option value="">any</option>{keys.map((k) => <option key={k} value={k}>{visible(k)}</option>)}</select></label>}
        <TimeRange label="Time" times={[...times]} since={since} until={until} />
        <button type="button" class="quiet" disabled={!rows?.length} onClick={() => download("audit.jsonl", "application/x-ndjson", (rows ?? []).map((l) => `${JSON.stringify(l)}\n`).join(""))}>Export {count(rows?.length ?? 0, "line")}</button></div>
      <div class={`split${line ? " chosen" : ""}`}>
        <DataTable label="Audit log" columns={line ? columns.filter((c) => !["by", "run"].includes(c.key)) : columns} rows={rows ?? []} rowKey={(l) => String(l.n)} to={(l) => lineAt(l)} chosen={chosen} empty={<Empty title="No line fits.">{data.lines > data.data.length && <>Among the newest {data.data.length.toLocaleString()} lines, which reach back to <Time at={data.data.at(-1)!.time} exact />. The log's files have the others.</>}</Empty>} />
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
  return <aside class="card-box" aria-label={`Line ${line.n}`}><div class="approval-head"><h2>Line {line.n}</h2><button type="button" class="quiet small" onClick={() => setParams({ line: "" })}>Close</button></div>
    <dl class="facts">{Object.entries(line).filter(([name, v]) => name !== "n" && name !== "prev" && v !== "").map(([name, v]) => <><dt>{words(name)}</dt><dd>{name === "run_id" && String(v).startsWith("run_") ? <Link to={`/runs/${enc(String(v))}`}><Seen text={String(v)} /></Link>
      : name === "tool" ? <Link to={`/tools/${enc(String(v))}`}><Seen text={String(v)} /></Link> : name === "rule" && line.tool ? <Link to={`/policy?tool=${enc(line.tool)}&rule=${enc(String(v))}`}><Seen text={String(v)} /></Link> : <Seen text={String(v)} />}</dd></>)}
      <dt>chain</dt><dd>{ok ? <Badge kind="ok">whole</Badge> : <Badge kind="bad">broken after the newest line here</Badge>}</dd></dl>
    {(hash || line.prev) && <details open={wide}><summary class="small">Hashes</summary><dl class="facts">{hash && <Hash name="hash" text={hash} />}{line.prev && <Hash name="previous hash" text={line.prev} />}</dl></details>}</aside>;
}
