// The pieces of an answer that is being written.

import type { RunEvent } from "./types";

// withDelta returns the events with a delta. A stream that is made anew tells the deltas of the model call from the first on, perhaps joined otherwise: they take
// the place of those that are known. Where some are missing, the text says so.
export function withDelta(events: RunEvent[], delta: RunEvent): RunEvent[] {
  const { after, n = 0 } = delta, known = events.findLast((e) => e.n && e.after === after)?.n ?? 0;
  if (n <= known) return [...events.filter((e) => !e.n || e.after !== after), delta];
  if (n > known + 1 && delta.content?.text) delta.content.text = `… ${delta.content.text}`;
  events.push(delta);
  return events;
}
