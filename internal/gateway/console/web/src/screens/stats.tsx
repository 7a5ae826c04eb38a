// Rates, errors, latencies, tokens and cost over time.

import { useRef, useState } from "preact/hooks";
import { query } from "../api";
import { Empty, ErrorState, Link, Loading, PageHeader, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { go, param, setParams } from "../router";
import { money } from "../run/types";
import { duration, words } from "../text/format";

interface Calls { calls: number; errors: number; p50_ms: number; p95_ms: number; first_token_p50_ms?: number }
interface Row { time?: string; name?: string; runs?: number; failed_runs?: number; model_calls?: Calls; tool_calls?: Calls; input_tokens?: number; output_tokens?: number; cost?: number }
interface Stats { since: string; until: string; step_seconds: number; complete_since?: string; total: Row; buckets: Row[]; models: Row[]; tools: Row[]; reasons: Row[] }

const spans: [value: string, label: string][] = [["15m", "15 minutes"], ["1h", "hour"], ["6h", "6 hours"], ["24h", "24 hours"], ["7d", "7 days"]];

interface Series { label: string; kind: "model" | "tool" | "bad" | "wait"; value: (r: Row) => number | undefined }

const charts: { title: string; shape: "bars" | "lines"; unit: (n: number) => string; series: Series[] }[] = [
  { title: "Runs", shape: "bars", unit: (n) => n.toLocaleString(), series: [{ label: "started", kind: "model", value: (r) => r.runs }, { label: "failed", kind: "bad", value: (r) => r.failed_runs }] },
  { title: "Model calls", shape: "bars", unit: (n) => n.toLocaleString(), series: [{ label: "calls", kind: "model", value: (r) => r.model_calls?.calls }, { label: "errors", kind: "bad", value: (r) => r.model_calls?.errors }] },
  { title: "Time of model calls", shape: "lines", unit: duration, series: [{ label: "p50", kind: "model", value: (r) => r.model_calls?.p50_ms }, { label: "p95", kind: "wait", value: (r) => r.model_calls?.p95_ms }] },
  { title: "Tool calls", shape: "bars", unit: (n) => n.toLocaleString(), series: [{ label: "calls", kind: "tool", value: (r) => r.tool_calls?.calls }, { label: "errors", kind: "bad", value: (r) => r.tool_calls?.errors }] },
  { title: "Time of tool calls", shape: "lines", unit: duration, series: [{ label: "p50", kind: "tool", value: (r) => r.tool_calls?.p50_ms }, { label: "p95", kind: "wait", value: (r) => r.tool_calls?.p95_ms }] },
  { title: "Tokens", shape: "bars", unit: (n) => n.toLocaleString(), series: [{ label: "in", kind: "model", value: (r) => (r.input_tokens ?? 0) + (r.output_tokens ?? 0) }, { label: "out", kind: "tool", value: (r) => r.output_tokens }] },
];

// roundUp returns the next number of which the axis has a round half: 1, 2, 4, 6, 8, 10 and so on.
function roundUp(n: number): number {
  const unit = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 6, 8].map((k) => k * unit).find((t) => t >= n) ?? 10 * unit;
}

const wide = 600, high = 120; // of the drawing, in its own units

// Chart draws one bar or point for each bucket. A stretch that is dragged over leads to its runs.
function Chart({ chart, stats }: { chart: (typeof charts)[number]; stats: Stats }) {
  const [drag, set] = useState<[from: number, to: number]>();
  const box = useRef<SVGSVGElement>(null);
  const rows = stats.buckets, top = roundUp(Math.max(1, ...rows.flatMap((r) => chart.series.map((s) => s.value(r) ?? 0))));
  const [over, setOver] = useState<number>();
  const clockOf = (i: number) => { const t = rows[i]?.time; return t ? new Date(t).toLocaleString([], Date.parse(stats.until) - Date.parse(rows[0]!.time!) > 864e5 ? { month: "short", day: "numeric", hour: "2-digit" } : { hour: "2-digit", minute: "2-digit" }) : ""; };
  const step = wide / rows.length, y = (n: number) => high - n / top * (high - 4);
  const at = (e: PointerEvent) => {
    const r = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(rows.length - 1, Math.floor((e.clientX - r.left) / r.width * rows.length)));
  };
  const lines = (s: Series) => { // a gap where there were no calls
    let d = "", pen = false;
    rows.forEach((r, i) => {
      const v = s.value(r);
      if (v === undefined) { pen = false; return; }
      d += `${pen ? "L" : "M"}${(i + .5) * step} ${y(v)}${pen ? "" : "h.01"}`;
      pen = true;
    });
    return d;
  };
  const points = (s: Series) => rows.map((r, i) => s.value(r) !== undefined && [rows[i - 1], rows[i + 1]].every((n) => n === undefined || s.value(n) === undefined) ? `M${(i + .5) * step} ${y(s.value(r)!)}h.01` : "").join(""); // without a neighbour, which no line reaches
  const says = chart.series.map((s) => `${s.label} at most ${chart.unit(Math.max(0, ...rows.map((r) => s.value(r) ?? 0)))}`).join(", ");
  const [a, b] = drag ? [Math.min(...drag), Math.max(...drag)] : [0, 0];
  return <figure class="card-box stats-chart">
    <figcaption><h2>{chart.title}</h2><span class="stats-key">{chart.series.map((s) => <span key={s.label}><i class={s.kind} />{s.label}</span>)}</span></figcaption>
    <div class="stats-plot"><span class="stats-top num" aria-hidden="true">{chart.unit(top)}</span>
      <svg ref={box} viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" role="img" aria-label={`${chart.title}: ${says}`}
        onPointerDown={(e) => { box.current!.setPointerCapture(e.pointerId); set([at(e), at(e)]); }}
        onPointerMove={(e) => { setOver(at(e)); if (drag) set([drag[0], at(e)]); }}
        onPointerLeave={() => setOver(undefined)}
        onPointerCancel={() => set(undefined)}
        onPointerUp={() => {
          if (!drag) return;
          set(undefined);
          if (a === b) return;
          const from = rows[a]!.time!, to = rows[b + 1]?.time ?? stats.until;
          go(query("/runs", { since: from, until: to }));
        }}>
        <path class="stats-base" d={`M0 ${high - .5}H${wide}M0 ${y(top / 2)}H${wide}M0 ${y(top)}H${wide}`} />
        {chart.shape === "bars" ? chart.series.map((s) => <path key={s.label} class={`fill ${s.kind}`} d={rows.map((r, i) => { const v = s.value(r); return v ? `M${i * step + step * .1} ${high}V${y(v)}h${step * .8}V${high}z` : ""; }).join("")} />)
          : chart.series.map((s) => <g key={s.label}><path class={`line ${s.kind}`} d={lines(s)} /><path class={`line point ${s.kind}`} d={points(s)} /></g>)}
        {over !== undefined && <path class="stats-over" d={`M${(over + .5) * step} 0V${high}`} />}
        {drag && <rect class="stats-drag" x={a * step} width={(b - a + 1) * step} y="0" height={high} />}
      </svg>
      <span class="stats-half num" aria-hidden="true">{top > 1 && (chart.shape === "lines" || top % 2 === 0) ? chart.unit(top / 2) : ""}</span>
    </div>
    <div class="stats-axis num" aria-hidden="true">{over === undefined ? <><span>{clockOf(0)}</span><span>{clockOf(Math.floor(rows.length / 2))}</span><span>{clockOf(rows.length - 1)}</span></>
      : <span>{clockOf(over)}: {chart.series.map((s) => { const v = s.value(rows[over]!); return `${s.label} ${v === undefined ? "none" : chart.unit(v)}`; }).join(", ")}</span>}</div>
  </figure>;
}

function Table({ title, rows, of, to }: { title: string; rows: Row[]; of: (r: Row) => Calls | undefined; to: (name: string) => string }) {
  return <section class="card-box stats-table"><h2>{title}</h2>
    {rows.length === 0 ? <p class="soft">None in this time.</p> : <div class="stats-scroll" tabIndex={0} role="region" aria-label={title}><table>
      <thead><tr><th scope="col">Name</th><th scope="col">Calls</th><th scope="col">Errors</th><th scope="col">p50</th><th scope="col">p95</th>{title === "Models" && <><th scope="col">First token</th><th scope="col">Tokens</th><th scope="col">Cost</th></>}</tr></thead>
      <tbody>{rows.map((r) => {
        const c = of(r)!;
        return <tr key={r.name}><th scope="row"><Link to={to(r.name ?? "")}><Seen text={r.name || "unknown"} /></Link></th><td>{c.calls.toLocaleString()}</td><td class={c.errors ? "bad" : ""}>{c.errors ? `${c.errors.toLocaleString()} (${Math.round(c.errors / c.calls * 100)} %)` : "0"}</td><td>{duration(c.p50_ms)}</td><td>{duration(c.p95_ms)}</td>
          {title === "Models" && <><td>{c.first_token_p50_ms ? duration(c.first_token_p50_ms) : ""}</td><td>{((r.input_tokens ?? 0) + (r.output_tokens ?? 0)).toLocaleString()}</td><td>{r.cost ? money(r.cost) : ""}</td></>}</tr>;
      })}</tbody></table></div>}
  </section>;
}

export default function StatsScreen() {
  const since = param("since") || "1h";
  const { data, error, reload } = useResource<Stats>(query("api/stats", { since, buckets: 60 }), { every: 10_000 });
  const total = data?.total;
  const share = (c?: Calls) => c ? `${c.calls.toLocaleString()}, ${c.errors ? `${(c.errors / c.calls * 100).toFixed(1)} % failed` : "none failed"}` : "none";
  return <div class="page">
    <PageHeader title="Statistics" note="From the runs that the gateway has stored. Drag over a chart to see the runs of that time.">
      <label class="stats-span">The last <select value={spans.some(([v]) => v === since) ? since : ""} onChange={(e) => setParams({ since: e.currentTarget.value })}>{spans.map(([v, l]) => <option key={v} value={v}>{l}</option>)}</select></label>
      <Link to={query("/runs", { since })}>Runs of this time</Link>
    </PageHeader>
    {error && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data?.complete_since && <p class="problem note">There were more runs or calls than one answer counts: only those since <Time at={data.complete_since} exact /> are counted. Choose a shorter time, or use /metrics.</p>}
    {data && total && <>
      <dl class="run-facts">
        <div><dt>Runs</dt><dd class="num">{(total.runs ?? 0).toLocaleString()}{total.failed_runs ? `, ${total.failed_runs.toLocaleString()} failed` : ""}</dd></div>
        <div><dt>Model calls</dt><dd class="num">{share(total.model_calls)}</dd></div>
        <div><dt>Model p50, p95</dt><dd class="num">{total.model_calls ? `${duration(total.model_calls.p50_ms)}, ${duration(total.model_calls.p95_ms)}` : ""}</dd></div>
        <div><dt>Tool calls</dt><dd class="num">{share(total.tool_calls)}</dd></div>
        <div><dt>Tool p50, p95</dt><dd class="num">{total.tool_calls ? `${duration(total.tool_calls.p50_ms)}, ${duration(total.tool_calls.p95_ms)}` : ""}</dd></div>
        <div><dt>Tokens</dt><dd class="num">{(total.input_tokens ?? 0).toLocaleString()} in, {(total.output_tokens ?? 0).toLocaleString()} out</dd></div>
        {total.cost ? <div><dt>Cost</dt><dd class="num">{money(total.cost)}</dd></div> : null}
      </dl>
      {!total.runs && !total.model_calls ? <Empty title="Nothing ran in this time." /> : <>
        <div class="stats-charts">{charts.map((c) => <Chart key={c.title} chart={c} stats={data} />)}</div>
        <div class="stats-tables">
          <Table title="Models" rows={data.models} of={(r) => r.model_calls} to={(name) => query("/runs", { model: name, since })} />
          <Table title="Tools" rows={data.tools} of={(r) => r.tool_calls} to={(name) => query("/runs", { tool: name, since })} />
          <section class="card-box"><h2>Why runs ended or wait</h2><ul class="stats-reasons">{data.reasons.map((r) => <li key={r.name}><Link to={r.name === "running" ? "/runs?status=running" : query("/runs", { reason: r.name, since })}>{words(r.name ?? "")}</Link> <span class="num">{(r.runs ?? 0).toLocaleString()}</span></li>)}</ul></section>
        </div>
      </>}
    </>}
  </div>;
}
