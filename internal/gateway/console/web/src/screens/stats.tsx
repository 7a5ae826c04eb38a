// Rates, errors, latencies, tokens and cost over time.

import { useRef, useState } from "preact/hooks";
import { now, query } from "../api";
import { announce, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, Time } from "../components/basics";
import { TimeRange } from "../components/TimeRange";
import { useResource } from "../resource";
import { go, param, setParams } from "../router";
import { share } from "../run/compare";
import { duration, measured, notReported, words } from "../text/format";
import { visible } from "../text/visible";

interface Calls { calls: number; errors: number; p50_ms: number; p95_ms: number; first_token_p50_ms?: number }
type Kind = "model" | "tool";
interface Row { time?: string; name?: string; runs?: number; failed_runs?: number; model_calls?: Calls; tool_calls?: Calls; input_tokens?: number; output_tokens?: number; cost?: number }
type Total = Pick<Stats, "total" | "models" | "tools">;
interface Stats { since: string; until: string; step_seconds: number; complete_since?: string; total: Row; buckets: Row[]; models: Row[]; tools: Row[]; reasons: Row[] }

const spans: [value: string, label: string, seconds: number, buckets: number][] = [["15m", "15 minutes", 900, 15], ["1h", "hour", 3600, 20], ["6h", "6 hours", 21_600, 24], ["24h", "24 hours", 86_400, 24], ["7d", "7 days", 604_800, 14]];

// tokensOf are the tokens of a row, "" if the model servers that answered reported none.
const tokensOf = ({ input_tokens: read = 0, output_tokens: written = 0, model_calls: c }: Row) => read + written || !c || c.errors === c.calls ? (read + written).toLocaleString() : "";

// failedOf is how many calls or runs failed, and what part of all that is.
const failedOf = (n: number, of: number) => `${n.toLocaleString()} (${n / of < .001 ? "< 0.1" : Number((n / of * 100).toFixed(1))} %)`;

// dollars has three significant digits, from 100 on whole dollars.
const dollars = (n: number) => n === 0 ? "$0" : `$${n < 100 ? n.toLocaleString(undefined, { minimumSignificantDigits: 3, maximumSignificantDigits: 3 }) : Math.round(n).toLocaleString()}`;

interface Series { label: string; kind: "main" | "model" | "tool" | "bad" | "tail" | "read"; value: (r: Row) => number | undefined }

// of: whose calls a chart counts, if it is not of runs. form: bars, of which a later one is a part of the first; bars that stand on one another; or lines. scale: labels of an
// axis whose values need not be whole.
const charts: { title: string; of?: Kind; form?: "stack" | "lines"; unit: (n: number) => string; scale?: (n: number) => string; series: Series[] }[] = [
  { title: "Runs", unit: (n) => n.toLocaleString(), series: [{ label: "started", kind: "main", value: (r) => r.runs }, { label: "failed", kind: "bad", value: (r) => r.failed_runs }] },
  { title: "Model calls", of: "model", unit: (n) => n.toLocaleString(), series: [{ label: "calls", kind: "model", value: (r) => r.model_calls?.calls }, { label: "errors", kind: "bad", value: (r) => r.model_calls?.errors }] },
  { title: "Time of model calls", of: "model", form: "lines", unit: measured, scale: duration, series: [{ label: "p50", kind: "model", value: (r) => r.model_calls?.p50_ms }, { label: "p95", kind: "tail", value: (r) => r.model_calls?.p95_ms }] },
  { title: "Tool calls", of: "tool", unit: (n) => n.toLocaleString(), series: [{ label: "calls", kind: "tool", value: (r) => r.tool_calls?.calls }, { label: "errors", kind: "bad", value: (r) => r.tool_calls?.errors }] },
  { title: "Time of tool calls", of: "tool", form: "lines", unit: measured, scale: duration, series: [{ label: "p50", kind: "tool", value: (r) => r.tool_calls?.p50_ms }, { label: "p95", kind: "tail", value: (r) => r.tool_calls?.p95_ms }] },
  { title: "Cost", of: "model", unit: dollars, scale: (n) => `$${n.toLocaleString(undefined, { maximumSignificantDigits: 3 })}`, series: [{ label: "US dollars", kind: "main", value: (r) => r.cost }] },
  { title: "Tokens", of: "model", form: "stack", unit: (n) => n.toLocaleString(), series: [{ label: "in", kind: "read", value: (r) => r.input_tokens }, { label: "out", kind: "model", value: (r) => r.output_tokens }] },
];

// roundUp returns the next number of which the axis has a round half: 1, 2, 4, 6, 8, 10 and so on.
function roundUp(n: number): number {
  const unit = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 6, 8].map((k) => k * unit).find((t) => t >= n) ?? 10 * unit;
}

const wide = 600, high = 120, least = 3; // of the drawing, in its own units; a bar is least high at least

// linePath leads through the middles of the buckets that have a value, dotPath is a dot in each.
function linePath(values: (number | undefined)[], step: number, y: (n: number) => number): string {
  return values.map((v, i) => v === undefined ? "" : `${values[i - 1] === undefined ? "M" : "L"}${(i + .5) * step} ${y(v)}`).join("");
}
const dotPath = (values: (number | undefined)[], step: number, y: (n: number) => number) => values.map((v, i) => v === undefined ? "" : `M${(i + .5) * step} ${y(v)}h.01`).join("");

// Chart draws bars or a point for each bucket. A bucket, or a stretch that is dragged over, leads to its runs; arrows choose a bucket, Enter opens it.
function Chart({ chart, stats, one }: { chart: (typeof charts)[number]; stats: Stats; one: Record<string, string> }) {
  const [drag, set] = useState<[from: number, to: number]>();
  const box = useRef<SVGSVGElement>(null), tapped = useRef<number | undefined>(undefined);
  const rows = stats.buckets, sum = (r: Row, to = chart.series.length) => chart.series.slice(0, to).reduce((n, s) => n + (s.value(r) ?? 0), 0), most = Math.max(...rows.flatMap((r) => chart.form === "stack" ? [sum(r)] : chart.series.map((s) => s.value(r) ?? 0))), top = roundUp(chart.unit === dollars && most > 0 ? most : Math.max(1, most)), half = chart.scale || top % 2 === 0;
  const [over, setOver] = useState<number>();
  const long = Date.parse(stats.until) - Date.parse(stats.since) > 864e5;
  const clockOf = (time: string | undefined) => time ? new Date(time).toLocaleString([], long ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" } : { hour: "2-digit", minute: "2-digit" }) : "";
  const endOf = (i: number) => rows[i + 1]?.time ?? stats.until;
  const step = wide / rows.length, y = (n: number) => high - n / top * (high - 4);
  const at = (e: PointerEvent) => {
    const r = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(rows.length - 1, Math.floor((e.clientX - r.left) / r.width * rows.length)));
  };
  const swatch = (s: Series) => `as-${s.kind}${chart.form === "lines" ? " line" : ""}`;
  const bar = (i: number, from: number, to: number) => `M${i * step + step * .08} ${from}V${to}h${step * .84}V${from}z`;
  const pathOf = (s: Series, at: number) => rows.map((r, i) => { // a bar is least high at least
    const v = s.value(r), ground = chart.form === "stack" ? y(sum(r, at)) : high;
    return v !== undefined && drawn(v) ? bar(i, ground, Math.min(ground - least, y(v) + ground - high)) : "";
  }).join("");
  const drawn = (v: number) => v > 0 || chart.unit === measured;
  const lead = (from: number, to: number) => go(query("/runs", { ...one, since: rows[from]!.time!, until: endOf(to) }));
  const says = chart.series.map((s) => `${s.label} at most ${chart.unit(Math.max(0, ...rows.map((r) => s.value(r) ?? 0)))}`).join(", ");
  const value = (s: Series, i: number) => { const v = s.value(rows[i]!); return v === undefined ? "none" : chart.unit(v); };
  const keys = (e: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (e.key === "Enter" && over !== undefined) lead(over, over);
    if (!by || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, (over ?? rows.length) + by));
    setOver(next);
    announce(`${clockOf(rows[next]!.time)}: ${chart.series.map((s) => `${s.label} ${value(s, next)}`).join(", ")}`);
  };
  const [a, b] = drag ? [Math.min(...drag), Math.max(...drag)] : [0, 0];
  return <figure class="card-box stats-chart">
    <figcaption><h2>{chart.title}</h2><span class="stats-key">{chart.series.map((s) => <span key={s.label}><i class={swatch(s)} />{s.label}</span>)}</span></figcaption>
    {!rows.some((r) => chart.series.some((s) => { const v = s.value(r); return v !== undefined && drawn(v); })) ? <p class="stats-none soft">{chart.title === "Tokens" && !tokensOf(stats.total) ? "The model servers reported none." : "None in this time."}</p> : <>
    <div class="stats-plot"><div class="stats-scale num" aria-hidden="true">{[top, ...half ? [top / 2] : [], 0].map((v) => <span key={v} style={{ top: `${y(v) / high * 100}%` }}>{v === 0 ? "0" : (chart.scale ?? chart.unit)(v)}</span>)}</div>
      <div class="stats-canvas"><svg ref={box} viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" role="img" aria-label={`${chart.title}: ${says}`} tabIndex={0} onKeyDown={keys} onBlur={() => setOver(undefined)}
        onPointerDown={(e) => { box.current!.setPointerCapture(e.pointerId); tapped.current = over; setOver(at(e)); set([at(e), at(e)]); }}
        onPointerMove={(e) => { setOver(at(e)); if (drag) set([drag[0], at(e)]); }}
        onPointerLeave={(e) => { if (e.pointerType === "mouse") setOver(undefined); }}
        onPointerCancel={() => set(undefined)}
        onPointerUp={(e) => {
          set(undefined);
          if (drag && (a !== b || e.pointerType === "mouse" || tapped.current === a)) lead(a, b); // a first touch shows the figures
        }}>
        <path class="stats-base" d={`M0 ${high - .5}H${wide}${half ? `M0 ${y(top / 2)}H${wide}` : ""}M0 ${y(top)}H${wide}`} />
        {over !== undefined && <rect class="stats-over" x={over * step} width={step} y="0" height={high} />}
        {chart.series.map((s, at) => chart.form === "lines" ? <g key={s.label}><path class={`stats-line as-${s.kind}`} d={linePath(rows.map(s.value), step, y)} /><path class={`stats-dots as-${s.kind}`} d={dotPath(rows.map(s.value), step, y)} /></g> : <path key={s.label} class={`fill as-${s.kind}`} d={pathOf(s, at)} />)}
        {drag && a !== b && <rect class="stats-drag" x={a * step} width={(b - a + 1) * step} y="0" height={high} />}
      </svg>
      {over !== undefined && <div class="stats-tip" aria-hidden="true" style={{ left: `clamp(5.5rem, ${(over + .5) / rows.length * 100}%, 100% - 5.5rem)` }}><b>{clockOf(rows[over]!.time)} – {clockOf(endOf(over))}</b>{chart.series.map((s) => <span key={s.label}><i class={swatch(s)} />{s.label}<span class="num">{value(s, over)}</span></span>)}</div>}
    </div></div>
    <div class="stats-axis num" aria-hidden="true"><span>{clockOf(rows[0]?.time)}</span><span>{clockOf(rows[Math.floor(rows.length / 2)]?.time)}</span><span>{clockOf(stats.until)}</span></div></>}
  </figure>;
}

function Table({ title, rows, chosen, of, to }: { title: string; rows: Row[]; chosen: string; of: (r: Row) => Calls | undefined; to: (name: string) => string }) {
  const head = ["Name", "Calls", "Errors", "p50", "p95", ...(title === "Models" ? ["First token", "Tokens", ...(rows.some((r) => r.cost) ? ["Cost"] : [])] : [])];
  return <section class="stack"><h2>{title}</h2>
    {rows.length === 0 ? <p class="soft">None in this time.</p> : <PlainTable label={title} head={head} ends={head.map((h) => h !== "Name")}>{rows.map((r) => {
      const c = of(r)!, cells = [c.calls.toLocaleString(), c.errors ? failedOf(c.errors, c.calls) : "0", measured(c.p50_ms), measured(c.p95_ms),
        c.first_token_p50_ms ? measured(c.first_token_p50_ms) : "", tokensOf(r) || notReported, r.cost ? dollars(r.cost) : ""].slice(0, head.length - 1);
      return <tr key={r.name} class={r.name === chosen ? "decides" : undefined}><th scope="row"><Link to={to(r.name ?? "")}><Seen text={r.name || "unknown"} /></Link></th>{cells.map((text, i) => <td key={i} class={`num end${head[i + 1] === "Errors" && c.errors ? " bad" : ""}`}>{text}</td>)}</tr>;
    })}</PlainTable>}
  </section>;
}

// Tile is one figure, with that of the time before; by: how much it changed since.
const Tile = ({ name, value, more, was, by, bad = false }: { name: string; value: string; more: string; was?: string; by?: string; bad?: boolean }) => <div class="card-box"><dt>{name}</dt><dd class="num"><b>{value}</b>{more && <span class={bad ? "bad" : "soft"}>{more}</span>}</dd>{was !== undefined && <dd class="num soft stats-was">{by && <>{by} against </>}{was} before</dd>}</div>;

const rowOf = (of: Row, kind: Kind) => kind === "model" ? of.model_calls : of.tool_calls;

// CallTiles are the figures of model calls or of tool calls.
function CallTiles({ kind, row, was }: { kind: Kind; row: Row; was?: Row }) {
  const c = rowOf(row, kind), then = was && rowOf(was, kind), name = kind === "model" ? "Model" : "Tool";
  return <><Tile name={`${name} calls`} value={(c?.calls ?? 0).toLocaleString()} more={c?.errors ? `${failedOf(c.errors, c.calls)} failed` : c ? "none failed" : ""} was={was && (then?.calls ?? 0).toLocaleString()} by={share(then?.calls ?? 0, c?.calls ?? 0)} bad={Boolean(c?.errors)} />
    <Tile name={`${name} p50`} value={c ? measured(c.p50_ms) : "–"} more={c ? `p95 ${measured(c.p95_ms)}` : ""} was={was && (then?.calls ? measured(then.p50_ms) : "none")} by={share(then?.p50_ms ?? 0, c?.p50_ms ?? 0)} /></>;
}

const allTokens = ({ input_tokens: read = 0, output_tokens: written = 0 }: Row) => read + written;

// UsageTiles are tokens and cost.
const UsageTiles = ({ row, was }: { row: Row; was?: Row }) => <><Tile name="Tokens" value={tokensOf(row) || "–"} more={tokensOf(row) ? `${(row.output_tokens ?? 0).toLocaleString()} out` : notReported} was={was && (tokensOf(was) || notReported)} by={was && share(allTokens(was), allTokens(row))} />
  {row.cost ? <Tile name="Cost" value={dollars(row.cost)} more="" was={was && dollars(was.cost ?? 0)} by={share(was?.cost ?? 0, row.cost)} /> : null}</>;

// One has the figures of the model or the tool that is chosen.
function One({ kind, name, stats, was }: { kind: Kind; name: string; stats: Total; was?: Total }) {
  const list = (s: Total) => s[`${kind}s`].find((r) => r.name === name) ?? {}, row = list(stats), c = rowOf(row, kind), all = rowOf(stats.total, kind)?.calls ?? 0;
  return <><dl class="stats-tiles"><CallTiles kind={kind} row={row} was={was && list(was)} />
    {c?.first_token_p50_ms ? <Tile name="First token p50" value={measured(c.first_token_p50_ms)} more="" /> : null}
    {all > 0 && <Tile name={`Share of ${kind} calls`} value={`${Math.round((c?.calls ?? 0) / all * 100)} %`} more={`of ${all.toLocaleString()}`} />}
    {kind === "model" && <UsageTiles row={row} was={was && list(was)} />}</dl>
  </>;
}

// OneOf chooses a model or a tool, or all.
function OneOf({ kind, name, stats }: { kind: Kind; name: string; stats: Total }) {
  const group = (of: Kind, label: string) => { const names = [...new Set([...stats[`${of}s`].map((r) => r.name ?? ""), ...kind === of && name ? [name] : []])].filter(Boolean); return names.length > 0 && <optgroup label={label}>{names.map((n) => <option key={n} value={`${of} ${n}`}>{visible(n)}</option>)}</optgroup>; };
  return <label>Model or tool<select value={name && `${kind} ${name}`} onChange={(e) => { const [, of, one] = /^(\w+) (.*)$/s.exec(e.currentTarget.value) ?? []; setParams({ model: "", tool: "", ...of && { [of]: one! } }); }}><option value="">all</option>{group("model", "Models")}{group("tool", "Tools")}</select></label>;
}

export default function StatsScreen() {
  const until = param("until"), since = param("since") || (until ? "" : "1h"), time = { since, until };
  const [, , seconds, buckets] = (!until && spans.find(([v]) => v === since)) || ["", "", 0, 30];
  const step = seconds / buckets * 1000, end = step ? Math.ceil(now() / step) * step : 0; // buckets begin at whole minutes or hours
  const kind = param("tool") ? "tool" : "model", name = param(kind), one = name ? { [kind]: name } : {}; // of which the charts are
  const { data: newest, error, reload } = useResource<Stats>(query("api/stats", step ? { since: new Date(end - seconds * 1000).toISOString(), until: new Date(end).toISOString(), buckets, ...one } : { ...time, buckets, ...one }), { every: 10_000 });
  const { data: earlier } = useResource<Stats>(step ? query("api/stats", { since: new Date(end - 2 * seconds * 1000).toISOString(), until: new Date(end - seconds * 1000).toISOString(), buckets: 1 }) : undefined);
  const last = useRef<{ of: string; one: string; data: Stats }>(undefined), of = since + until, only = kind + name;
  if (newest) last.current = { of, one: only, data: newest };
  const kept = useRef<{ of: string; data: Total }>(undefined);
  if (earlier) kept.current = { of, data: earlier };
  const before = step && kept.current?.of === of && (kept.current.data.total.runs || kept.current.data.total.model_calls) ? kept.current.data : undefined, then = before?.total;
  const data = newest ?? (last.current?.of === of ? last.current.data : undefined), total = data?.total; // the figures stay while those of the next step are read
  return <div class="page">
    <PageHeader title="Statistics" note={`From the stored runs. A click on a chart, or a drag over it, lists the runs of that time.${before ? ` “Before” is the ${spans.find(([v]) => v === since)?.[1]} before.` : ""}`}>
      <div class="filters"><TimeRange label="The last" times={spans} {...time} />{data && <OneOf kind={kind} name={name} stats={data} />}<Link class="filters-note" to={query("/runs", { ...name && { [kind]: name }, ...time })}>Runs of this {name ? kind : "time"}</Link></div>
    </PageHeader>
    {error && <ErrorState error={error} retry={reload} />}
    {!data && !error && <Loading />}
    {data?.complete_since && <p class="problem note">There were more runs or calls than one answer counts: only those since <Time at={data.complete_since} exact /> are counted. Choose a shorter time, or use /metrics.</p>}
    {data && total && <>
      {name ? <One kind={kind} name={name} stats={data} was={before} /> : <dl class="stats-tiles">
        <Tile name="Runs" value={(total.runs ?? 0).toLocaleString()} more={total.failed_runs ? `${failedOf(total.failed_runs, total.runs ?? total.failed_runs)} failed` : total.runs ? "none failed" : ""} was={then && (then.runs ?? 0).toLocaleString()} by={share(then?.runs ?? 0, total.runs ?? 0)} bad={Boolean(total.failed_runs)} />
        <CallTiles kind="model" row={total} was={then} /><CallTiles kind="tool" row={total} was={then} /><UsageTiles row={total} was={then} />
      </dl>}
      {!total.runs && !total.model_calls ? <Empty title="Nothing ran in this time.">{since !== "7d" ? <button type="button" class="link" onClick={() => setParams({ since: "7d", until: "" })}>Show the last 7 days</button> : <Link to="/">Ask a model in the chat</Link>}</Empty> : <>
        {last.current?.one === only && <div class="stats-charts">{charts.filter((c) => (!name || c.of === kind) && (c.title !== "Cost" || total.cost)).map((c) => <Chart key={c.title} chart={c} stats={data} one={one} />)}</div>}
        <div class="stats-tables">
          <Table title="Models" rows={data.models.filter((r) => r.model_calls)} chosen={kind === "model" ? name : ""} of={(r) => r.model_calls} to={(name) => query("/runs", { model: name, ...time })} />
          <Table title="Tools" rows={data.tools.filter((r) => r.tool_calls)} chosen={kind === "tool" ? name : ""} of={(r) => r.tool_calls} to={(name) => query("/runs", { tool: name, ...time })} />
          {!name && <section class="card-box"><h2>Why runs ended or wait</h2><ul class="stats-reasons">{data.reasons.map((r) => <li key={r.name}><Link to={r.name === "running" ? "/runs?status=running" : query("/runs", { reason: r.name, ...time })}>{words(r.name ?? "")}</Link> <span class="num">{(r.runs ?? 0).toLocaleString()}</span></li>)}</ul></section>}
        </div>
      </>}
    </>}
  </div>;
}
