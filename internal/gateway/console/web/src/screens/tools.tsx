// The tools that runs of this key may use.

import { enc } from "../api";
import { Badge, Empty, ErrorState, Loading, PageHeader, Seen } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { resolve } from "../schema";
import { effectOf } from "../state";
import { count, measured } from "../text/format";
import { visible } from "../text/visible";

export interface CallStats { calls: number; errors: number; p50_ms: number; p95_ms: number }
export interface Disabled { at: string; by?: string; reason?: string }
export interface Tool { disabled?: Disabled; stats?: CallStats; name: string; description: string; effect: string; origin?: string; labels?: string[]; parameters: unknown; advertised: boolean; policy?: string }

export const verdict: Record<string, "ok" | "wait" | "bad"> = { allow: "ok", ask: "wait", deny: "bad" };

// errorRate is the share of calls that failed.
export const errorRate = (s: CallStats | undefined) => s?.calls ? `${(s.errors / s.calls * 100).toFixed(s.errors && s.errors < s.calls ? 1 : 0)} %` : "";

interface Listed extends Tool { blocked?: string } // blocked: why the tool is kept from models

const stateOf = (t: Listed) => t.blocked !== undefined ? "blocked" : t.disabled ? "disabled" : t.policy ?? "unknown";
const calls = (t: Listed) => t.stats?.calls ?? 0;

// signatureOf names the arguments of a tool as a call has them, with ? behind those that may be left out.
function signatureOf(t: Listed): string {
  const { properties, required } = resolve(t.parameters, t.parameters), needed = new Set(Array.isArray(required) ? required : []);
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  return names.sort((a, b) => Number(needed.has(b)) - Number(needed.has(a))).map((n) => needed.has(n) ? n : `${n}?`).join(", ");
}

const bad = .2; // share of failed calls from which it is marked

function Errors({ of: { stats: s }, children }: { of: Listed; children?: string }) {
  return <span class={s?.errors && s.errors >= bad * s.calls ? "bad-number" : ""}>{errorRate(s)}{children}</span>;
}

const columns: Column<Listed>[] = [
  { key: "name", title: "Name", cell: (t) => <span class="tools-name"><Seen text={t.name} /></span>, width: "minmax(9rem, 1.4fr)", value: (t) => t.name },
  { key: "args", title: "Arguments", cell: (t) => { const of = signatureOf(t); return <span class="soft mono" title={visible(of)}><Seen text={of} /></span>; }, width: "minmax(6rem, 1.2fr)" },
  { key: "about", title: "Description", cell: (t) => t.blocked !== undefined ? <span class="tools-blocked" title={visible(t.blocked)}><Seen text={t.blocked} /></span> : <span class="soft" title={visible(t.description)}><Seen text={t.description} /></span>, width: "minmax(0, 3fr)", phone: 2 },
  { key: "origin", title: "From", cell: (t) => <Seen text={t.origin ?? ""} />, width: "minmax(5rem, 1fr)", phone: 2, value: (t) => t.origin ?? "" },
  { key: "effect", title: "Effect", cell: (t) => <span class="tools-effect" title={effectOf(t.effect).about}>{effectOf(t.effect).name}</span>, width: "6.5rem", phone: true, value: (t) => t.effect },
  { key: "calls", title: "Calls", cell: (t) => t.stats?.calls.toLocaleString() ?? "", width: "4rem", align: "end", value: calls },
  { key: "errors", title: "Errors", cell: (t) => <Errors of={t} />, width: "4.5rem", align: "end", value: (t) => calls(t) ? t.stats!.errors / calls(t) : -1 },
  { key: "failed", title: "Errors", cell: (t) => t.stats?.calls ? <Errors of={t}> failed</Errors> : null, phone: "only" },
  { key: "p95", title: "p95", cell: (t) => t.stats?.calls ? measured(t.stats.p95_ms) : "", width: "5rem", align: "end", value: (t) => t.stats?.p95_ms ?? 0 },
  { key: "policy", title: "State", cell: (t) => { const state = stateOf(t); return <Badge kind={verdict[state] ?? (state === "unknown" ? "" : "bad")}>{state}</Badge>; }, width: "5.5rem", phone: true },
];

// useBlocked returns the tools of MCP servers that are kept from models until a person has looked at their definitions.
function useBlocked(): Listed[] {
  const { data } = useResource<{ data: { name: string; tools: { name: string; state: string; reason?: string }[] }[] }>("api/servers", { every: 10_000 });
  return (data?.data ?? []).flatMap((s) => s.tools.filter((t) => t.state === "blocked").map((t) => ({ name: t.name, description: "", effect: "", origin: `mcp:${s.name}`, parameters: {}, advertised: false, blocked: t.reason ?? "its definition is not accepted" })));
}

export default function Tools() {
  const { data, error, reload } = useResource<{ data: Tool[] }>("api/tools?stats=true&since=7d", { every: 10_000 });
  const blocked = useBlocked(), text = param("q").toLowerCase(), state = param("policy"), from = param("from"), effect = param("effect");
  const all = data && [...data.data, ...blocked.filter((b) => !data.data.some((t) => t.name === b.name))] as Listed[];
  const rows = all?.filter((t) => (!text || `${t.name} ${t.description} ${t.origin}`.toLowerCase().includes(text)) && (!state || stateOf(t) === state) && (!from || t.origin === from) && (!effect || effectOf(t.effect).name === effect));
  const effects = [...new Set(all?.map((t) => effectOf(t.effect).name))].filter(Boolean).sort();
  const origins = [...new Set(all?.map((t) => t.origin ?? ""))].filter(Boolean).sort();
  return <div class="page fill">
    <PageHeader title="Tools" note="What runs of this key may call. Figures are of the last 7 days." />
    {data && <div class="filters">
      <label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
      <label>State<select value={state} onChange={(e) => setParams({ policy: e.currentTarget.value })}><option value="">any</option><option>allow</option><option>ask</option><option>deny</option><option>disabled</option><option>blocked</option></select></label>
      {origins.length > 1 && <label>From<select value={from} onChange={(e) => setParams({ from: e.currentTarget.value })}><option value="">any source</option>{origins.map((o) => <option key={o} value={o}>{visible(o)}</option>)}</select></label>}
      {effects.length > 1 && <label>Effect<select value={effect} onChange={(e) => setParams({ effect: e.currentTarget.value })}><option value="">any effect</option>{effects.map((o) => <option key={o}>{o}</option>)}</select></label>}
      <p class="soft small filters-note">{count(all!.length, "tool")}{blocked.length > 0 && <>, <button type="button" class="link" onClick={() => setParams({ policy: "blocked" })}>{blocked.length} blocked</button></>}</p>
    </div>}
    {error && !data && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {rows && <DataTable label="Tools" columns={columns} rows={rows} rowKey={(t) => t.name} sort={param("sort")} sortBy={(sort) => setParams({ sort })} to={(t) => t.blocked !== undefined ? `/pins?tool=${enc(t.name)}` : `/tools/${enc(t.name)}`} empty={all?.length ? <Empty title="No tool fits the filters." /> : <Empty title="This key has no tools.">Tools come from the configuration, <code>tools</code> in lathe.yaml.</Empty>} />}
  </div>;
}
