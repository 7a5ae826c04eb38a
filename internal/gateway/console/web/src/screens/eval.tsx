// One result of an evaluation: models, the matrix of cases and models, and a run with its conversation.

import { useEffect, useMemo } from "preact/hooks";
import { enc } from "../api";
import { Badge, Copy, Empty, ErrorState, JsonView, Link, Loading, PageHeader, PlainTable, Seen, Time } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { useResource } from "../resource";
import { go, param, place, setParams } from "../router";
import { share } from "../run/compare";
import { Conversation } from "../run/Conversation";
import { money, type Message, type RunEvent } from "../run/types";
import { count, measured, moment, words } from "../text/format";
import { visible } from "../text/visible";
import type { ScreenProps } from ".";
import { apart, changeOf, changesOf, contradictions, figuresOf, interval, isNewer, nameOf, percent, verdictOf, type Change, type Filed, type Measured, type Result } from "../run/evalcompare";
import { markOf, PassMark, Trend } from "../run/Trend";
import { Measure, NoResults, outcome } from "./evals";

interface Run extends Filed { name: string; scenario: string; category?: string; trial: number; error_class?: string; error_message?: string; elapsed_ms: number; cost?: number }
interface Detail extends Result { runs: Run[]; truncated?: boolean; summary?: { measured?: { trials?: number }[] } }
interface Check { group: string; assert: string; ok: boolean; got?: unknown }
interface File { checks?: Check[]; history?: Message[]; reason?: string; error_message?: string; trace?: unknown }
interface Case { scenario: string; category?: string; runs: Map<string, Run[]> }

// casesOf groups runs by scenario, and within one by model.
function casesOf(runs: Run[]): Case[] {
  const cases = new Map<string, Case>();
  for (const r of runs) {
    const c = cases.get(r.scenario) ?? { scenario: r.scenario, category: r.category, runs: new Map<string, Run[]>() };
    cases.set(r.scenario, c);
    c.runs.set(nameOf(r), [...c.runs.get(nameOf(r)) ?? [], r]);
  }
  return [...cases.values()];
}

// meaning is what lathe eval says of all runs of a result together.
const meaning: Record<string, string> = { failed: "at least one run did not pass", inconclusive: "no run failed, but some have no score" };

// Apart is how the runs that count in no rate ended.
function Apart({ of: f }: { of: ReturnType<typeof figuresOf> }) {
  return <>{[["recovery", f.recovery] as const, ["control", f.control] as const].filter(([, t]) => t.runs).map(([name, t], i) => <span key={name} class="eval-apart">{i > 0 && " · "}{name} {t.ok}/{t.runs}</span>)}</>;
}

const passed = (runs: Run[] = []) => runs.filter((r) => r.ok).length;

const signs: Record<Change, string> = { better: "▲", worse: "▼", same: "", unknown: "" };

// Cell is how many runs of a case passed, beside those of the other result if there is one.
function Cell({ runs, against }: { runs?: Run[]; against?: { runs?: Run[] } }) {
  const change = against && changeOf(runs, against.runs);
  return change === undefined ? <Passed runs={runs} /> : <span class={`eval-pair ${change}`}><Passed runs={against!.runs} /> <span aria-hidden="true">→</span> <Passed runs={runs} /> {signs[change] && <b><span aria-hidden="true">{signs[change]}</span><span class="unseen">{change}</span></b>}</span>;
}

function Passed({ runs = [] }: { runs?: Run[] }) {
  const scored = runs.filter((r) => r.scored), n = passed(scored);
  if (!runs.length) return <span class="soft">–</span>;
  if (!scored.length) return <Badge kind="wait">no score</Badge>;
  return <Badge kind={n === scored.length ? "ok" : n ? "wait" : "bad"}>{n}/{scored.length}</Badge>;
}

// Rate draws a rate with its interval of 95 %; the text says the same.
function Rate({ m, was, mark }: { m: Measured; was?: Measured; mark: number }) {
  const low = (m.ok_rate_low ?? 0) * 100, high = (m.ok_rate_high ?? 0) * 100;
  return <div class="eval-rate"><span class="num">{interval(m)}</span>{was && <Moved m={m} was={was} />}{was?.ok_rate != null && <span class="eval-bar was" aria-hidden="true"><i style={{ left: `${(was.ok_rate_low ?? 0) * 100}%`, width: `${((was.ok_rate_high ?? 0) - (was.ok_rate_low ?? 0)) * 100}%` }} /><b style={{ left: `${was.ok_rate * 100}%` }} /></span>}{m.ok_rate !== null && <span class="eval-bar" aria-hidden="true"><i style={{ left: `${low}%`, width: `${high - low}%` }} /><b style={{ left: `${m.ok_rate * 100}%` }} /><u style={{ left: `${mark * 100}%` }} /></span>}</div>;
}

// Moved says by how much a rate moved, and whether that is more than chance.
function Moved({ m, was }: { m: Measured; was: Measured }) {
  if (m.ok_rate === null || was.ok_rate === null) return null;
  const by = Math.round((m.ok_rate - was.ok_rate) * 100), sure = apart(m, was);
  return <span class="small"><b class={by > 0 ? "better" : by < 0 ? "worse" : ""}>{by > 0 ? "▲ +" : by < 0 ? "▼ −" : ""}{Math.abs(by)} points</b> <span class="soft">from {percent(was.ok_rate)}{by === 0 ? "" : sure ? "; more than chance" : "; the intervals overlap"}</span></span>;
}

// Against chooses the result that this one is compared with.
function Against({ id, against, suite, all }: { id: string; against: string; suite?: string; all?: Result[] }) {
  const others = all?.filter((r) => r.id !== id && !r.problem) ?? [];
  if (!others.length && !against) return null;
  return <label class="eval-against">Compare with<select value={against} onChange={(e) => setParams({ against: e.currentTarget.value, changed: "" })}><option value="">nothing</option>
    {others.toSorted((a, b) => Number(b.suite === suite) - Number(a.suite === suite)).map((r) => <option key={r.id} value={r.id}>{visible(r.id)}{r.suite && r.suite !== suite ? `, suite ${visible(r.suite)}` : ""}</option>)}</select></label>;
}

// When is the day on which a result was measured, with its time if the other one is of the same day.
function When({ of, beside }: { of: Result; beside: Result }) {
  if (!of.started) return null;
  const day = (r: Result) => r.started && new Date(r.started).toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" });
  return <>, <time dateTime={of.started}>{day(of) === day(beside) ? moment(of.started) : day(of)}</time></>;
}

// Since says for each model how many cases are better and worse than in the older result, and how its rate moved.
function Since({ now, was, twin, changes }: { now: Detail; was: Detail; twin: (m: Measured) => Measured | undefined; changes: (model: string) => Change[] }) {
  const twins = new Set(now.models.map(twin)), gone = was.models.filter((m) => !twins.has(m));
  return <div class="compare-says eval-since" role="status"><p>From <b><Seen text={was.id} /></b><When of={was} beside={now} />, to <b><Seen text={now.id} /></b><When of={now} beside={was} /></p>
    <ul>{now.models.map((m) => { const of = twin(m), n = changesOf(changes(nameOf(m))); return <li key={nameOf(m)}><b><Seen text={nameOf(m)} /></b>: {!of ? <>not in <Seen text={was.id} /></> : <>{n.better + n.worse === 0 ? "no case changed" : <><span class={n.better ? "better" : ""}>{count(n.better, "case")} better</span>, <span class={n.worse ? "worse" : ""}>{count(n.worse, "case")} worse</span></>}{n.unknown > 0 && `, ${n.unknown.toLocaleString()} not scored in both`}<span class="eval-rates">; rate <Moved m={m} was={of} /></span></>}</li>; })}
      {gone.map((m) => <li key={nameOf(m)}><b><Seen text={nameOf(m)} /></b>: not in <Seen text={now.id} /></li>)}</ul></div>;
}

export default function Eval({ params }: ScreenProps) {
  const id = params.id ?? "";
  const { data, error, reload } = useResource<Detail>(`api/evals/${enc(id)}`);
  const all = useResource<{ data: Result[] }>("api/evals").data?.data, mark = markOf(), against = param("against"), other = useResource<Detail>(against ? `api/evals/${enc(against)}` : undefined), was = against ? other.data : undefined;
  const before = useMemo(() => new Map(casesOf(was?.runs ?? []).map((c) => [c.scenario, c])), [was]);
  const twin = (m: Measured) => was && (was.models.find((o) => nameOf(o) === nameOf(m)) ?? (was.models.length === 1 && data?.models.length === 1 ? was.models[0] : undefined));
  const runsBefore = (scenario: string, model: string) => { const c = before.get(scenario), own = data?.models.find((m) => nameOf(m) === model), of = own && twin(own); return c?.runs.get(of ? nameOf(of) : model); };
  const later = isNewer(all?.find((r) => r.id === against), data);
  useEffect(() => { // the newer of two results is shown, beside the older one
    if (!later) return;
    const query = new URLSearchParams(place.value.query);
    query.set("against", id);
    query.delete("run");
    go(`/evals/${enc(against)}?${query}`, { replace: true });
  }, [later]);
  const changes = (c: Case) => models.map((m) => changeOf(c.runs.get(m), runsBefore(c.scenario, m)));
  const show = param("show"), failing = show === "failed", changed = show === "changed" && Boolean(was), text = param("q").toLowerCase(), scenario = param("case"), name = param("run");
  const cases = useMemo(() => casesOf(data?.runs ?? []), [data]);
  const models = useMemo(() => { // in the order of the table of models
    const ran = new Set((data?.runs ?? []).map(nameOf));
    return [...new Set([...(data?.models ?? []).map(nameOf), ...ran])].filter((m) => ran.has(m));
  }, [data]);
  const rows = cases.filter((c) => (!changed || changes(c).some((x) => x === "better" || x === "worse")) && (!failing || [...c.runs.values()].flat().some((r) => !r.ok)) && (!text || `${c.scenario} ${c.category ?? ""}`.toLowerCase().includes(text)));
  const link = (values: Record<string, string>) => {
    const query = new URLSearchParams(place.value.query);
    for (const [k, v] of Object.entries(values)) if (v) query.set(k, v); else query.delete(k);
    return `/evals/${enc(id)}?${query}`;
  };
  const columns: Column<Case>[] = [
    { key: "case", title: "Case", cell: (c) => <><Seen text={c.scenario} />{kindOf(c) && <> <Badge>{kindOf(c)}</Badge></>}</>, width: "minmax(8rem, 2fr)" },
    ...models.map((m, i): Column<Case> => ({ key: m, title: visible(m), cell: (c) => <Cell runs={c.runs.get(m)} against={was && { runs: runsBefore(c.scenario, m) }} />, width: was ? "minmax(9rem, 1fr)" : "minmax(5rem, 1fr)", phone: i < 2 })),
  ];
  const figures = (m: Measured) => figuresOf(data!.runs.filter((r) => nameOf(r) === nameOf(m))), some = data?.models.some((m) => figures(m).recovery.runs + figures(m).control.runs > 0) ?? false;
  const kindOf = (c: Case) => { const r = [...c.runs.values()][0]?.[0]; return !some ? "" : r?.control ? "control" : r?.provokes ? "recovery" : ""; };
  const wrong = data && !data.truncated ? contradictions(data) : [];
  const chosen = cases.find((c) => c.scenario === scenario);
  return <div class="page">
    <PageHeader title={id} back={{ to: "/evals", label: "Evaluations" }} note={data && <>{data.suite && <>Suite <Seen text={data.suite} />, </>}{data.started && <Time at={data.started} />} {data.status && <Badge kind={outcome[data.status] ?? ""}>{data.status}</Badge>}{meaning[data.status ?? ""] && <span class="small"> {meaning[data.status ?? ""]}</span>}</>}>{data && <Against id={id} against={against} suite={data.suite} all={all} />}<Copy text={() => location.href} label="Copy link" /></PageHeader>
    {error && !data && <NoResults error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data?.problem && <ErrorState error={new Error(data.problem)} />}
    {data && <>
      {data.truncated && <p class="problem note">The folder has more runs than are shown here.</p>}
      {against && other.error && !was && <ErrorState error={other.error} retry={other.reload} />}
      {was && !later && <><Since now={data} was={was} twin={twin} changes={(model) => cases.map((c) => changeOf(c.runs.get(model), runsBefore(c.scenario, model)))} />
        {show !== "changed" && cases.some((c) => changes(c).some((x) => x === "better" || x === "worse")) && <div><button type="button" class="link" onClick={() => setParams({ show: "changed" })}>Show the cases that changed</button></div>}</>}
      {wrong.length > 0 && <div class="problem warning" role="note"><b>Figures of this result contradict one another</b><span class="sentence">{wrong.map(visible).join("; ")}.</span>{cases.length > 0 && <span>The outcome and the rates are those of summary.json, the cases those of the files of the runs.</span>}</div>}
      <div class="stack"><div class="eval-head"><h2>Models</h2><div class="filters"><PassMark /></div></div>
      <PlainTable label="Models" head={["Model", "Rate and interval of 95\u00a0%", "Pass mark", "Counted in the rate", ...(some ? ["Counted apart"] : []), "No score", "p50", "p95", "Cost"]}>
        {data.models.map((m) => { const [kind, word] = verdictOf(m, mark); return <tr key={nameOf(m)}><th scope="row"><Seen text={nameOf(m)} /></th><td><Rate m={m} was={twin(m)} mark={mark} /></td><td><Badge kind={kind}>{word}</Badge></td><td class="num">{m.ok}/{m.runs}</td>{some && <td class="num"><Apart of={figures(m)} /></td>}<td class="num">{m.errors}</td><td class="num">{measured(m.ms_p50)}{twin(m) && <span class="soft"> {share(twin(m)!.ms_p50, m.ms_p50)}</span>}</td><td class="num">{measured(m.ms_p95)}</td><td class="num">{m.cost ? money(m.cost) : "not known"}</td></tr>; })}
      </PlainTable>
      {was && <p class="soft small eval-note">The upper bar of a rate is of <Seen text={was.id} />, the lower one of <Seen text={id} />.</p>}
      {some && <p class="soft small eval-note">The rate counts the runs of cases with tools. Two kinds of cases are counted apart: <b>recovery</b>, whose prompts provoke a mistake, and <b>control</b>, which have no tools. The cases below have all {data.runs.length.toLocaleString()} runs.</p>}</div>
      <section class="stack" aria-labelledby="cases-h"><h2 id="cases-h">Cases</h2>
        {cases.length > 0 && <div class="filters"><label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
          <label>Show<select value={param("show")} onChange={(e) => setParams({ show: e.currentTarget.value })}><option value="">all cases</option><option value="failed">those that a run did not pass</option>{was && <option value="changed">those that changed</option>}</select></label>
          <span class="soft small">{count(rows.length, "case")}; Enter shows the runs of one</span></div>}
        <div class="eval-table"><DataTable label="Cases" columns={columns} rows={rows} rowKey={(c) => c.scenario} to={(c) => link({ case: c.scenario, run: "" })} empty={<Empty title={cases.length ? "No case fits." : "This result has no cases."} />} /></div>
      </section>
      {chosen && <section class="stack" aria-labelledby="runs-h"><h2 id="runs-h">Runs of <Seen text={chosen.scenario} /></h2>
        <PlainTable label="Runs of the case" head={["Run", "Model", "Outcome", "Why", "Time"]}>
          {[...chosen.runs.values()].flat().map((r) => <tr key={r.name} class={r.name === name ? "decides" : ""}><th scope="row"><Link to={link({ run: r.name })} aria-label={`Trial ${r.trial} of ${visible(nameOf(r))}`}>trial {r.trial}</Link></th><td><Seen text={nameOf(r)} /></td>
            <td><Badge kind={r.ok ? "ok" : r.scored ? "bad" : "wait"}>{r.ok ? "passed" : r.scored ? "failed" : "no score"}</Badge></td><td>{r.error_class && <b>{words(r.error_class.toLowerCase())} </b>}<Seen text={r.error_message ?? ""} /></td><td class="num">{measured(r.elapsed_ms)}</td></tr>)}
        </PlainTable></section>}
      {name && <One key={name} id={id} name={name} />}
      {all && <Trend results={all} suite={data.suite ?? ""} here={id} />}
      <Measure of={{ result: data, scenarios: cases.map((c) => c.scenario), trials: Math.max(1, ...data.runs.map((r) => r.trial), ...data.summary?.measured?.map((m) => m.trials ?? 1) ?? []) }} />
    </>}
  </div>;
}

// One shows a run: what was checked, and the conversation.
function One({ id, name }: { id: string; name: string }) {
  const { data, error, reload } = useResource<File>(`api/evals/${enc(id)}/runs/${enc(name)}`);
  const events = useMemo((): RunEvent[] => [{ event_id: 0, time: "1970-01-01T00:00:00Z", turn: 0, type: "RunStarted", data: {}, content: { messages: data?.history ?? [] }, raw: "" }], [data]);
  return <section class="stack" aria-labelledby="one-h"><h2 id="one-h"><Seen text={name} /></h2>
    {error && !data && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data && <>
      {data.checks?.length ? <PlainTable label="Checks" head={["Group", "What must hold", "Outcome", "Got"]}>{data.checks.map((c, i) => <tr key={i}><th scope="row"><Seen text={c.group} /></th><td><Seen text={c.assert} /></td><td><Badge kind={c.ok ? "ok" : "bad"}>{c.ok ? "holds" : "does not hold"}</Badge></td><td><Seen text={c.got === undefined ? "" : typeof c.got === "string" ? c.got : JSON.stringify(c.got)} /></td></tr>)}</PlainTable> : <Empty title="Nothing was checked." />}
      <Conversation events={events} live={false} />
      <details class="card-box"><summary>Trace</summary><JsonView text={JSON.stringify(data.trace ?? null)} label="Trace" /></details>
    </>}
  </section>;
}
