// The rates of models over the results of a suite, with their intervals and the pass mark.

import { useState } from "preact/hooks";
import { enc } from "../api";
import { announce, Badge, Seen } from "../components/basics";
import { go, param, setParams } from "../router";
import { visible } from "../text/visible";
import { interval, trendsOf, verdictOf, type Point, type Result } from "./evalcompare";

const wide = 600, high = 96, edge = 5, broad = 40; // of the drawing, and of the ground of a result that is shown, in its own units
const marks = [100, 95, 90, 80, 70, 50], mostTrends = 6;

// markOf is the pass mark that the address has, from 0 to 1.
export const markOf = () => { const n = Number(param("pass")); return n > 0 && n <= 100 ? n / 100 : 1; };

export function PassMark() {
  return <label>Pass mark<select value={String(markOf() * 100)} onChange={(e) => setParams({ pass: e.currentTarget.value === "100" ? "" : e.currentTarget.value })}>{marks.map((m) => <option key={m} value={m}>{m === 100 ? "every run, as lathe eval" : `${m} %`}</option>)}</select></label>;
}

const dateOf = (p: Point) => p.started ? new Date(p.started).toLocaleString([], { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }) : "unknown time";
const saysOf = (p: Point) => `${visible(p.id)}, ${dateOf(p)}: ${interval(p.m)}, ${p.m.ok} of ${p.m.runs} passed`;

// Line draws the results of a model. Arrows choose one, Enter or a click opens it.
function Line({ name, points, mark, here }: { name: string; points: Point[]; mark: number; here?: string }) {
  const [over, setOver] = useState<number>(), step = wide / points.length, x = (i: number) => (i + .5) * step, y = (rate: number) => high - edge - rate * (high - 2 * edge);
  const at = (e: MouseEvent) => { const r = (e.currentTarget as Element).getBoundingClientRect(); return Math.max(0, Math.min(points.length - 1, Math.floor((e.clientX - r.left) / r.width * points.length))); };
  const show = (i: number) => go(`/evals/${enc(points[i]!.id)}`), shown = over === undefined ? undefined : points[over];
  const keys = (e: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (e.key === "Enter" && over !== undefined) show(over);
    if (!by || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const next = Math.max(0, Math.min(points.length - 1, (over ?? points.length) + by));
    setOver(next);
    announce(saysOf(points[next]!));
  };
  const first = points[0]!.m.ok_rate!, newest = points.at(-1)!, by = Math.round((newest.m.ok_rate! - first) * 100), [kind, word] = verdictOf(newest.m, mark);
  return <figure class="eval-trend">
    <figcaption><b><Seen text={name} /></b><span class="num">{interval(newest.m)}</span><span class="small"><b class={by > 0 ? "better" : by < 0 ? "worse" : ""}>{by > 0 ? "▲ +" : by < 0 ? "▼ −" : ""}{Math.abs(by)} points</b> <span class="soft">in {points.length} results</span></span><span><Badge kind={kind}>{word}</Badge></span></figcaption>
    <div><div class="stats-plot"><div class="stats-scale num" aria-hidden="true">{[1, .5, 0].map((v) => <span key={v} style={{ top: `${y(v) / high * 100}%` }}>{v * 100} %</span>)}</div>
      <div class="stats-canvas"><svg viewBox={`0 0 ${wide} ${high}`} preserveAspectRatio="none" role="img" tabIndex={0} aria-label={`Rates of ${visible(name)}, the oldest first: ${points.map((p) => interval(p.m)).join(", ")}`} onKeyDown={keys} onBlur={() => setOver(undefined)} onPointerMove={(e) => setOver(at(e))} onPointerLeave={(e) => { if (e.pointerType === "mouse") setOver(undefined); }} onClick={(e) => show(at(e))}>
        <path class="stats-base" d={`M0 ${y(0)}H${wide}M0 ${y(.5)}H${wide}M0 ${y(1)}H${wide}`} />
        {points.map((p, i) => (i === over || p.id === here) && <rect key={p.id} class={i === over ? "stats-over" : "eval-here"} x={x(i) - Math.min(step, broad) / 2} width={Math.min(step, broad)} y="0" height={high} />)}
        <path class="eval-between" d={points.map((p, i) => `M${x(i)} ${y(p.m.ok_rate_low ?? 0)}V${y(p.m.ok_rate_high ?? 1)}`).join("")} />
        <path class="stats-line as-run" d={points.map((p, i) => `${i ? "L" : "M"}${x(i)} ${y(p.m.ok_rate!)}`).join("")} />
        <path class="eval-dots" d={points.map((p, i) => `M${x(i)} ${y(p.m.ok_rate!)}h.01`).join("")} />
        <path class="eval-mark" d={`M0 ${y(mark)}H${wide}`} />
      </svg>
      {shown && <div class="stats-tip" aria-hidden="true" style={{ left: `clamp(6rem, ${x(over!) / wide * 100}%, 100% - 6rem)` }}><b>{visible(shown.id)}</b><span>{dateOf(shown)}</span><span>rate<span class="num">{interval(shown.m)}</span></span><span>passed<span class="num">{shown.m.ok} of {shown.m.runs}</span></span></div>}
    </div></div>
    <div class="stats-axis num" aria-hidden="true"><span>{dateOf(points[0]!)}</span><span>{dateOf(newest)}</span></div></div>
  </figure>;
}

// Trend shows how the models of a suite did over its results, if several have them. here is the result that is shown.
export function Trend({ results, suite, here }: { results: Result[]; suite: string; here?: string }) {
  const trends = [...trendsOf(results, suite)], [whole, set] = useState(false), mark = markOf();
  if (!trends.length) return null;
  return <section class="card-box" aria-labelledby="trend-h"><div class="eval-head"><h2 id="trend-h">{suite ? <>Suite <Seen text={suite} /></> : "Suite without a name"} over time</h2>
    <span class="stats-key"><span><i class="as-run line" />rate</span><span><i class="eval-swatch" />interval of 95 %</span><span><i class="as-mark line" />pass mark, {mark * 100} %</span></span></div>
    {(whole ? trends : trends.slice(0, mostTrends)).map(([name, points]) => <Line key={name} name={name} points={points} mark={mark} here={here} />)}
    {trends.length > mostTrends && <div><button type="button" class="quiet small" aria-expanded={whole} onClick={() => set(!whole)}>{whole ? "Show fewer models" : `Show ${trends.length - mostTrends} more`}</button></div>}</section>;
}
