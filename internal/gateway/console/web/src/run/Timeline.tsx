// The timeline of a run: one row and bar for each span.

import { Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { now } from "../api";
import { Badge, Seen } from "../components/basics";
import { visible } from "../text/visible";
import { duration, words } from "../text/format";
import { spansOf, type Span } from "./spans";
import { micros, type RunEvent } from "./types";

const zooms = [1, 2, 4, 8, 16];

export function Timeline({ events, live, selected, select, open }: { events: RunEvent[]; live: boolean; selected?: number; select: (event: number | undefined) => void; open: (event: number) => void }) {
  const spans = useMemo(() => spansOf(events), [events]);
  const [zoom, setZoom] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const begin = micros(events[0]!.time);
  const end = Math.max(begin + 1, micros(events.at(-1)!.time), live ? now() * 1000 : 0);
  const whole = end - begin;
  const place = (from: number, to: number | undefined) => ({ left: `${(from - begin) / whole * 100}%`, width: `${((to ?? end) - from) / whole * 100}%` });
  const chosen = spans.find((s) => s.event === selected);
  const at = Math.max(0, spans.findIndex((s) => s.event === selected));
  const wanted = useRef<number | undefined>(undefined); // the event whose row gets the focus once it is selected
  useEffect(() => {
    if (wanted.current === undefined || wanted.current !== selected) return;
    wanted.current = undefined;
    const row = list.current?.querySelector<HTMLElement>(`[data-event="${selected}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [selected]);
  const keys = (e: KeyboardEvent) => {
    const step = ({ j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, Home: -spans.length, End: spans.length } as Record<string, number>)[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (step !== undefined) {
      e.preventDefault();
      wanted.current = spans[Math.max(0, Math.min(spans.length - 1, at + step))]?.event;
      select(wanted.current);
    } else if (e.key === "Enter" && spans[at]) open(spans[at].event);
    else if (e.key === "+") setZoom(Math.min(zooms.length - 1, zoom + 1));
    else if (e.key === "-") setZoom(Math.max(0, zoom - 1));
  };
  const marks = [0, .25, .5, .75, 1];
  return <>
    <div class="timeline-bar">
      <span class="timeline-key"><i class="model" />model <i class="first" />until the first token <i class="tool" />tool <i class="approval" />approval <i class="pause" />waits</span>
      <span class="soft small by-keys">j and k choose, Enter opens the event</span>
      <span class="answers"><button type="button" class="quiet small" disabled={zoom === 0} onClick={() => setZoom(zoom - 1)} aria-label="Zoom out">−</button>
        <span class="small num">{zooms[zoom]} ×</span><button type="button" class="quiet small" disabled={zoom === zooms.length - 1} onClick={() => setZoom(zoom + 1)} aria-label="Zoom in">+</button></span>
    </div>
    <div class={chosen ? "run-halves" : undefined}><div class="timeline" ref={list} onKeyDown={keys} role="listbox" aria-label={`${spans.length} spans in ${duration(whole / 1000)}`} tabIndex={-1}>
      <div class="timeline-wide" style={{ width: `${zooms[zoom]! * 100}%` }}>
        <div class="timeline-scale" role="presentation" aria-hidden="true"><span class="timeline-name" /><span class="timeline-track">{marks.map((m) => <span key={m} style={{ left: `${m * 100}%` }}>{duration(whole / 1000 * m)}</span>)}</span></div>
        {spans.map((s, i) => {
          const took = duration(((s.to ?? end) - s.from) / 1000), says = `${s.label} ${took}${s.note ? ` ${words(s.note)}` : ""}, ${s.kind}${s.to === undefined ? ", goes on" : ""}`;
          return <div key={s.id} class="timeline-row" role="option" aria-selected={s.event === selected} data-event={s.event} data-from={s.from} data-to={s.to} tabIndex={i === at ? 0 : -1}
            onClick={() => select(s.event)} onDblClick={() => open(s.event)}>
            <span class="timeline-name" style={{ paddingLeft: `${.6 + Math.min(s.lane, 5) * .6}rem` }}><Seen text={s.label} /> <span class="soft">{took}</span><span class="unseen">, {s.kind}{s.to === undefined ? ", goes on" : ""}, </span></span>
            <span class="timeline-track"><span class={`bar ${s.kind}${s.failed ? s.ran ? " failed" : " denied" : ""}${s.to === undefined ? " open" : ""}`} style={place(s.from, s.to)} title={visible(says)} />
              {s.parts.map((p, n) => <span key={n} class={`bar part ${p.kind}`} style={place(p.from, p.to)} />)}
              {s.note && <span class="timeline-note" style={{ left: `min(${place(s.from, s.to).left}, 100% - 9rem)` }}>{words(s.note)}</span>}</span>
          </div>;
        })}
      </div>
    </div>
    {chosen && <Detail span={chosen} begin={begin} end={end} events={events} open={open} />}</div>
  </>;
}

const partNames = { first: "Until the first token", approval: "Waited for an approval", work: "Worked", wait: "Waited before this attempt" };

// Detail says what a span is made of.
function Detail({ span: s, begin, end, events, open }: { span: Span; begin: number; end: number; events: RunEvent[]; open: (event: number) => void }) {
  const over = events.findLast((e) => e.type === "ModelCallFinished" && s.kind === "model" && micros(e.time) === s.to);
  return <article class="card-box timeline-detail" aria-label="Chosen span">
    <div class="run-who"><b><Seen text={s.label} /></b>{s.note && <Badge kind={s.failed ? "bad" : ""}>{words(s.note)}</Badge>}<button type="button" class="link small" onClick={() => open(s.event)}>Open event {s.event}</button></div>
    <dl class="facts"><dt>Began after</dt><dd class="num">{duration((s.from - begin) / 1000)}</dd><dt>Took</dt><dd class="num">{duration(((s.to ?? end) - s.from) / 1000)}</dd>
      {s.parts.map((p, i) => <Fragment key={i}><dt>{partNames[p.kind]}</dt><dd class="num">{duration(((p.to ?? end) - p.from) / 1000)}</dd></Fragment>)}
      {over?.data.usage && <><dt>Tokens</dt><dd class="num">{over.data.usage.input_tokens} in, {over.data.usage.output_tokens} out</dd></>}
      {over?.content?.error_message && <><dt>The model server said</dt><dd><Seen text={over.content.error_message} /></dd></>}</dl>
  </article>;
}
