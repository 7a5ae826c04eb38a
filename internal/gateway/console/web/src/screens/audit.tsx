// The audit log: its newest lines, and whether its chain is whole.

import { enc, Refusal } from "../api";
import { Badge, Copy, Empty, ErrorState, Link, Loading, PageHeader, Seen, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { download } from "../download";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { count } from "../text/format";

interface Line { n: number; time: string; kind: string; type?: string; principal?: string; run_id?: string; tool?: string; decision?: string; rule?: string; by?: string; status?: string }
interface Audit { ok: boolean; broken?: string; lines: number; files: number; head?: string; data: Line[] }

const columns: Column<Line>[] = [
  { key: "n", title: "Line", cell: (l) => l.n, width: "4.5rem" },
  { key: "time", title: "Time", cell: (l) => <Time at={l.time} exact />, width: "12.5rem", phone: true },
  { key: "what", title: "What", cell: (l) => <Seen text={l.type || l.kind} />, width: "minmax(7rem, 1.2fr)", phone: true },
  { key: "tool", title: "Tool", cell: (l) => <Seen text={l.tool ?? ""} /> },
  { key: "decision", title: "Decision", cell: (l) => <Seen text={[l.decision, l.rule && `(${l.rule})`].filter(Boolean).join(" ")} /> },
  { key: "by", title: "By", cell: (l) => <Seen text={l.by || l.principal || ""} />, width: "7rem" },
  { key: "run", title: "Run", cell: (l) => l.run_id?.startsWith("run_") ? <Link to={`/runs/${enc(l.run_id)}`}><Seen text={l.run_id} /></Link> : <Seen text={l.run_id ?? ""} /> },
];

export default function AuditScreen() {
  const { data, error, loading, reload } = useResource<Audit>("api/audit?limit=1000");
  const text = param("q").toLowerCase();
  const rows = data?.data.filter((l) => !text || Object.values(l).join(" ").toLowerCase().includes(text));
  return <div class="page fill">
    <PageHeader title="Audit log" note="Each line holds the hash of the line before it."><button type="button" class="quiet" disabled={loading} onClick={reload}>Check again</button></PageHeader>
    {error && !data && (error instanceof Refusal && error.code === "no_audit_log" ? <Empty title="This gateway keeps no audit log."><code>audit.path</code> in lathe.yaml names its file.</Empty> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading what="Checking the chain" />}
    {data && <><p role="status">{data.ok ? <><Badge kind="ok">whole</Badge> {count(data.lines, "line")} in {count(data.files, "file")}</> : <><Badge kind="bad">broken</Badge> <Seen text={data.broken ?? ""} /></>} {data.head && <span class="soft small mono"><Seen text={data.head} /> <Copy text={data.head} label="Copy head" /></span>}</p>
      <div class="filters"><label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
        <button type="button" class="quiet" disabled={!rows?.length} onClick={() => download("audit.jsonl", "application/x-ndjson", (rows ?? []).map((l) => `${JSON.stringify(l)}\n`).join(""))}>Export these lines</button></div>
      <DataTable label="Audit log" columns={columns} rows={rows ?? []} rowKey={(l) => String(l.n)} empty={<Empty title="No line fits." />} /></>}
  </div>;
}
