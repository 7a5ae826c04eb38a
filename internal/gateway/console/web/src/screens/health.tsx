// How the parts of the server are.

import { Badge, ErrorState, Loading, PageHeader, PlainTable, Seen, Time } from "../components/basics";
import { useResource } from "../resource";

interface Health { ready: boolean; version?: string; revision?: string; go?: string; started?: string; store?: string; node?: string; checks: { name: string; ok: boolean; message?: string }[] }

export default function HealthScreen() {
  const { data, error, reload } = useResource<Health>("api/health", { every: 3000 });
  return <div class="page">
    <PageHeader title="Health" />
    {error && !data && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data && <><section class="card-box" aria-label="Server"><p><Badge kind={data.ready ? "ok" : "bad"}>{data.ready ? "ready" : "not ready"}</Badge></p>
      <dl class="facts"><dt>Version</dt><dd><Seen text={`${data.version ?? "unknown"}${data.revision ? ` (${data.revision})` : ""}, ${data.go ?? ""}`} /></dd>
        {data.started && <><dt>Started</dt><dd><Time at={data.started} /></dd></>}<dt>Runs are kept in</dt><dd>{data.store}</dd>{data.node && <><dt>Node</dt><dd><Seen text={data.node} /></dd></>}</dl></section>
      <PlainTable label="Parts" head={["Part", "State", "Detail"]}>{data.checks.map((c) => <tr key={c.name}><th scope="row"><Seen text={c.name} /></th><td><Badge kind={c.ok ? "ok" : "bad"}>{c.ok ? "fine" : "needs a look"}</Badge></td><td><Seen text={c.message ?? ""} /></td></tr>)}</PlainTable></>}
  </div>;
}
