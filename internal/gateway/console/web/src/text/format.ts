// Numbers and times for people.

import { visible } from "./visible.js";

export const count = (n: number, one: string, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`;

const farthest = 30 * 86400; // s; a time farther away is a date

// ago says how far a time is from now: 3 min ago, with due also in 2 h; the date of one that is more than 30 days away. Without due, a time to
// come is one of another clock and is now.
export function ago(time: string | number, now: number, due = false): string {
  const off = (now - new Date(time).getTime()) / 1000, s = Math.abs(off);
  if (s >= farthest) return new Date(time).toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" });
  if (off < 0 ? !due : s < 60) return "just now";
  const far = s < 60 ? `${Math.ceil(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : count(Math.floor(s / 86400), "day");
  return off < 0 ? `in ${far}` : `${far} ago`;
}

// moment is a time to the second, with its date, and its year if that is not this one.
export const moment = (time: string | number) => new Date(time).toLocaleString([], { year: new Date(time).getFullYear() === new Date().getFullYear() ? undefined : "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

// duration of ms: 0.3 ms, 340 ms, 2.4 s, 3 min 5 s, 2 h 4 min.
export function duration(ms: number): string {
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${Number(s.toFixed(1))} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 >= 1 ? ` ${Math.floor(s % 60)} s` : ""}`;
  return `${Math.floor(s / 3600)} h${s % 3600 >= 60 ? ` ${Math.floor(s % 3600 / 60)} min` : ""}`;
}

// wait is a duration that is counted down: whole seconds from one on.
export const wait = (ms: number) => duration(ms < 1000 ? ms : Math.round(ms / 1000) * 1000);

// measured is a duration in whole ms, of which 0 is less than one.
export const measured = (ms: number) => ms < 1 ? "< 1 ms" : duration(ms);

export function bytes(n: number): string {
  if (n < 1024) return count(n, "byte");
  return n < 1024 * 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

// words makes a code such as awaiting_approval readable.
export const words = (code: string) => visible(code.replaceAll("_", " "));
