// What happens to a run elsewhere, while the page is in view: one that is not holds no connection.

import { enc, events, refusal, request } from "../api";

// inView waits until the page is in view.
export async function inView(signal: AbortSignal) {
  while (document.hidden) {
    signal.throwIfAborted();
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

// news waits until something happens to a run after an event, or the page is out of view.
export async function news(runId: string, after: number, signal: AbortSignal) {
  const hide = new AbortController();
  const leave = () => { if (document.hidden) hide.abort(); };
  document.addEventListener("visibilitychange", leave);
  try {
    const response = await request(`api/runs/${enc(runId)}/events?after=${after}`, { signal: AbortSignal.any([signal, hide.signal]) });
    if (!response.ok) throw await refusal(response);
    if (response.status === 204) return;
    for await (const { id } of events(response)) if (id) return;
  } catch (e) {
    if (!hide.signal.aborted) throw e;
  } finally {
    document.removeEventListener("visibilitychange", leave);
  }
}
