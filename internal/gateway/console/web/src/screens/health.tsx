// How the parts of the gateway are, and the servers of its models.

import { Badge, ErrorState, Loading, PageHeader, PlainTable, Seen, Time } from "../components/basics";
import type { Setting } from "../policy";
import { useResource } from "../resource";
import { duration } from "../text/format";
import { isOf, useLastRuns, type Model } from "./limits";

interface Health { ready: boolean; version?: string; revision?: string; go?: string; started?: string; store?: string; node?: string; checks: { name: string; ok: boolean; message?: string }[] }

export default function HealthScreen() {
  const { data, error, reload } = useResource<Health>("api/health", { every: 3000 });
  return <div class="page">
    <PageHeader title="Health" />
    {error && !data && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data && <><section class="card-box" aria-label="Gateway"><p><Badge kind={data.ready ? "ok" : "bad"}>{data.ready ? "ready" : "not ready"}</Badge></p>
      <dl class="facts"><dt>Version</dt><dd><Seen text={`${data.version ?? "unknown"}${data.revision ? ` (${data.revision})` : ""}, ${data.go ?? ""}`} /></dd>
        {data.started && <><dt>Started</dt><dd><Time at={data.started} /></dd></>}<dt>Runs are kept in</dt><dd>{data.store}</dd>{data.node && <><dt>Node</dt><dd><Seen text={data.node} /></dd></>}</dl></section>
      <PlainTable label="Parts" head={["Part", "State", "Detail"]}>{data.checks.map((c) => <tr key={c.name}><th scope="row"><Seen text={c.name} /></th><td><Badge kind={c.ok ? "ok" : "bad"}>{c.ok ? "fine" : "has a problem"}</Badge></td><td><Seen text={c.message ?? ""} /></td></tr>)}</PlainTable></>}
    <ModelServers />
  </div>;
}

interface Calls { calls: number; errors: number; p50_ms: number; p95_ms: number }

// ModelServers says of each entry of models what its calls of a day came to. Nothing asks the servers: what runs asked of them is counted.
function ModelServers() {
  const models = useResource<{ data: Model[] }>("api/models", { every: 15_000 });
  const stats = useResource<{ models: { name?: string; model_calls?: Calls }[] }>("api/stats?since=24h&buckets=1", { every: 15_000 });
  const config = useResource<{ data: Setting[] }>("api/config");
  const lastRun = useLastRuns();
  const callsOf = (m: Model) => stats.data?.models.find((s) => isOf(m, s.name))?.model_calls;
  const shown = models.data?.data.filter((m) => m.provider !== "sim" || callsOf(m)); // a simulated model has no server
  if (!shown?.length) return null;
  const address = (m: Model) => config.data?.data.find((s) => s.key === `models.${m.name}.base_url`)?.value ?? "";
  const state = (c?: Calls): [kind: "" | "ok" | "wait" | "bad", word: string] => !c ? ["", "not called"] : c.errors === c.calls ? ["bad", "all calls failed"] : c.errors ? ["wait", "some calls failed"] : ["ok", "fine"];
  return <section class="stack" aria-labelledby="models-h"><h2 id="models-h">Model servers</h2>
    <p class="soft small">What the calls of the last 24 hours came to. The gateway asks a model server only when a run does; <code>lathe doctor</code> asks one on purpose.</p>
    <PlainTable label="Calls of each model server" head={["Model", "State", "Last run", "Calls", "Failed", "p50", "p95", "Address"]}>{shown.map((m) => {
      const calls = callsOf(m), [kind, word] = state(calls);
      return <tr key={m.name}><th scope="row"><Seen text={m.name} />{m.model && m.model !== m.name && <span class="soft"> <Seen text={m.model} /></span>}</th><td><Badge kind={kind}>{word}</Badge></td><td>{lastRun(m)}</td>
        <td class="num">{calls?.calls.toLocaleString() ?? 0}</td><td class="num">{calls?.errors ? `${calls.errors.toLocaleString()} (${Math.round(calls.errors / calls.calls * 100)} %)` : 0}</td><td class="num">{calls ? duration(calls.p50_ms) : ""}</td><td class="num">{calls ? duration(calls.p95_ms) : ""}</td><td class="mono"><Seen text={address(m) || m.provider} /></td></tr>;
    })}</PlainTable>
  </section>;
}
