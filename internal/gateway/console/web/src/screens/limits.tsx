// Models and keys: limits, and what was used in this month.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isGone } from "../api";
import { Badge, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, StateBadge, Time } from "../components/basics";
import type { RunPage } from "../run/types";
import { useResource } from "../resource";
import { ofRun } from "../state";
import { count, duration, words } from "../text/format";

export interface Model { name: string; provider: string; model?: string; dialect: string; supports_tools: boolean; default: boolean; limits: Record<string, number> }
interface Key { name: string; role: string; models?: string[]; tools?: string[]; approve: string[]; requests_per_minute: number; concurrency: number; active: number; max_cost?: number; max_tokens_total?: number; used?: { period: string; spent_cost: number; spent_tokens: number; cost_limit?: number; token_limit?: number }[] }
interface Used { calls: number; unpriced_calls?: number; input_tokens: number; output_tokens: number; cost: number }

// limits are the limits of a run for people, by the name of the setting.
const limits: Record<string, (n: number) => string> = { max_iterations: (n) => count(n, "model call"), max_total_tool_calls: (n) => count(n, "tool call"), run_timeout_ms: duration, max_tokens_total: (n) => count(n, "token") };
const limit = (key: string, n: number) => limits[key]?.(n) ?? `${words(key)} ${n.toLocaleString()}`;

// isOf reports whether a run or a row of the statistics with a name is of an entry: one that named no model has the name of the model of the default.
export const isOf = (m: Pick<Model, "name" | "model" | "default">, name = "") => name === m.name || m.default && name === m.model;

const newest = 200; // runs in which the last one of each model is looked for

// useLastRuns returns how the last run of an entry of models ended, as far as it is among the newest runs.
export function useLastRuns(): (m: Model) => ComponentChildren {
  const { data } = useResource<RunPage>(`api/runs?limit=${newest}`, { every: 15_000 });
  return (m) => {
    if (!data) return "…";
    const run = data.data.find((r) => isOf(m, r.target || r.model));
    if (!run) return data.next ? `none of the newest ${newest} runs` : "none";
    return <><StateBadge of={ofRun(run)} /> <Link to={`/runs/${encodeURIComponent(run.run_id)}`}><Time at={run.started} /></Link>{run.error_code && <>: <Seen text={words(run.error_code)} /></>}</>;
  };
}

export default function Models() {
  const models = useResource<{ data: Model[] }>("api/models", { every: 15_000 });
  const lastRun = useLastRuns();
  const [after, setAfter] = useState("");
  const keys = useResource<{ data: Key[]; next?: string }>(after ? `api/keys?after=${encodeURIComponent(after)}` : "api/keys", { every: 5000 });
  const next = keys.data?.next;
  const usage = useResource<{ since: string; data: (Used & { model: string })[] }>("api/usage", { every: 15_000 });
  const spent = new Map<string, Used>();
  for (const u of usage.data?.data ?? []) {
    const s = spent.get(u.model) ?? { calls: 0, unpriced_calls: 0, input_tokens: 0, output_tokens: 0, cost: 0 };
    spent.set(u.model, { calls: s.calls + u.calls, unpriced_calls: (s.unpriced_calls ?? 0) + (u.unpriced_calls ?? 0), input_tokens: s.input_tokens + u.input_tokens, output_tokens: s.output_tokens + u.output_tokens, cost: s.cost + u.cost });
  }
  return <div class="page">
    <PageHeader title="Models and keys" />
    <section class="stack" aria-labelledby="models-h"><h2 id="models-h">Models</h2>
      {models.error && !models.data && (isGone(models.error) ? <Empty title="This gateway does not describe its models." /> : <ErrorState error={models.error} retry={models.reload} />)}
      {!models.data && !models.error && <Loading />}
      <div class="cards">{models.data?.data.map((m) => <article key={m.name} class="card-box" aria-label={m.name}><div class="approval-head"><strong><Seen text={m.name} /></strong>{m.default && <Badge kind="run">default</Badge>}{!m.supports_tools && <Badge>no tools</Badge>}</div>
        <dl class="facts"><dt>Provider</dt><dd><Seen text={m.provider} />{m.model && m.model !== m.name && <> as <Seen text={m.model} /></>}</dd><dt>Last run</dt><dd>{lastRun(m)}</dd><dt>Tool calls</dt><dd>{words(m.dialect)}</dd><dt>Limits of a run</dt><dd>{Object.entries(m.limits).filter(([, n]) => n <= Number.MAX_SAFE_INTEGER).map(([k, n]) => limit(k, n)).sort().join(", ") || "none"}</dd></dl></article>)}</div>
    </section>
    <section class="stack" aria-labelledby="spend-h"><h2 id="spend-h">Use</h2>
      <p class="soft small">All model calls that this key may see{usage.data ? `, since ${usage.data.since} (UTC)` : ""}. Calls without a price add nothing to the cost.</p>
      {usage.error && !usage.data && (isGone(usage.error) ? <Empty title="This gateway does not count usage." /> : <ErrorState error={usage.error} retry={usage.reload} />)}
      {!usage.data && !usage.error && <Loading />}
      {usage.data && (spent.size === 0 ? <Empty title="No model call was made in this month." /> : <PlainTable label="Tokens and cost of each model" head={["Model", "Calls", "Input tokens", "Output tokens", "US $"]}>{[...spent].sort((a, b) => b[1].calls - a[1].calls).map(([name, s]) => <tr key={name}><th scope="row"><Seen text={name} /></th><td>{s.calls.toLocaleString()}</td><td>{s.input_tokens.toLocaleString()}</td><td>{s.output_tokens.toLocaleString()}</td><td>{s.unpriced_calls === s.calls ? "not known" : s.cost.toFixed(4)}{s.unpriced_calls && s.unpriced_calls < s.calls ? ` and ${count(s.unpriced_calls, "call")} without a price` : ""}</td></tr>)}</PlainTable>)}
    </section>
    <section class="stack" aria-labelledby="keys-h"><h2 id="keys-h">Keys</h2>
      {keys.error && !keys.data && <ErrorState error={keys.error} retry={keys.reload} />}
      {keys.data?.data.length === 0 && !after && <Empty title="This gateway has no keys.">Every process on its machine may call it. <code>keys</code> in lathe.yaml names some.</Empty>}
      <div class="cards">{keys.data?.data.map((k) => <article key={k.name} class="card-box" aria-label={k.name}><div class="approval-head"><strong><Seen text={k.name} /></strong><Badge kind={k.role === "admin" ? "wait" : ""}>{k.role}</Badge><span class="soft small">{count(k.active, "request")} in progress</span></div>
        <dl class="facts"><dt>Models</dt><dd><Seen text={k.models ? k.models.join(", ") || "none" : "all"} /></dd><dt>Tools</dt><dd><Seen text={k.tools ? k.tools.join(", ") || "none" : "all"} /></dd><dt>Decides about</dt><dd><Seen text={k.role === "admin" ? "all runs" : k.approve.join(", ") || "none"} /></dd>
          <dt>Limits</dt><dd>{[k.requests_per_minute ? `${k.requests_per_minute} requests a minute` : "", k.concurrency ? `${k.concurrency} requests at once` : "", k.max_tokens_total && k.max_tokens_total <= Number.MAX_SAFE_INTEGER ? `${k.max_tokens_total.toLocaleString()} tokens a run` : "", k.max_cost ? `$${k.max_cost} a run` : ""].filter(Boolean).join(", ") || "none of its own"}</dd>
          {k.used?.map((u) => <><dt>Used in {u.period}</dt><dd>${u.spent_cost.toFixed(4)}{u.cost_limit !== undefined && ` of $${u.cost_limit}`}, {u.spent_tokens.toLocaleString()}{u.token_limit !== undefined && ` of ${u.token_limit.toLocaleString()}`} tokens</dd></>)}</dl></article>)}</div>
      {(after || next) && <div class="box-actions">{after && <button type="button" class="quiet small" onClick={() => setAfter("")}>First page of keys</button>}{next && <button type="button" class="quiet small" onClick={() => setAfter(next)}>Next page of keys</button>}</div>}
    </section>
  </div>;
}
