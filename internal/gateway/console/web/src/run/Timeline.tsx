// The timeline of a run: one row and bar for each span, and beside it what the chosen span is made of.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now } from "../api";
import { Seen } from "../components/basics";
import { inOneLine } from "../components/CallCard";
import { stateOf } from "../state";
import { visible } from "../text/visible";
import { duration, inAndOut, marks, measured, words } from "../text/format";
import { itemsOf } from "./items";
import { SpanDetail } from "./SpanDetail";
import { coloursOf, isIdle, isRunning, ranFor, spansOf, type Span } from "./spans";
import { micros, type RunEvent } from "./types";
import { useWide } from "../wide";

const zooms = [1, 2, 4, 8, 16];
const key: [kind: string, label: string][] = [["model", "model"], ["first", "until the first token"], ["tool", "tool"], ["idle", "before and after it ran"], ["approval", "awaiting approval"], ["pause", "waiting"], ["failed", "failed"], ["running", "still running"]];
const icons = { model: "M10 2l1.8 5.2L17 9l-5.2 1.8L10 16l-1.8-5.2L3 9l5.2-1.8z", tool: "M12.5 3a4 4 0 0 0-3.6 5.7L3 14.600l2.400 2.400 5.900-5.900A4 4 0 0 0 16.700 6l-2.500 2.500-2.200-.500-.500-2.200L14 3.300A4 4 0 0 0 12.500 3z", pause: "M7 4v12M13 4v12" };

// newestOf returns the newest span that runs, else the newest that has not ended, else the last.
const newestOf = (spans: Span[]) => spans.findLast(isRunning) ?? spans.findLast((s) => s.to === undefined) ?? spans.at(-1);

interface Props { events: RunEvent[]; live: boolean; selected?: number; select: (event: number | undefined) => void; open: (event: number) => void }

export function Timeline({ events, live, selected, select, open }: Props) {
  const spans = useMemo(() => spansOf(events), [events]);
  const [zoom, setZoom] = useState(0), wide = useWide("(min-width: 52.01rem)"), colours = coloursOf(spans);
  const list = useRef<HTMLDivElement>(null), followed = useRef(live), atEnd = useRef(true); // followed: the run went on when it was opened
  const begin = micros(events[0]!.time);
  const end = Math.max(begin + 1, micros(events.at(-1)!.time), live ? now() * 1000 : 0);
  const whole = end - begin, axis = marks(whole / 1000, (wide ? 5 : 4) * zooms[zoom]!);
  const place = (from: number, to: number | undefined) => ({ left: `${(from - begin) / whole * 100}%`, width: `${((to ?? end) - from) / whole * 100}%` });
  const chosen = spans.find((s) => s.event === selected), shown = chosen ?? (followed.current ? newestOf(spans) : spans[0]);
  const args = useMemo(() => new Map(itemsOf(events).items.flatMap((i) => i.kind === "call" && i.call.planned ? [[i.call.planned.event_id, i.call.args] as const] : [])), [events]);
  const at = Math.max(0, spans.findIndex((s) => s === shown));
  const wanted = useRef<number | undefined>(undefined); // the event whose row gets the focus once it is selected
  useEffect(() => {
    if (wanted.current === undefined || wanted.current !== selected) return;
    wanted.current = undefined;
    const row = list.current?.querySelector<HTMLElement>(`[data-event="${selected}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected]);
  useEffect(() => { // the row that is followed stays in view, until the person scrolls away from the end
    const box = list.current!, row = chosen || !followed.current ? null : box.querySelector<HTMLElement>(".timeline-row.shown");
    if (row && atEnd.current) box.scrollTop += Math.max(0, row.getBoundingClientRect().bottom - box.getBoundingClientRect().top - box.clientHeight);
  }, [shown?.event, spans.length]);
  const detailed = Boolean(chosen);
  useEffect(() => { if (detailed && matchMedia("(max-width: 52rem)").matches) list.current?.scrollIntoView({ block: "start" }); }, [detailed]); // the rows beside the sheet
  const pass = (by: number) => spans[Math.max(0, Math.min(spans.length - 1, at + by))]?.event;
  const keys = (e: KeyboardEvent) => {
    const step = ({ j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, Home: -spans.length, End: spans.length } as Record<string, number>)[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (step !== undefined) {
      e.preventDefault();
      wanted.current = pass(step);
      select(wanted.current);
    } else if (e.key === "Enter" && spans[at]) open(spans[at].event);
    else if (e.key === "+") setZoom(Math.min(zooms.length - 1, zoom + 1));
    else if (e.key === "-") setZoom(Math.max(0, zoom - 1));
  };
  return <>
    <div class="timeline-bar">
      <ul class="timeline-key" aria-label="Colours">{key.filter(([kind]) => colours.has(kind)).map(([kind, label]) => <li key={kind}><i class={`as-${kind}`} />{label}</li>)}</ul>
      <span class="soft small by-keys">j and k choose, Enter opens the event</span>
      <span class="answers"><button type="button" class="quiet small" disabled={zoom === 0} onClick={() => setZoom(zoom - 1)} aria-label="Zoom out">−</button>
        <span class="small num">{zooms[zoom]} ×</span><button type="button" class="quiet small" disabled={zoom === zooms.length - 1} onClick={() => setZoom(zoom + 1)} aria-label="Zoom in">+</button></span>
    </div>
    <div class="run-halves timeline-halves"><div class="timeline" ref={list} onKeyDown={keys} onScroll={(e) => { const t = e.currentTarget; atEnd.current = t.scrollTop + t.clientHeight > t.scrollHeight - 40; }} role="listbox" aria-label={`${spans.length} spans in ${duration(whole / 1000)}`} tabIndex={-1}>
      <div class="timeline-wide" style={{ width: `${zooms[zoom]! * 100}%`, "--step": `${(axis[1] ?? whole / 1000) / whole * 1e5}%` }}>
        <div class="timeline-scale" role="presentation" aria-hidden="true"><span class="timeline-name" /><span class="timeline-track">{axis.map((ms) => <span key={ms} class={ms > whole / 1000 * (1 - .07 / zooms[zoom]!) ? "last" : undefined} style={{ left: `${ms / whole * 1e5}%` }}>{ms ? duration(ms) : "0"}</span>)}</span></div>
        {spans.map((s, i) => {
          const ran = ranFor(s, end), idle = isIdle(s), took = measured(ran), state = stateOf(s.state), says = `${s.label} ${took}${s.note ? ` ${words(s.note)}` : ""}, ${s.kind}, ${state.name}`, runs = isRunning(s), part = runs && s.progress?.total ? Math.min(100, Math.floor(s.progress.done / s.progress.total * 100)) : undefined;
          return <div key={s.id} class={`timeline-row${s === shown ? " shown" : ""}`} role="option" aria-selected={s.event === selected} data-event={s.event} data-from={s.from} data-to={s.to} tabIndex={i === at ? 0 : -1}
            onClick={() => select(s.event)} onDblClick={() => open(s.event)}>
            <span class="timeline-name" style={{ paddingLeft: s.kind === "tool" ? "1.4rem" : ".6rem" }}><svg class={`kind as-${s.kind}`} viewBox="0 0 20 20" aria-hidden="true"><path d={icons[s.kind]} /></svg><span class="timeline-label"><Seen text={s.label} />{args.get(s.event) && <span class="timeline-args" dir="auto"> {inOneLine(args.get(s.event)!)}</span>}{s.tokens && <span class="soft timeline-tokens"> {inAndOut(s.tokens)}</span>}</span>{s.progress && <span class="timeline-tokens num">{s.progress.done.toLocaleString()}{s.progress.total ? ` of ${s.progress.total.toLocaleString()}` : ""}</span>}<span class={`timeline-state ${state.kind}`} aria-hidden="true">{s.state === "completed" ? "" : state.sign}</span><span class="soft num">{took}</span><span class="unseen">, {s.kind}, {state.name}, </span></span>
            <span class="timeline-track"><span class={`bar as-${s.kind} ${s.state}${idle ? " idle" : ""}${s.to === undefined ? " open" : ""}${runs ? " runs" : ""}`} style={place(s.from, s.to)} title={visible(says)}>{part !== undefined && <><i class="bar-done" style={{ width: `${part}%` }} /><span class="bar-part" aria-hidden="true">{part} %</span></>}</span>
              {s.parts.map((p, n) => <span key={n} class={`bar part as-${p.kind}`} style={place(p.from, p.to)} />)}</span>
          </div>;
        })}
      </div>
    </div>
    {shown && <SpanDetail key={shown.event} span={shown} chosen={shown === chosen} begin={begin} end={end} events={events} step={(by) => select(pass(by))} close={() => select(undefined)} open={open} />}</div>
  </>;
}
