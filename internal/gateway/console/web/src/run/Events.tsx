// The events of a run as the server wrote them.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { Copy, Empty, Seen } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { ResultView } from "../components/ResultView";
import { param, setParams } from "../router";
import { duration } from "../text/format";
import { visible } from "../text/visible";
import { aboutOf, kindOf, partOf } from "./about";
import { itemsOf } from "./items";
import { micros, type RunEvent } from "./types";

// A Type has the colour of the timeline, and a sign where something failed or waits.
const Type = ({ event: e }: { event: RunEvent }) => <span class="event-type"><i class={`as-${partOf(e.type)}`} /><span class={kindOf(e)}>{e.type}{{ bad: " ✗", wait: " ●", ok: " ✓" }[kindOf(e) as string] ?? ""}</span></span>;

export function Events({ events, selected, select, size }: { events: RunEvent[]; selected?: number; select: (event: number | undefined) => void; size: string }) {
  const kind = param("type"), text = param("find").toLowerCase();
  const begin = micros(events[0]!.time);
  const rows = useMemo(() => events.filter((e) => (!kind || e.type === kind) && (!text || e.raw.toLowerCase().includes(text))), [events, kind, text]);
  const args = useMemo(() => new Map(itemsOf(events).items.flatMap((i) => i.kind === "call" ? [[i.call.id, i.call.args] as const] : [])), [events]);
  const at = events.findIndex((e) => e.event_id === selected), chosen = events[at];
  const gap = (e: RunEvent) => { const i = events.indexOf(e); return i > 0 ? micros(e.time) - micros(events[i - 1]!.time) : 0; };
  const halves = useRef<HTMLDivElement>(null), open = Boolean(chosen);
  useEffect(() => { if (open && matchMedia("(max-width: 52rem)").matches) halves.current?.scrollIntoView({ block: "start" }); }, [open]); // the list beside the sheet
  const columns: Column<RunEvent>[] = [
    { key: "id", title: "#", width: "3.2rem", align: "end", phone: true, cell: (e) => <button type="button" class="link num" onClick={() => select(e.event_id)} aria-label={`Show event ${e.event_id}`}>{e.event_id}</button> },
    { key: "type", title: "Type", width: "13rem", phone: true, cell: (e) => <Type event={e} /> },
    { key: "what", title: "About", width: "minmax(0, 1fr)", cell: (e) => <span title={visible(aboutOf(e, args.get(e.data.tool_call_id ?? "")))}><Seen text={aboutOf(e, args.get(e.data.tool_call_id ?? ""))} /></span>, phone: 2 },
    { key: "turn", title: "Turn", width: "2.8rem", align: "end", cell: (e) => e.turn || "" },
    { key: "gap", title: "Since last", width: "5rem", align: "end", cell: (e) => { const us = gap(e); return us >= 100 ? <span class="soft">+{duration(us / 1000)}</span> : ""; } },
    { key: "at", title: "After", width: "5rem", align: "end", phone: true, cell: (e) => duration((micros(e.time) - begin) / 1000) },
  ];
  return <div class="run-events">
    <form class="filters" role="search" aria-label="Events" onSubmit={(e) => e.preventDefault()}>
      <label>Type<select value={kind} onChange={(e) => setParams({ type: e.currentTarget.value })}><option value="">all</option>{[...new Set(events.map((e) => e.type))].map((t) => <option key={t} value={t}>{t} ({events.filter((e) => e.type === t).length})</option>)}</select></label>
      <label>Text<input value={param("find")} onInput={(e) => setParams({ find: e.currentTarget.value })} /></label>
      <span class="soft small">{rows.length} of {events.length}, {size}</span>
      <Copy text={() => events.map((e) => e.raw).join("\n")} label="Copy all" />
    </form>
    <div ref={halves} class={chosen ? "run-halves" : undefined}>{rows.length === 0 ? <Empty title="No event fits." /> : <div class="run-events-table"><DataTable label="Events" columns={chosen ? columns.filter((c) => c.key !== "turn" && c.key !== "gap") : columns} rows={rows} rowKey={(e) => String(e.event_id)} choose={(e) => select(e.event_id)} chosen={chosen && String(chosen.event_id)} rowHeight={34} /></div>}
    {chosen && <Detail key={chosen.event_id} event={chosen} events={events} about={aboutOf(chosen, args.get(chosen.data.tool_call_id ?? ""))} after={(micros(chosen.time) - begin) / 1000} gap={gap(chosen) / 1000} select={select}
      step={(by) => { const i = rows.indexOf(chosen); select(rows[Math.max(0, Math.min(rows.length - 1, (i < 0 ? 0 : i) + by))]?.event_id); }} />}</div>
  </div>;
}

// Detail is one event, with those of the same call. On narrow screens it is a sheet over the end of the page.
function Detail({ event: e, events, about, after, gap, select, step }: { event: RunEvent; events: RunEvent[]; about: string; after: number; gap: number; select: (event: number | undefined) => void; step: (by: number) => void }) {
  const id = e.data.tool_call_id, same = events.filter((o) => id ? o.data.tool_call_id === id : e.type.startsWith("ModelCall") && o.type.startsWith("ModelCall") && o.turn === e.turn);
  return <article class="run-event card-box sheet" aria-label="Chosen event">
    <div class="run-who"><h2>{e.type} #{e.event_id}</h2><span class="run-acts sheet-acts"><button type="button" class="quiet small" aria-label="Previous event" onClick={() => step(-1)}>‹</button><button type="button" class="quiet small" aria-label="Next event" onClick={() => step(1)}>›</button><button type="button" class="quiet small" onClick={() => select(undefined)}>Close</button></span></div>
    <p class="soft small"><Seen text={about} /></p>
    <p class="span-marks num"><span>{duration(after)} after the beginning</span><span>{duration(gap)} after the event before</span>{e.turn > 0 && <span>turn {e.turn}</span>}</p>
    {same.length > 1 && <nav class="event-same" aria-label={id ? "Events of the same call" : "Events of the same turn"}>{same.map((o) => <button key={o.event_id} type="button" class={`quiet small${o === e ? " chosen" : ""}`} aria-current={o === e ? "true" : undefined} onClick={() => select(o.event_id)}>{o.type.replace(/^(?:ToolCall|ModelCall)/, "")} #{o.event_id}</button>)}</nav>}
    <ResultView text={e.raw} label="Event" name={`Event ${e.event_id}`} />
  </article>;
}
