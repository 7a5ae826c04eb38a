// The choice of a time: until now, or a range of dates.

import { setParams } from "../router";

const local = (time: string) => { const t = new Date(time); return Number.isNaN(t.getTime()) ? "" : new Date(t.getTime() - t.getTimezoneOffset() * 60_000).toISOString().slice(0, 16); };
const utc = (name: string) => (e: { currentTarget: HTMLInputElement }) => setParams({ [name]: e.currentTarget.value && new Date(e.currentTarget.value).toISOString() });

// day is the beginning of the day that is so many days ago, by this browser's clock.
export const day = (back: number) => { const d = new Date(); d.setHours(0, 0, 0, 0); d.setDate(d.getDate() - back); return d.toISOString(); };

// TimeRange writes since and until into the address, dates in UTC. times are those until now, such as 24h. Dates are of this browser's clock.
export function TimeRange({ label, times, since, until }: { label: string; times: (readonly [value: string, label: string, ...more: unknown[]])[]; since: string; until: string }) {
  const own = until !== "" || !times.some(([v]) => v === since);
  return <><label>{label}<select value={own ? "own" : since} onChange={(e) => setParams({ since: e.currentTarget.value === "own" ? day(0) : e.currentTarget.value, until: "" })}>
    {times.map(([v, l]) => <option key={v} value={v}>{l}</option>)}<option value="own">range of dates</option></select></label>
    {own && <><label>From<input type="datetime-local" name="since" value={local(since)} max={local(until) || undefined} onChange={utc("since")} /></label><label>To<input type="datetime-local" name="until" value={local(until)} min={local(since) || undefined} onChange={utc("until")} /></label></>}</>;
}
