// The events of a run as they happen.

import { useEffect, useRef, useState } from "preact/hooks";
import { enc, follow, isAbort } from "../api";
import { withDelta } from "./deltas";
import { readEvent, type RunEvent } from "./types";

// useEvents follows the events of a run; of "" there are none. paused holds back what comes; it is shown when the pause ends.
export function useEvents(id: string, paused = false) {
  const [events, set] = useState<RunEvent[]>([]);
  const [error, setError] = useState<Error>();
  const [over, setOver] = useState(false);
  const all = useRef<RunEvent[]>([]), hold = useRef(paused), due = useRef(false);
  hold.current = paused;
  const show = () => {
    if (due.current || hold.current) return;
    due.current = true;
    requestAnimationFrame(() => { due.current = false; if (!hold.current) set([...all.current]); });
  };
  useEffect(() => {
    all.current = [];
    set([]); setError(undefined); setOver(false);
    if (!id) return;
    const aborter = new AbortController();
    follow(`api/runs/${enc(id)}/events`, { signal: aborter.signal, on: (e) => {
      const event = readEvent(e.data), list = all.current;
      if (event.type === "server_draining") return; // the stream ends; follow resumes it
      if (event.event_id !== undefined) { // what it replaces is no longer needed
        if (event.event_id <= (list.findLast((x) => x.event_id !== undefined)?.event_id ?? 0)) return;
        if (event.type === "ModelCallFinished") all.current = list.filter((x) => x.event_id !== undefined);
      }
      if (event.type === "ToolCallProgress") all.current = [...all.current.filter((x) => x.type !== event.type || x.data.tool_call_id !== event.data.tool_call_id), event];
      else if (event.n) all.current = withDelta(all.current, event);
      else all.current.push(event);
      show();
    } }).then(() => { setOver(true); show(); }, (e: unknown) => { if (!isAbort(e)) setError(e as Error); });
    return () => aborter.abort();
  }, [id]);
  useEffect(() => { if (!paused) set([...all.current]); }, [paused]);
  return { events, error, over, held: all.current.length - events.length };
}
