// The events of a run as the server wrote them.

import { useMemo, useState } from "preact/hooks";
import { Copy, Empty, JsonView, Seen } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { param, setParams } from "../router";
import { duration } from "../text/format";
import { micros, type RunEvent } from "./types";

export function Events({ events, selected, select, size }: { events: RunEvent[]; selected?: number; select: (event: number | undefined) => void; size: string }) {
  const kind = param("type"), text = param("find").toLowerCase();
  const [wide, setWide] = useState(true);
  const begin = micros(events[0]!.time);
  const rows = useMemo(() => events.filter((e) => (!kind || e.type === kind) && (!text || e.raw.toLowerCase().includes(text))), [events, kind, text]);
  const chosen = events.find((e) => e.event_id === selected);
  const columns: Column<RunEvent>[] = [
    { key: "id", title: "#", width: "3.5rem", align: "end", cell: (e) => <button type="button" class="link num" onClick={() => select(e.event_id)} aria-label={`Show event ${e.event_id}`}>{e.event_id}</button> },
    { key: "at", title: "After", width: "6rem", align: "end", phone: true, cell: (e) => duration((micros(e.time) - begin) / 1000) },
    { key: "turn", title: "Turn", width: "3rem", align: "end", cell: (e) => e.turn || "" },
    { key: "type", title: "Type", width: "12rem", phone: true, cell: (e) => e.type },
    { key: "what", title: "About", cell: (e) => <Seen text={[e.data.tool_name ?? e.data.tool ?? e.data.model ?? "", e.data.tool_call_id ?? "", e.data.status ?? e.data.reason ?? e.data.decision ?? "", e.data.error_code ?? e.data.error_type ?? ""].filter(Boolean).join("  ")} />, phone: 2 },
  ];
  return <div class="run-events">
    <form class="filters" role="search" aria-label="Events" onSubmit={(e) => e.preventDefault()}>
      <label>Type<select value={kind} onChange={(e) => setParams({ type: e.currentTarget.value })}><option value="">all</option>{[...new Set(events.map((e) => e.type))].map((t) => <option key={t}>{t}</option>)}</select></label>
      <label>Text<input value={param("find")} onInput={(e) => setParams({ find: e.currentTarget.value })} /></label>
      <span class="soft small">{rows.length} of {events.length}, {size}</span>
      <Copy text={() => events.map((e) => e.raw).join("\n")} label="Copy all" />
      {chosen && <button type="button" class="quiet small" onClick={() => setWide(!wide)} aria-expanded={wide}>{wide ? "Hide the event" : "Show the event"}</button>}
    </form>
    <div class={chosen && wide ? "run-halves" : undefined}>{rows.length === 0 ? <Empty title="No event fits." /> : <div class="run-events-table"><DataTable label="Events" columns={columns} rows={rows} rowKey={(e) => String(e.event_id)} chosen={chosen && String(chosen.event_id)} rowHeight={34} /></div>}
    {chosen && wide && <div class="run-event"><h2>{chosen.type} #{chosen.event_id}</h2><JsonView text={chosen.raw} label={`Event ${chosen.event_id}`} /></div>}</div>
  </div>;
}
