// Models and keys: limits, and what was used in this month.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { query, isGone } from "../api";
import { Badge, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, StateBadge, Time } from "../components/basics";
import { Command } from "../components/ErrorState";
import type { Run, RunPage } from "../run/types";
import { useResource } from "../resource";
import { failureName, ofRun } from "../state";
import { count, duration, notReported, words } from "../text/format";
import { Bars } from "../components/Spark";
import { param, setParams } from "../router";
import { visible } from "../text/visible";

export interface Model { name: string; provider: string; model?: string; dialect: string; supports_tools: boolean; default: boolean; limits: Record<string, number> }
interface Key { name: string; role: string; models?: string[]; tools?: string[]; approve: string[]; requests_per_minute: number; concurrency: number; active: number; max_cost?: number; max_tokens_total?: number; used?: { period: string; spent_cost: number; spent_tokens: number; cost_limit?: number; token_limit?: number }[] }
interface Used { day?: string; key?: string; model?: string; calls: number; unpriced_calls?: number; input_tokens: number; output_tokens: number; cost: number }

// limits are the limits of a run for people, by the name of the setting.
const limits: Record<string, (n: number) => string> = { max_iterations: (n) => count(n, "model call"), max_total_tool_calls: (n) => count(n, "tool call"), run_timeout_ms: duration, max_tokens_total: (n) => count(n, "token") };
const limit = (key: string, n: number) => limits[key]?.(n) ?? `${words(key)} ${n.toLocaleString()}`;

// isOf reports whether a run or a row of the statistics with a name is of an entry: one that named no model has the name of the model of the default.
export const isOf = (m: Pick<Model, "name" | "model" | "default">, name = "") => name === m.name || m.default && name === m.model;

const newest = 200; // runs in which the last one of each model is looked for

// useLastRuns returns the last run of an entry of models, as far as it is among the newest runs, and how it ended for people.
export function useLastRuns(): { all: Run[] | undefined; of: (m: Model) => Run | undefined; show: (m: Model) => ComponentChildren } {
  const { data } = useResource<RunPage>(`api/runs?limit=${newest}`, { every: 15_000 });
  const of = (m: Model) => data?.data.find((r) => isOf(m, r.target || r.model));
  return { all: data?.data, of, show: (m) => {
    const run = of(m);
    if (!data) return "…";
    if (!run) return <span class="soft">{data.next ? `none of the newest ${newest} runs` : "none"}</span>;
    return <><StateBadge of={ofRun(run)} /> <Link to={`/runs/${encodeURIComponent(run.run_id)}`}><Time at={run.started} /></Link>{run.error_code && <>: <Seen text={failureName(run.error_code)} /></>}</>;
  } };
}

// kept are the limits of a run of an entry that hold: a number above is none.
const kept = (m: Model) => Object.entries(m.limits).filter(([, n]) => n <= Number.MAX_SAFE_INTEGER);

// limitsOf are the limits of a run of an entry, for people.
const limitsOf = (m: Model) => kept(m).map(([k, n]) => limit(k, n)).sort().join(", ") || "none";

// uses say how much of a limit a run used, and which reason a run has that the limit ended. The time of a run has waits in it that do not count.
const uses: Record<string, { name: string; used?: (r: Run) => number; reason: string }> = {
  max_iterations: { name: "Model calls", used: (r) => r.turns, reason: "max_iterations" }, max_total_tool_calls: { name: "Tool calls", used: (r) => r.tool_calls, reason: "max_total_tool_calls" },
  max_tokens_total: { name: "Tokens", used: (r) => r.usage.total_tokens, reason: "budget_exceeded" }, run_timeout_ms: { name: "Time, without waits", reason: "run_timeout" },
};

// RunLimits shows the limits of a run beside the most that one of the newest runs used of them. Entries with the same limits share a table.
function RunLimits({ all, runs }: { all: Model[]; runs?: Run[] }) {
  const groups = new Map<string, Model[]>();
  for (const m of all) groups.set(limitsOf(m), [...groups.get(limitsOf(m)) ?? [], m]);
  return <div class="stack"><h2>Limits of a run</h2>
    <p class="soft small">What one run may do, and what the newest {runs?.length ?? 0} runs used of it. The settings of tool calls in <Link to="/settings?show=all&section=tool_calling">the settings</Link> change them.</p>
    {[...groups].map(([key, models]) => {
      const of = runs?.filter((r) => models.some((m) => isOf(m, r.target || r.model))) ?? [], names = groups.size > 1 ? models.map((m) => visible(m.name)).join(", ") : "", ran = of.length > 0;
      return <PlainTable key={key} label={`Limits of a run${names && ` with ${names}`}`} head={[names ? `With ${names}` : "With every model", "Limit", ...ran ? ["Most that a run used", "Ended by it"] : []]} ends={[false, true, false, true]}>{kept(models[0]!).map(([k, n]) => {
        const use = uses[k], ended = of.filter((r) => r.reason === use?.reason).length, most = use?.used && of.length ? Math.max(...of.map(use.used)) : undefined;
        return <tr key={k}><th scope="row">{use?.name ?? words(k)}</th><td class="num end">{!use ? limit(k, n) : use.used ? n.toLocaleString() : duration(n)}</td>{ran && <><td>{most !== undefined && <div class="budget"><span class="num">{most.toLocaleString()} <span class="soft">({Math.round(most / n * 100)} %)</span></span><Budget label={`${use!.name}: the most that a run used`} spent={most} limit={n} /></div>}</td>
          <td class="num end">{!use ? "" : ended ? <Link to={query("/runs", { reason: use.reason })}>{count(ended, "run")}</Link> : <span class="soft">no run</span>}</td></>}</tr>;
      })}</PlainTable>;
    })}</div>;
}

// Entries is the table of models. Simulated ones that no run has asked are folded.
function Entries({ all }: { all: Model[] }) {
  const lastRun = useLastRuns();
  const [whole, set] = useState(false);
  const used = (m: Model) => m.provider !== "sim" || m.default || lastRun.of(m) !== undefined, shown = whole ? all : all.filter(used), rest = all.length - all.filter(used).length;
  return <><PlainTable label="Entries of models" head={["Entry", "Model", "Provider", "Last run", "Tool calls"]}>{shown.map((m) => <tr key={m.name}>
      <th scope="row"><Seen text={m.name} />{m.default && <> <Badge kind="run">default</Badge></>}</th><td><Seen text={m.model ?? m.name} /></td><td><Seen text={m.provider} /></td><td class="wide-cell">{lastRun.show(m)}</td><td>{m.supports_tools ? words(m.dialect) : <Badge>no tools</Badge>}</td></tr>)}</PlainTable>
    {rest > 0 && <div><button type="button" class="quiet small" aria-expanded={whole} onClick={() => set(!whole)}>{whole ? "Show fewer models" : `Show ${count(rest, "simulated model")} more`}</button></div>}
    <RunLimits all={all} runs={lastRun.all} /></>;
}

interface Usage { since: string; until: string; data: Used[] }

const day = 86_400_000; // ms

// daysOf returns the days of a report, in UTC, up to today.
function daysOf({ since, until }: Usage): string[] {
  const out: string[] = [];
  for (let t = Date.parse(since); t < Date.parse(until) && out.length < 366; t += day) out.push(new Date(t).toISOString().slice(0, 10));
  return out;
}

// Spent is what was used, by model or by key, with the calls of each day.
function Spent({ usage }: { usage: Usage }) {
  const by = param("by") === "key" ? "key" : "model", many = new Set(usage.data.map((u) => u.key)).size > 1, days = daysOf(usage);
  const groups = new Map<string, Used[]>();
  for (const u of usage.data) groups.set(u[by] ?? "", [...groups.get(u[by] ?? "") ?? [], u]);
  const sum = (of: Used[], what: (u: Used) => number | undefined) => of.reduce((n, u) => n + (what(u) ?? 0), 0);
  return <>{many && <div class="filters"><label>By<select value={by} onChange={(e) => setParams({ by: e.currentTarget.value === "key" ? "key" : "" })}><option value="model">model</option><option value="key">key</option></select></label></div>}
    <PlainTable label={`Tokens and cost of each ${by}`} head={[by === "key" ? "Key" : "Model", "Calls by day", "Calls", "Input tokens", "Output tokens", "US $"]} ends={[false, false, true, true, true, true]}>{[...groups].sort((a, b) => sum(b[1], (u) => u.calls) - sum(a[1], (u) => u.calls)).map(([name, of]) => {
      const calls = sum(of, (u) => u.calls), tokens = (what: (u: Used) => number) => sum(of, (u) => u.input_tokens + u.output_tokens) ? sum(of, what).toLocaleString() : notReported, unpriced = sum(of, (u) => u.unpriced_calls), daily = days.map((d) => ({ d, n: sum(of.filter((u) => u.day === d), (u) => u.calls) }));
      return <tr key={name}><th scope="row"><Seen text={name || "no key"} /></th><td><Bars kind="model" label={`Calls of ${visible(name)} by day, ${days[0]} to ${days.at(-1)}`} bars={daily.map(({ d, n }) => ({ all: n, title: `${d}: ${count(n, "call")}` }))} /></td>
        <td class="num end">{calls.toLocaleString()}</td><td class="num end">{tokens((u) => u.input_tokens)}</td><td class="num end">{tokens((u) => u.output_tokens)}</td><td class="num end">{unpriced === calls ? "not known" : sum(of, (u) => u.cost).toFixed(4)}{unpriced > 0 && unpriced < calls ? ` and ${count(unpriced, "call")} without a price` : ""}</td></tr>;
    })}</PlainTable></>;
}

// Budget shows how much of a limit is used.
const Budget = ({ label, spent, limit }: { label: string; spent: number; limit: number }) => <meter aria-label={label} min={0} max={limit} high={limit * .8} optimum={0} value={Math.min(spent, limit)} />;

export default function Models() {
  const models = useResource<{ data: Model[] }>("api/models", { every: 15_000 });
  const [after, setAfter] = useState("");
  const keys = useResource<{ data: Key[]; next?: string }>(after ? `api/keys?after=${encodeURIComponent(after)}` : "api/keys", { every: 5000 });
  const next = keys.data?.next;
  const usage = useResource<Usage>("api/usage", { every: 15_000 });
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
      {usage.data && (usage.data.data.length === 0 ? <Empty title="No model call was made in this month." /> : <Spent usage={usage.data} />)}
    </section>
    <section class="stack" aria-labelledby="keys-h"><h2 id="keys-h">Keys</h2>
      {keys.error && !keys.data && <ErrorState error={keys.error} retry={keys.reload} />}
      {keys.data?.data.length === 0 && !after && <Empty title="This gateway has no keys.">Every process on its machine may call it. <Command>lathe keys new</Command> prints a key and its hash. Put the hash into lathe.yaml as <code>keys.NAME.sha256</code>.</Empty>}
      <div class="cards">{keys.data?.data.map((k) => <article key={k.name} class="card-box" aria-label={k.name}><div class="approval-head"><strong><Seen text={k.name} /></strong><Badge kind={k.role === "admin" ? "wait" : ""}>{k.role}</Badge></div>
        <dl class="facts"><dt>Models</dt><dd><Seen text={k.models ? k.models.join(", ") || "none" : "all"} /></dd><dt>Tools</dt><dd><Seen text={k.tools ? k.tools.join(", ") || "none" : "all"} /></dd><dt>Decides about</dt><dd><Seen text={k.role === "admin" ? "all runs" : k.approve.join(", ") || "none"} /></dd>
          <dt>Limits</dt><dd>{[k.requests_per_minute ? `${k.requests_per_minute} requests a minute` : "", k.concurrency ? `${k.concurrency} requests at once` : "", k.max_tokens_total && k.max_tokens_total <= Number.MAX_SAFE_INTEGER ? `${k.max_tokens_total.toLocaleString()} tokens a run` : "", k.max_cost ? `$${k.max_cost} a run` : ""].filter(Boolean).join(", ") || "none of its own"}</dd>
          <dt>In progress</dt><dd class="budget"><span class="num">{k.active}{k.concurrency ? ` of ${k.concurrency} requests at once` : ` ${k.active === 1 ? "request" : "requests"}`}</span>{k.concurrency ? <Budget label={`Requests of ${visible(k.name)} in progress`} spent={k.active} limit={k.concurrency} /> : null}</dd>
          {k.used?.map((u) => <><dt>Used in {u.period}</dt><dd class="budget"><span>${u.spent_cost.toFixed(4)}{u.cost_limit !== undefined && ` of $${u.cost_limit}`}, {u.spent_tokens.toLocaleString()}{u.token_limit !== undefined && ` of ${u.token_limit.toLocaleString()}`} tokens</span>
            {u.cost_limit ? <Budget label={`Cost of ${visible(k.name)} in ${u.period}`} spent={u.spent_cost} limit={u.cost_limit} /> : null}{u.token_limit ? <Budget label={`Tokens of ${visible(k.name)} in ${u.period}`} spent={u.spent_tokens} limit={u.token_limit} /> : null}</dd></>)}</dl></article>)}</div>
      {(after || next) && <div class="box-actions">{after && <button type="button" class="quiet small" onClick={() => setAfter("")}>First page of keys</button>}{next && <button type="button" class="quiet small" onClick={() => setAfter(next)}>Next page of keys</button>}</div>}
    </section>
  </div>;
}
