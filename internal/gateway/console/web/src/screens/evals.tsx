// The results of evaluations in the server's folder.

import { enc, Refusal } from "../api";
import { Badge, Empty, ErrorState, Loading, PageHeader, Seen, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { useResource } from "../resource";
import { param, setParams } from "../router";

export interface Measured { model: string; strategy?: string; fallback?: boolean; runs: number; ok: number; errors: number; ok_rate: number | null; ok_rate_low: number | null; ok_rate_high: number | null; ms_p50: number; ms_p95: number; cost?: number }
export interface Result { id: string; suite?: string; status?: string; started?: string; models: Measured[]; problem?: string }

export const percent = (n: number | null) => n === null ? "–" : `${Math.round(n * 100)} %`;
export const outcome: Record<string, "ok" | "bad" | "wait"> = { passed: "ok", failed: "bad", inconclusive: "wait" };
// nameOf is a model as it was measured.
export const nameOf = (m: { model: string; strategy?: string; fallback?: boolean }) => [m.model, m.strategy && m.strategy !== "production" ? m.strategy : "", m.fallback ? "fallback" : ""].filter(Boolean).join(", ");
// interval is a rate with its interval of 95 %.
export const interval = (m: Measured) => m.ok_rate === null ? "no score" : `${percent(m.ok_rate)} (${Math.round((m.ok_rate_low ?? 0) * 100)}–${percent(m.ok_rate_high)})`;

const columns: Column<Result>[] = [
  { key: "id", title: "Result", cell: (r) => <Seen text={r.id} />, width: "minmax(7rem, 1fr)", value: (r) => r.id },
  { key: "suite", title: "Suite", cell: (r) => <Seen text={r.suite ?? ""} />, width: "minmax(5rem, .6fr)", value: (r) => r.suite ?? "" },
  { key: "status", title: "Outcome", cell: (r) => r.problem ? <Badge kind="bad">not readable</Badge> : <Badge kind={outcome[r.status ?? ""] ?? ""}>{r.status ?? "unknown"}</Badge>, width: "7rem", phone: true, value: (r) => r.status ?? "" },
  { key: "began", title: "Began", cell: (r) => r.started ? <Time at={r.started} /> : "", width: "7rem", phone: 2, value: (r) => r.started ?? "" },
  { key: "models", title: "Models, rate and interval of 95 %", cell: (r) => <Seen text={r.problem ?? r.models.map((m) => `${nameOf(m)} ${interval(m)}`).join(" · ")} />, width: "minmax(0, 3fr)", phone: 2 },
];

// NoResults says why there are none.
export function NoResults({ error, retry }: { error: Error; retry: () => void }) {
  if (!(error instanceof Refusal)) return <ErrorState error={error} retry={retry} />;
  if (error.code === "no_evals") return <Empty title="This gateway shows no evaluations."><code>serve.evals</code> in lathe.yaml names the folder with the results of <code>lathe eval --out</code>.</Empty>;
  if (error.status === 403) return <Empty title="Only admin keys see evaluations." />;
  return <ErrorState error={error} retry={retry} />;
}

export default function Evals() {
  const { data, error, reload } = useResource<{ data: Result[]; truncated?: boolean }>("api/evals", { every: 10_000 });
  return <div class="page fill">
    <PageHeader title="Evaluations" note={<>How well models use tools, as <code>lathe eval</code> measured it. A wide interval means few runs.</>} />
    {error && !data && <NoResults error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data?.truncated && <p class="problem note">The folder has more results than are shown here.</p>}
    {data && <DataTable label="Evaluations" columns={columns} rows={data.data} rowKey={(r) => r.id} sort={param("sort")} sortBy={(sort) => setParams({ sort })} to={(r) => `/evals/${enc(r.id)}`} empty={<Empty title="The folder holds no results yet."><code>lathe eval --out FOLDER</code> writes them.</Empty>} />}
  </div>;
}
