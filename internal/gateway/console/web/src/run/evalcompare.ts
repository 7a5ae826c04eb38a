// Two results of evaluations side by side: how rates moved, and which cases changed.

export interface Scored { scenario: string; ok: boolean; scored: boolean }
export interface Rate { ok_rate: number | null; ok_rate_low: number | null; ok_rate_high: number | null }

export type Change = "better" | "worse" | "same" | "unknown"; // unknown: one side has no score

// rateOf is the part of the scored runs that passed, undefined if there are none.
export function rateOf(runs: Scored[] = []): number | undefined {
  const scored = runs.filter((r) => r.scored);
  return scored.length ? scored.filter((r) => r.ok).length / scored.length : undefined;
}

// changeOf compares the runs of a case with those of the other result.
export function changeOf(now: Scored[] | undefined, was: Scored[] | undefined): Change {
  const a = rateOf(was), b = rateOf(now);
  return a === undefined || b === undefined ? "unknown" : b > a ? "better" : b < a ? "worse" : "same";
}

// apart reports whether two rates differ by more than chance: their intervals do not overlap.
export const apart = (a: Rate, b: Rate) => a.ok_rate !== null && b.ok_rate !== null && ((a.ok_rate_low ?? 0) > (b.ok_rate_high ?? 1) || (b.ok_rate_low ?? 0) > (a.ok_rate_high ?? 1));
