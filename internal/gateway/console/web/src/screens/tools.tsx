// The tools that runs of this key may use.

import { enc } from "../api";
import { Badge, Empty, ErrorState, Loading, PageHeader, Seen } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { duration, words } from "../text/format";

export interface CallStats { calls: number; errors: number; p50_ms: number; p95_ms: number }
export interface Disabled { at: string; by?: string; reason?: string }
export interface Tool { disabled?: Disabled; stats?: CallStats; name: string; description: string; effect: string; origin?: string; labels?: string[]; parameters: unknown; advertised: boolean; policy?: string }

export const verdict: Record<string, "ok" | "wait" | "bad"> = { allow: "ok", ask: "wait", deny: "bad" };

// errorRate is the share of calls that failed.
export const errorRate = (s: CallStats | undefined) => s?.calls ? `${(s.errors / s.calls * 100).toFixed(s.errors && s.errors < s.calls ? 1 : 0)} %` : "";

const columns: Column<Tool>[] = [
  { key: "name", title: "Name", cell: (t) => <Seen text={t.name} />, width: "minmax(8rem, 1.4fr)" },
  { key: "about", title: "Description", cell: (t) => <span class="soft"><Seen text={t.description} /></span>, width: "minmax(0, 3fr)" },
  { key: "origin", title: "From", cell: (t) => <Seen text={t.origin ?? ""} />, width: "minmax(5rem, 1fr)" },
  { key: "effect", title: "Effect", cell: (t) => words(t.effect), width: "7rem" },
  { key: "calls", title: "Calls", cell: (t) => t.stats?.calls.toLocaleString() ?? "", width: "4rem", align: "end" },
  { key: "errors", title: "Errors", cell: (t) => errorRate(t.stats), width: "4rem", align: "end" },
  { key: "p95", title: "p95", cell: (t) => t.stats?.calls ? duration(t.stats.p95_ms) : "", width: "5rem", align: "end" },
  { key: "policy", title: "Policy", cell: (t) => t.disabled ? <Badge kind="bad">disabled</Badge> : <Badge kind={verdict[t.policy ?? ""] ?? ""}>{t.policy ?? "unknown"}</Badge>, width: "5.5rem", phone: true },
];

export default function Tools() {
  const { data, error, reload } = useResource<{ data: Tool[] }>("api/tools?stats=true&since=7d", { every: 10_000 });
  const text = param("q").toLowerCase(), policy = param("policy");
  const rows = data?.data.filter((t) => (!text || `${t.name} ${t.description} ${t.origin}`.toLowerCase().includes(text)) && (!policy || t.policy === policy));
  return <div class="page fill">
    <PageHeader title="Tools" note="What runs of this key may call, and what policy says of it before a call is known. Calls of the last 7 days." />
    <div class="filters">
      <label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
      <label>Policy<select value={policy} onChange={(e) => setParams({ policy: e.currentTarget.value })}><option value="">any</option><option>allow</option><option>ask</option><option>deny</option></select></label>
    </div>
    {error && !data && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {rows && <DataTable label="Tools" columns={columns} rows={rows} rowKey={(t) => t.name} to={(t) => `/tools/${enc(t.name)}`} empty={data?.data.length ? <Empty title="No tool fits the filters." /> : <Empty title="This key has no tools.">Tools come from the configuration, <code>tools</code> in lathe.yaml.</Empty>} />}
  </div>;
}
