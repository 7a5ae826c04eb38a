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

const leastRated = 100; // ms over which tokens are counted, else their rate says nothing

// rate is how many tokens came in a second, of those that came in ms; "" if the time or the number is too small to say so.
export const rate = (tokens: number, ms: number) => tokens > 4 && ms >= leastRated ? `${Math.round(tokens / ms * 1000).toLocaleString()} tokens/s` : "";

export const notReported = "not reported"; // of tokens: the API has 0 both for none and for a model server that reports no usage

// inAndOut are the tokens that were read and written, such as 1,204 in, 56 out.
export const inAndOut = (u?: { input_tokens?: number; output_tokens?: number }, unit = "") => u && (u.input_tokens || u.output_tokens) ? `${(u.input_tokens ?? 0).toLocaleString()}${unit} in, ${(u.output_tokens ?? 0).toLocaleString()} out` : `${unit.trim()} ${notReported}`.trim();

const roundSteps = [...[.1, 1, 10, 100].flatMap((n) => [n, 2 * n, 5 * n]), ...[1000, 2000, 5000, 10_000, 20_000], ...[1, 2, 5, 10, 20].map((n) => n * 60_000)], hour = 3_600_000; // ms

// marks returns the times in ms at which an axis from 0 to ms is labelled, at most most of them after 0: steps of 1, 2 or 5 × 10ⁿ of ms, seconds, minutes or hours.
export function marks(ms: number, most: number): number[] {
  const unit = hour * 10 ** Math.max(0, Math.floor(Math.log10(ms / most / hour))), fits = (step: number) => ms / step <= most;
  const step = roundSteps.find(fits) ?? [unit, 2 * unit, 5 * unit].find(fits) ?? 10 * unit;
  return Array.from({ length: Math.floor(ms / step) + 1 }, (_, i) => i * step);
}

export function bytes(n: number): string {
  if (n < 1024) return count(n, "byte");
  return n < 1024 * 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

// words makes a code such as awaiting_approval readable.
export const words = (code: string) => visible(code.replaceAll("_", " "));

// unmarked returns the text of Markdown in one line, without the marks of links, lists, headings, emphasis, code, formulas and tables.
export const unmarked = (text: string) => text.replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, "$1").replace(/^[ \t]*(?:\|?[-:| ]*-{3}[-:| ]*$|(?:#{1,6}|>|[-*+]|\d{1,9}\.)[ \t]+)/gm, "")
  .replace(/\*\*([^*\n]+)\*\*/g, "$1").replace(/`+([^`\n]*)`+/g, "$1").replace(/\$\$?([^$\d\s][^$]*)\$\$?/g, "$1").replace(/\s+/g, " ").trim();

// shell quotes a text as one word of a shell.
export const shell = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`;
