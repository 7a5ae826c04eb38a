// The results of evaluations in the server's folder.

import { enc, now, Refusal } from "../api";
import { Badge, Empty, ErrorState, Loading, PageHeader, Seen, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { Command } from "../components/ErrorState";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { commandOf, interval, nameOf, trendsOf, type Result } from "../run/evalcompare";
import { PassMark, Trend } from "../run/Trend";
import { visible } from "../text/visible";

export const outcome: Record<string, "ok" | "bad" | "wait"> = { passed: "ok", failed: "bad", inconclusive: "wait" };
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

// useFolder is the folder of the results, and the model that lathe.yaml has as the default.
function useFolder(): { folder: string; model: string } {
  const { data } = useResource<{ data: { key: string; value: string }[] }>("api/config"), of = (key: string) => data?.data.find((s) => s.key === key)?.value ?? "";
  return { folder: of("serve.evals") || "FOLDER", model: of("default_model") };
}

const mostNamed = 20; // cases that a command names

// Measure is the command that measures models, again if there is a result. trend: there is none yet.
export function Measure({ of, trend }: { trend?: boolean; of?: { result: Result; scenarios: string[]; trials: number } }) {
  const { folder, model } = useFolder(), name = new Date(now()).toISOString().slice(0, 16).replace(/[T:]/g, "-");
  const command = commandOf({ suite: of?.result.suite, scenarios: of && of.scenarios.length <= mostNamed ? of.scenarios : [], models: of ? [...new Set(of.result.models.map((m) => m.model))] : [model].filter(Boolean), trials: of?.trials ?? 10, out: `${folder.replace(/\/$/, "")}/${name}` });
  return <p class="eval-measure soft small">{of ? "Measure this suite again, in the folder of lathe.yaml:" : `Measure a model, in the folder of lathe.yaml${trend ? "; two results of one suite show a trend" : ""}:`} <Command>{command}</Command></p>;
}

export default function Evals() {
  const { data, error, reload } = useResource<{ data: Result[]; truncated?: boolean }>("api/evals", { every: 10_000 });
  const suites = [...new Set(data?.data.map((r) => r.suite ?? ""))].filter((s) => trendsOf(data!.data, s).size > 0), suite = suites.includes(param("suite")) ? param("suite") : suites[0];
  return <div class="page">
    <PageHeader title="Evaluations" note={<>How well models use tools, as <code>lathe eval</code> measured it. A wide interval means few runs.</>}>
      {suite !== undefined && <div class="filters">{suites.length > 1 && <label>Suite<select value={suite} onChange={(e) => setParams({ suite: e.currentTarget.value })}>{suites.map((s) => <option key={s} value={s}>{visible(s) || "without a name"}</option>)}</select></label>}<PassMark /></div>}
    </PageHeader>
    {error && !data && <NoResults error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data?.truncated && <p class="problem note">The folder has more results than are shown here.</p>}
    {data && <>
      {suite !== undefined && <Trend key={suite} results={data.data} suite={suite} />}
      <div class="eval-table"><DataTable label="Evaluations" columns={columns} rows={data.data} rowKey={(r) => r.id} sort={param("sort")} sortBy={(sort) => setParams({ sort })} to={(r) => `/evals/${enc(r.id)}`} empty={<Empty title="The folder holds no results yet." />} /></div>
      <Measure trend={suite === undefined && data.data.length > 0} /></>}
  </div>;
}
