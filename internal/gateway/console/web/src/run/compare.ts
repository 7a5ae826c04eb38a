// Two runs side by side: their items in one order.

import { pairs } from "../text/lcs";
import { exactly, pieces, shown } from "../text/visible.js";
import type { Item } from "./items";

const most = 2000; // items on one side; the rest is not compared

// A Row is an item of each run, or of one alone.
export interface Row { left?: Item; right?: Item }

const nameOf = (i: Item) => i.kind === "call" ? `call ${i.call.name}` : i.kind === "text" ? `${i.role} ${i.note ?? ""}` : "note";

// align puts the items of two runs beside each other: equal ones first, then those of one kind, such as two calls of a tool.
export function align(left: Item[], right: Item[]): Row[] {
  const a = left.slice(0, most), b = right.slice(0, most), rows: Row[] = [];
  for (const [i, j] of pairs(a.map(nameOf), b.map(nameOf))) rows.push({ left: a[i], right: b[j] });
  return rows;
}

// A Part is one text of an item, with what cannot be seen as escapes.
export interface Part { label: string; text: string }

const joined = (cut: [string, boolean][]) => cut.map(([t]) => t).join("");

export function partsOf(item: Item | undefined): Part[] {
  if (!item) return [];
  if (item.kind !== "call") return [{ label: "", text: joined(pieces(item.text, "\n\t")) }];
  const { args, result, stored } = item.call, out = [{ label: "Arguments", text: joined(exactly(args)) }];
  if (result) out.push({ label: result.data.error_type ? `Result: ${result.data.error_type}` : "Result", text: joined(shown(result.content?.result ?? "")) });
  else if (stored) out.push({ label: "Result", text: joined(shown(stored.content ?? "")) });
  return out;
}

// same reports whether both sides of a row say the same.
export function same(row: Row): boolean {
  const a = partsOf(row.left), b = partsOf(row.right);
  return !!row.left && !!row.right && a.length === b.length && a.every((p, i) => p.label === b[i]!.label && p.text === b[i]!.text);
}

// answerOf is what the model said last.
export function answerOf(items: Item[]): string {
  const last = items.findLast((i) => i.kind === "text" && i.role === "assistant" && i.note !== "reasoning");
  return last?.kind === "text" ? last.text : "";
}

const and = (list: string[]) => list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`;

// share is by how much a number grew or shrank, such as −57 %; "" if that cannot be said, since one of them is not known or 0.
export function share(from: number, to: number): string {
  const n = from > 0 && to > 0 ? Math.round((to / from - 1) * 100) : 0;
  return n === 0 ? "" : `${n > 0 ? "+" : "−"}${Math.abs(n).toLocaleString()} %`;
}

export interface Figures { tokens: number; ms: number; cost?: number; ended: boolean }

// Sides is what the runs of the two sides are called: a run is compared with one that repeats it, or an older with a newer one.
export interface Sides { left: string; right: string }
export const repeated: Sides = { left: "recorded", right: "new" }, aged: Sides = { left: "older", right: "newer" };

// differs says in one or two sentences what is other in the right run than in the left one: the answer, the calls, tokens, time and cost.
export function differs(left: Item[], right: Item[], a: Figures, b: Figures, sides = repeated): string {
  const calls = (items: Item[]) => items.flatMap((i) => i.kind === "call" ? [{ name: i.call.name, args: i.call.args, failed: i.call.result?.data.status === "error" }] : []);
  const was = calls(left), is = calls(right), names = (list: typeof was) => [...new Set(list.map((c) => c.name))];
  const gone = names(was).filter((n) => !names(is).includes(n)), fresh = names(is).filter((n) => !names(was).includes(n));
  const said = [...!b.ended ? [] : [answerOf(left) === answerOf(right) ? "gives the same answer" : answerOf(right) ? "gives another answer" : "gives no answer"]];
  if (gone.length) said.push(`does not call ${and(gone)}`);
  if (fresh.length) said.push(`calls ${and(fresh)}, which the ${sides.left} run did not`);
  if (!gone.length && !fresh.length && was.length !== is.length) said.push(`makes ${Math.abs(is.length - was.length)} ${Math.abs(is.length - was.length) === 1 ? "call" : "calls"} ${is.length > was.length ? "more" : "fewer"}`);
  else if (was.length && was.length === is.length && was.some((c, i) => c.name === is[i]!.name && c.args !== is[i]!.args)) said.push("calls with other arguments");
  const failed = (list: typeof was) => list.filter((c) => c.failed).length;
  if (failed(is) > failed(was)) said.push(`has ${failed(is) - failed(was)} more failed ${failed(is) - failed(was) === 1 ? "call" : "calls"}`);
  const by = (from: number, to: number, more: string, less: string) => { const s = share(from, to); return s && `${s.slice(1)} ${s[0] === "+" ? more : less}`; };
  const figures = b.ended ? [by(a.tokens, b.tokens, "more tokens", "fewer tokens"), by(a.ms, b.ms, "more time", "less time")].filter(Boolean) : [], costs = b.ended && by(a.cost ?? 0, b.cost ?? 0, "more", "less");
  return [said.length ? `The ${sides.right} run ${and(said)}.` : "", figures.length || costs ? `It ${and([figures.length ? `takes ${and(figures)}` : "", costs ? `costs ${costs}` : ""].filter(Boolean))}.` : ""].filter(Boolean).join(" ");
}
