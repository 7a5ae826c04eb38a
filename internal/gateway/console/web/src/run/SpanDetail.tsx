// What a span of the timeline is made of: its times, what went into it and what came of it.

import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Badge, JsonView, Pieces, Seen, StateBadge } from "../components/basics";
import { inOneLine } from "../components/CallCard";
import { Markdown } from "../components/Markdown";
import { ResultView } from "../components/ResultView";
import { count, duration, inAndOut, measured, rate, words } from "../text/format";
import { pieces } from "../text/visible";
import { itemsOf, type Item } from "./items";
import { ranFor, type Span } from "./spans";
import { micros, money, type RunEvent } from "./types";

const partNames = { first: "Until the first token", approval: "Awaiting approval", work: "After the first token", wait: "Waited before this attempt" };
const least = 1000; // µs of a stretch that is named

// Given is what a model call was sent: what is new in it, and all of it when asked for. of tells the part apart from others of its kind.
export function Given({ events, at, of = "", name = "Input" }: { events: RunEvent[]; at: number; of?: string; name?: string }) {
  const [whole, set] = useState(false);
  const { items, system, from } = useMemo(() => {
    const before = events.filter((e) => e.event_id !== undefined && e.event_id < at), { items, history, system } = itemsOf(before);
    const last = before.findLast((e) => e.type === "ModelCallFinished" && e.data.status === "success")?.event_id;
    const fresh = last === undefined ? history : items.findIndex((i) => i.event === last && i.kind === "call");
    return { items, system, from: fresh < 0 ? history : fresh };
  }, [events.length, at]);
  const more = from + (system ? 1 : 0);
  return <section class="stack span-given" aria-label={`${name}${of}`}><div class="result-head"><h2 class="label">{name}</h2>{more > 0 && <button type="button" class="quiet small" aria-expanded={whole} onClick={() => set(!whole)}>{whole ? "Only what is new" : `All, ${more} before`}</button>}</div>
    {whole && system && <Said role="system" text={system} />}
    {items.slice(whole ? 0 : from).map((i, n) => <Sent key={n} item={i} />)}</section>;
}

function Said({ role, text }: { role: string; text: string }) {
  return <div class={`span-said says-${role}`}><b class="small">{role}</b><div class="run-text plain" dir="auto"><Pieces cut={pieces(text, "\n\t")} /></div></div>;
}

function Sent({ item: i }: { item: Item }) {
  if (i.kind === "text") return <Said role={i.role} text={i.text} />;
  if (i.kind === "note") return i.bad ? null : <p class="soft small"><Seen text={i.text} /></p>;
  const result = i.call.result?.content?.result ?? i.call.stored?.content;
  return <div class="span-said"><span class="small"><b class="mono"><Seen text={i.call.name} /></b> <span class="mono soft">{inOneLine(i.call.args || "{}")}</span></span>{result !== undefined && <ResultView text={result} label="Result" name={`Result of ${i.call.id}, sent`} />}</div>;
}

// Made is what a model call came to: its text, and the calls that it makes.
export function Made({ over, open, of = "", name = "Output" }: { over?: RunEvent; open: string; of?: string; name?: string }) {
  const [raw, set] = useState(false), parts = over?.content?.message?.parts ?? [];
  const text = over ? parts.filter((p) => p.type === "text").map((p) => p.text ?? "").join("\n") : open, thought = parts.filter((p) => p.type.endsWith("reasoning")).map((p) => p.text ?? "").join("\n"), calls = parts.filter((p) => p.type === "tool_call");
  if (!text && !thought && !calls.length) return null;
  return <section class="stack" aria-label={`${name}${of}`}><div class="result-head"><h2 class="label">{name}{over ? "" : ", so far"}</h2>{text && <button type="button" class="quiet small" aria-pressed={raw} onClick={() => set(!raw)}>{raw ? "Formatted" : "Raw"}</button>}</div>
    {thought && <details><summary class="small">Reasoning</summary><div class="run-text plain soft" dir="auto"><Pieces cut={pieces(thought, "\n\t")} /></div></details>}
    {text && <div class={`run-text${raw ? " plain" : ""}`} dir="auto">{raw ? <Pieces cut={pieces(text, "\n\t")} /> : <Markdown text={text} />}</div>}
    {calls.map((p, i) => <div key={i} class="span-said"><span class="small"><Badge>call</Badge> <b class="mono"><Seen text={p.name ?? ""} /></b> <span class="mono soft">{inOneLine(p.arguments || "{}")}</span></span></div>)}</section>;
}

interface Props { span: Span; chosen: boolean; begin: number; end: number; events: RunEvent[]; step: (by: number) => void; close: () => void; open: (event: number) => void }

// SpanDetail says what a span is made of. Of a span that is not chosen, it is shown only where there is room beside the timeline. On narrow screens it is a sheet
// over the end of the page.
export function SpanDetail({ span: s, chosen, begin, end, events, step, close, open }: Props) {
  const over = events.findLast((e) => e.type === "ModelCallFinished" && s.kind === "model" && micros(e.time) === s.to), { data: d } = over ?? {}, u = d?.usage;
  const { items, text } = useMemo(() => itemsOf(events), [events]);
  const call = items.find((i) => i.kind === "call" && i.call.planned?.event_id === s.event), of = call?.kind === "call" ? call.call : undefined;
  const work = s.kind === "tool" ? s.parts.find((p) => p.kind === "work") : undefined, waited = work && work.from - s.from - s.parts.reduce((n, p) => n + (p.kind === "approval" ? (p.to ?? end) - p.from : 0), 0), after = work?.to && s.to ? s.to - work.to : 0;
  const ran = ranFor(s, end), speed = s.kind === "model" && d?.first_token_ms ? rate(u?.output_tokens ?? 0, (d.latency_ms ?? 0) - d.first_token_ms) : ""; // without a first token nothing was streamed
  return <article class={`card-box timeline-detail sheet${chosen ? "" : " unchosen"}`} aria-label="Chosen span">
    <div class="run-who"><b><Seen text={s.label} /></b><StateBadge of={s.state} /><button type="button" class="link small" onClick={() => open(s.event)}>Open event {s.event}</button>
      <span class="run-acts sheet-acts"><button type="button" class="quiet small" aria-label="Previous span" onClick={() => step(-1)}>‹</button><button type="button" class="quiet small" aria-label="Next span" onClick={() => step(1)}>›</button><button type="button" class="quiet small" onClick={close}>Close</button></span></div>
    <p class="span-marks"><Badge>{measured(ran)}</Badge><Badge>turn {s.turn}</Badge>{d?.status === "success" && <Badge>{inAndOut(u, " tokens")}</Badge>}{speed && <Badge>{speed}</Badge>}{d?.cost ? <Badge>{money(d.cost)}</Badge> : null}
      {s.progress && <Badge kind="run">{s.progress.done.toLocaleString()}{s.progress.total ? ` of ${s.progress.total.toLocaleString()}` : ""}</Badge>}</p>
    {s.kind === "model" && <Given key={s.event} events={events} at={s.event} />}
    {s.kind === "model" && <Made over={over} open={s.to === undefined ? text : ""} />}
    {over?.content?.error_message && <section class="stack"><h2 class="label">The model server said</h2><p class="cause-said" dir="auto"><Seen text={over.content.error_message} /></p></section>}
    {of && <section class="stack" aria-label="Input"><h2 class="label">Input</h2><JsonView text={of.args || "{}"} label={`Arguments of ${of.id}`} exact /></section>}
    {of?.result && <section class="stack" aria-label="Output"><ResultView text={of.result.content?.result ?? ""} label="Output" name={`Result of ${of.id}`} /></section>}
    <details class="span-times" open={s.kind !== "model" || s.parts.length > 2 || s.parts.some((p) => p.kind === "wait")}><summary class="small">Times and facts</summary><dl class="facts"><dt>Began after</dt><dd class="num">{duration((s.from - begin) / 1000)}</dd>
      {work ? <>{waited! > least && <><dt>Waited before it ran</dt><dd class="num">{duration(waited! / 1000)}</dd></>}<dt>Ran</dt><dd class="num">{measured(ran)}</dd>{after > least && <><dt>Until its result was stored</dt><dd class="num">{duration(after / 1000)}</dd></>}</> : <><dt>Took</dt><dd class="num">{measured(((s.to ?? end) - s.from) / 1000)}</dd></>}
      {s.parts.filter((p) => p.kind !== "work" || s.kind === "model").map((p, i) => <Fragment key={i}><dt>{partNames[p.kind]}</dt><dd class="num">{measured(((p.to ?? end) - p.from) / 1000)}</dd></Fragment>)}
      {s.note && <><dt>Note</dt><dd>{words(s.note)}</dd></>}
      {d?.finish_reason && <><dt>Ended with</dt><dd>{words(d.finish_reason)}</dd></>}
      {u?.cached_tokens ? <><dt>Cached</dt><dd class="num">{count(u.cached_tokens, "token")}</dd></> : null}
      {of?.result?.data.policy_decision && <><dt>Policy</dt><dd><Seen text={[of.result.data.policy_decision, of.result.data.policy_rule].filter(Boolean).join(", ")} /></dd></>}</dl></details>
  </article>;
}
