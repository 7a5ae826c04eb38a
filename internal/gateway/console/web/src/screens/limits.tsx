// Models and keys: limits, and what was used in this month.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isGone } from "../api";
import { Badge, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, StateBadge, Time } from "../components/basics";
import type { Run, RunPage } from "../run/types";
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

// useLastRuns returns the last run of an entry of models, as far as it is among the newest runs, and how it ended for people.
export function useLastRuns(): { of: (m: Model) => Run | undefined; show: (m: Model) => ComponentChildren } {
  const { data } = useResource<RunPage>(`api/runs?limit=${newest}`, { every: 15_000 });
  const of = (m: Model) => data?.data.find((r) => isOf(m, r.target || r.model));
  return { of, show: (m) => {
    const run = of(m);
    if (!data) return "…";
    if (!run) return <span class="soft">{data.next ? `none of the newest ${newest} runs` : "none"}</span>;
    return <><StateBadge of={ofRun(run)} /> <Link to={`/runs/${encodeURIComponent(run.run_id)}`}><Time at={run.started} /></Link>{run.error_code && <>: <Seen text={words(run.error_code)} /></>}</>;
  } };
}

// limitsOf are the limits of a run of an entry, for people.
const limitsOf = (m: Model) => Object.entries(m.limits).filter(([, n]) => n <= Number.MAX_SAFE_INTEGER).map(([k, n]) => limit(k, n)).sort().join(", ") || "none";

// Entries is the table of models. Simulated ones that no run has asked are folded.
function Entries({ all }: { all: Model[] }) {
  const lastRun = useLastRuns();
  const [whole, set] = useState(false);
  const used = (m: Model) => m.provider !== "sim" || m.default || lastRun.of(m) !== undefined, shown = whole ? all : all.filter(used), rest = all.length - all.filter(used).length;
  return <><PlainTable label="Entries of models and their limits" head={["Entry", "Model", "Provider", "Last run", "Tool calls", "Limits of a run"]}>{shown.map((m) => <tr key={m.name}>
      <th scope="row"><Seen text={m.name} />{m.default && <> <Badge kind="run">default</Badge></>}</th><td><Seen text={m.model ?? m.name} /></td><td><Seen text={m.provider} /></td><td class="wide-cell">{lastRun.show(m)}</td><td>{m.supports_tools ? words(m.dialect) : <Badge>no tools</Badge>}</td><td class="wide-cell">{limitsOf(m)}</td></tr>)}</PlainTable>
    {rest > 0 && <div><button type="button" class="quiet small" aria-expanded={whole} onClick={() => set(!whole)}>{whole ? "Show fewer models" : `Show ${count(rest, "simulated model")} more`}</button></div>}</>;
}

export default function Models() {
  const models = useResource<{ data: Model[] }>("api/models", { every: 15_000 });
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
      {models.data && <Entries all={models.data.data} />}
    </section>
    <section class="stack" aria-labelledby="spend-h"><h2 id="spend-h">Use</h2>
      <p class="soft small">Model calls that were answered, as far as this key may see them{usage.data ? `, since ${usage.data.since} (UTC)` : ""}. Calls without a price add nothing to the cost.</p>
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
