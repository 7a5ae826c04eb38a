// The difference of two texts by words, for people.

import { pairs } from "./lcs";

export type Change = [kind: "same" | "gone" | "new", text: string];

const most = 2000; // words on one side beyond which the middle counts as replaced

const words = (s: string) => s.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

// wordDiff returns the pieces of both texts in order. Joined, "same" and "gone" are the first text, "same" and "new" the second.
export function wordDiff(before: string, after: string): Change[] {
  const a = words(before), b = words(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const out: Change[] = [];
  const put = (kind: Change[0], text: string) => {
    const last = out.at(-1);
    if (!text) return;
    if (last?.[0] === kind) last[1] += text;
    else out.push([kind, text]);
  };
  put("same", a.slice(0, head).join(""));
  middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), put);
  put("same", tail ? a.slice(-tail).join("") : "");
  return out;
}

// middle compares what is left between an equal beginning and an equal end.
function middle(a: string[], b: string[], put: (kind: Change[0], text: string) => void) {
  if (a.length > most || b.length > most || !a.length || !b.length) {
    put("gone", a.join(""));
    put("new", b.join(""));
  } else for (const [i, j] of pairs(a, b)) put(i < 0 ? "new" : j < 0 ? "gone" : "same", i < 0 ? b[j]! : a[i]!);
}
