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
