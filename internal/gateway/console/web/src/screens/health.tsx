// How the parts of the gateway are, and the servers of its models.

import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { enc, get, getText, send } from "../api";
import { causeIn, storedEvents, type Cause } from "../chat/cause";
import { announce, Badge, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, Time } from "../components/basics";
import { CauseLines } from "../components/Cause";
import { Command } from "../components/ErrorState";
import { Spark } from "../components/Spark";
import type { Setting } from "../policy";
import { useResource } from "../resource";
import { lasted, type Run } from "../run/types";
import { failureName } from "../state";
import { count, measured, moment } from "../text/format";
import { visible } from "../text/visible";
import { isOf, useLastRuns, type Model } from "./limits";

interface Health { ready: boolean; version?: string; revision?: string; go?: string; started?: string; store?: string; node?: string; checks: { name: string; ok: boolean; message?: string }[] }

export default function HealthScreen() {
  const { data, error, reload } = useResource<Health>("api/health", { every: 3000 });
  const stats = useResource<Stats>("api/stats?since=24h&buckets=24", { every: 15_000 });
  return <div class="page">
    <PageHeader title="Health" />
    {error && !data && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data && <section class="card-box" aria-label="Gateway"><div class="approval-head"><strong>Gateway</strong><Whole {...data} /></div>
      <dl class="run-facts"><div><dt>Version</dt><dd><Seen text={`${data.version ?? "unknown"}${data.revision ? ` (${data.revision})` : ""}, ${data.go ?? ""}`} /></dd></div>
        {data.started && <div><dt>Started</dt><dd><Time at={data.started} /></dd></div>}<div><dt>Store of runs</dt><dd>{data.store}</dd></div>{data.node && <div><dt>Node</dt><dd><Seen text={data.node} /></dd></div>}</dl><LastDay stats={stats.data} /></section>}
    <ModelServers stats={stats.data} again={stats.reload} />
    {data && <section class="stack" aria-labelledby="parts-h"><h2 id="parts-h">Parts</h2>
      <PlainTable label="Parts of the gateway" head={["Part", "State", "Detail"]}>{data.checks.toSorted((a, b) => Number(a.ok) - Number(b.ok)).map((c) => <tr key={c.name}><th scope="row"><Where name={c.name} /></th><td><Badge kind={c.ok ? "ok" : isTool(c) ? "wait" : "bad"}>{c.ok ? "ok" : isTool(c) ? "not offered" : "failed"}</Badge></td><td><Seen text={c.message ?? ""} /></td></tr>)}</PlainTable></section>}
  </div>;
}

// isTool reports whether a part is a tool. It is listed if it is not offered: its definition waits to be accepted, was refused, or is missing.
const isTool = (c: { name: string }) => c.name.startsWith("tool ");

// Whole is the state of the gateway with what of it failed, servers if nothing else did, else parts, and the tools that are not offered.
function Whole({ ready, checks }: Health) {
  const bad = checks.filter((c) => !c.ok), failed = bad.filter((c) => !isTool(c)), withheld = bad.length - failed.length, isServer = (c: { name: string }) => c.name.startsWith("server ");
  const one = failed.every(isServer) ? "server" : "part", all = checks.filter(one === "server" ? isServer : (c) => !isTool(c)).length;
  return <Badge kind={!ready ? "bad" : bad.length ? "wait" : "ok"}>{ready ? "ready" : "not ready"}{failed.length > 0 && `, ${failed.length} of ${count(all, one)} failed`}{withheld > 0 && `, ${count(withheld, "tool")} not offered`}</Badge>;
}

// Where leads from the name of a part to the screen that says more of it.
function Where({ name }: { name: string }) {
  const [, kind, of = ""] = /^(server|tool) (.+)$/.exec(name) ?? [];
  return kind ? <Link to={kind === "server" ? "/servers" : `/tools/${enc(of)}`}><Seen text={name} /></Link> : <Seen text={name} />;
}

interface Calls { calls: number; errors: number; p50_ms: number; p95_ms: number; first_token_p50_ms?: number }
interface Row { name?: string; time?: string; runs?: number; failed_runs?: number; model_calls?: Calls; tool_calls?: Calls }
interface Stats { total: Row; buckets: Row[]; models: Row[] }

// LastDay shows how the calls of the last 24 hours went, an hour a bar.
function LastDay({ stats }: { stats?: Stats }) {
  if (!stats || !stats.total.runs && !stats.total.model_calls?.calls) return null;
  const { total, buckets } = stats, at = (r: Row) => moment(r.time ?? ""), model = total.model_calls, tool = total.tool_calls;
  const failed = (bad: number | undefined) => bad ? <>, <span class="bad-number">{bad.toLocaleString()} failed</span></> : null;
  const calls = (of: (r: Row) => Calls | undefined) => buckets.map((r) => ({ all: of(r)?.calls ?? 0, bad: of(r)?.errors, title: `${at(r)}: ${count(of(r)?.calls ?? 0, "call")}, ${of(r)?.errors ?? 0} failed` }));
  return <dl class="sparks" aria-label="The last 24 hours">
    <Spark name="Runs, 24 h" kind="tail" label="Runs of each hour" bars={buckets.map((r) => ({ all: r.runs ?? 0, bad: r.failed_runs, title: `${at(r)}: ${count(r.runs ?? 0, "run")}, ${r.failed_runs ?? 0} failed` }))}><span class="num">{(total.runs ?? 0).toLocaleString()}{failed(total.failed_runs)}</span></Spark>
    {model && <Spark name="Model calls" kind="model" label="Model calls of each hour" bars={calls((r) => r.model_calls)}><span class="num">{model.calls.toLocaleString()}{failed(model.errors)}</span></Spark>}
    {model && <Spark name="Time of model calls" kind="model" label="p95 of the time of model calls of each hour" bars={buckets.map((r) => ({ all: r.model_calls?.p95_ms ?? 0, title: `${at(r)}: ${r.model_calls ? `p95 ${measured(r.model_calls.p95_ms)}` : "no call"}` }))}><span class="num">p95 {measured(model.p95_ms)}</span></Spark>}
    {tool && tool.calls > 0 && <Spark name="Tool calls" kind="tool" label="Tool calls of each hour" bars={calls((r) => r.tool_calls)}><span class="num">{tool.calls.toLocaleString()}{failed(tool.errors)}</span></Spark>}
  </dl>;
}

// A ModelCall is a finished call of a model.
interface ModelCall { run_id: string; time: string; model: string; status: "success" | "error"; error_code?: string; latency_ms: number }

const newest = 200; // calls in which the last ones of each model are looked for

// ModelServers says of each entry of models when its server last answered and failed, and what its calls of a day came to.
function ModelServers({ stats, again }: { stats?: Stats; again: () => void }) {
  const models = useResource<{ data: Model[] }>("api/models", { every: 15_000 });
  const config = useResource<{ data: Setting[] }>("api/config");
  const calls = useResource<{ data: ModelCall[]; next?: string }>(`api/summaries?limit=${newest}`, { every: 15_000 });
  const lastRun = useLastRuns();
  const callsOf = (m: Model) => stats?.models.find((s) => isOf(m, s.name))?.model_calls;
  const shown = models.data?.data.filter((m) => m.provider !== "sim" || callsOf(m)); // a simulated model has no server
  if (!shown) return null;
  const targets = new Map(lastRun.all?.map((r) => [r.run_id, r.target || r.model]));
  const lastOf = (m: Model, status: ModelCall["status"]) => calls.data?.data.find((c) => c.status === status && isOf(m, targets.get(c.run_id) ?? c.model));
  const none = <span class="soft">{calls.data ? calls.data.next ? `none of the last ${newest} calls` : "none" : "…"}</span>;
  const address = (m: Model) => config.data?.data.find((s) => s.key === `models.${m.name}.base_url`)?.value ?? "";
  const state = (m: Model): [kind: "" | "ok" | "wait" | "bad", word: string] => {
    const c = callsOf(m), good = lastOf(m, "success"), bad = lastOf(m, "error");
    if (!c?.calls) return ["", "not asked today"];
    return c.errors === c.calls ? ["bad", "all calls failed"] : bad && (!good || bad.time > good.time) ? ["bad", "last call failed"] : ["ok", "answers"];
  };
  const rank = (m: Model) => ["bad", "wait", "ok", ""].indexOf(state(m)[0]);
  return <section class="stack" aria-labelledby="models-h"><h2 id="models-h">Model servers</h2>
    {shown.length === 0 ? <Empty title="No model server has been asked.">Only simulated models are configured, and none was called in the last 24 hours.</Empty> : <><p class="soft small">Calls of the last 24 hours. The gateway asks a model server only when a run does; “Ask now” starts a run with one short question. <Command>lathe doctor</Command> examines a server.</p>
    <PlainTable label="Calls of each model server" head={["Entry", "State", "Last answer", "Last error", "Calls", "Failed", "p50, p95", "First token", "Ask"]} ends={[false, false, false, false, true, true, true, true]}>{shown.toSorted((a, b) => rank(a) - rank(b)).map((m) => {
      const c = callsOf(m), [kind, word] = state(m), last = lastRun.of(m), good = lastOf(m, "success"), bad = lastOf(m, "error");
      return <Fragment key={m.name}><tr class={last?.status === "failed" ? "explained" : ""}><th scope="row" class="health-entry"><Seen text={m.name} />{m.default && <> <Badge kind="run">default</Badge></>}<span class="soft small mono"><Seen text={[address(m) || m.provider, m.model !== m.name && m.model].filter(Boolean).join(", ")} /></span></th><td><Badge kind={kind}>{word}</Badge></td>
        <td>{good ? <><Link to={`/runs/${enc(good.run_id)}`}><Time at={good.time} /></Link>, <span class="num">in {measured(good.latency_ms)}</span></> : none}</td><td>{bad ? <><Link to={`/runs/${enc(bad.run_id)}`}><Time at={bad.time} /></Link>, <Seen text={failureName(bad.error_code ?? "failed")} /></> : none}</td>
        <td class="num end">{c?.calls.toLocaleString() ?? 0}</td><td class="num end">{c?.errors ? `${c.errors.toLocaleString()} (${Math.round(c.errors / c.calls * 100)} %)` : 0}</td><td class="num end">{c ? <>{measured(c.p50_ms)},<br />{measured(c.p95_ms)}</> : ""}</td><td class="num end">{c?.first_token_p50_ms ? measured(c.first_token_p50_ms) : ""}</td><td><Ask model={m.name} done={() => { again(); calls.reload(); }} /></td></tr>
        {last?.status === "failed" && <tr><td colSpan={9}><Why run={last} /></td></tr>}</Fragment>;
    })}</PlainTable></>}
  </section>;
}

const question = "Answer with one word: ready.", longestAnswer = 64; // tokens

// Ask has a model server asked now: it starts a run without tools, and says what came of it.
function Ask({ model, done }: { model: string; done: () => void }) {
  const [busy, setBusy] = useState(false), [run, set] = useState<Run>(), [error, setError] = useState<Error>();
  const ask = async () => {
    setBusy(true);
    set(undefined);
    setError(undefined);
    try {
      const begun = await send<Run>("POST", "api/runs", { model, prompt: question, tools: [], max_completion_tokens: longestAnswer });
      await getText(`api/runs/${enc(begun.run_id)}/events?follow=pause`);
      const ended = await get<Run>(`api/runs/${enc(begun.run_id)}`);
      set(ended);
      announce(`${visible(model)} ${ended.status === "failed" ? `failed: ${failureName(ended.error_code ?? "")}` : `answered in ${measured(lasted(ended, Date.now()))}`}.`);
    } catch (e) { setError(e as Error); }
    setBusy(false);
    done();
  };
  return <span class="health-ask"><button type="button" class="quiet small" disabled={busy} onClick={() => void ask()}>{busy ? "Asking…" : "Ask now"}<span class="unseen"> {visible(model)}</span></button>
    {run && <span class="small"><Link to={`/runs/${enc(run.run_id)}`}>{run.status === "failed" ? "failed" : "answered"}</Link> {run.status === "failed" ? <span class="bad-number">{visible(failureName(run.error_code ?? ""))}</span> : <span class="num">in {measured(lasted(run, Date.now()))}</span>}</span>}{error && <span class="small bad-number" role="alert">{visible(error.message)}</span>}</span>;
}

// Why says what a model server failed with in a run, and what can be done.
function Why({ run }: { run: Run }) {
  const [cause, set] = useState<Cause | null>();
  useEffect(() => {
    let over = false;
    storedEvents(run.run_id).then((events) => { if (!over) set(causeIn(events) ?? null); }, () => { if (!over) set(null); });
    return () => { over = true; };
  }, [run.run_id]);
  if (cause === undefined) return <span class="soft small">…</span>;
  return <div class="health-why">{cause ? <CauseLines cause={cause} /> : <span>{failureName(run.error_code ?? "")}</span>}</div>;
}
