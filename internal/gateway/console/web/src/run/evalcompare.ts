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

// changesOf counts the changes of the cases of a model.
export function changesOf(all: Change[]): Record<Change, number> {
  const out: Record<Change, number> = { better: 0, worse: 0, same: 0, unknown: 0 };
  for (const c of all) out[c]++;
  return out;
}

// isNewer reports whether a result is of a later time than another one; false if one of the times is not known.
export const isNewer = (a?: Result, b?: Result) => Boolean(a?.started && b?.started && Date.parse(a.started) > Date.parse(b.started));

// apart reports whether two rates differ by more than chance: their intervals do not overlap.
export const apart = (a: Rate, b: Rate) => a.ok_rate !== null && b.ok_rate !== null && ((a.ok_rate_low ?? 0) > (b.ok_rate_high ?? 1) || (b.ok_rate_low ?? 0) > (a.ok_rate_high ?? 1));

export interface Measured extends Rate { model: string; strategy?: string; fallback?: boolean; runs: number; ok: number; errors: number; ms_p50: number; ms_p95: number; cost?: number }
export interface Result { id: string; suite?: string; status?: string; started?: string; models: Measured[]; problem?: string }

// nameOf is a model as it was measured.
export const nameOf = (m: { model: string; strategy?: string; fallback?: boolean }) => [m.model, m.strategy && m.strategy !== "production" ? m.strategy : "", m.fallback ? "fallback" : ""].filter(Boolean).join(", ");

export const percent = (n: number | null) => n === null ? "–" : `${Math.round(n * 100)} %`;
// interval is a rate with its interval of 95 %.
export const interval = (m: Measured) => m.ok_rate === null ? "no score" : `${percent(m.ok_rate)} (${Math.round((m.ok_rate_low ?? 0) * 100)}–${percent(m.ok_rate_high)})`;

// A Point is the rate of a model in one result of a suite.
export interface Point { id: string; started?: string; m: Measured }

// trendsOf returns the rates of each model that at least two results of a suite have, the oldest first. Models of the newest result come first.
export function trendsOf(results: Result[], suite: string): Map<string, Point[]> {
  const trends = new Map<string, Point[]>(), of = results.filter((r) => !r.problem && (r.suite ?? "") === suite);
  for (const r of of) for (const m of r.models) if (m.ok_rate !== null) trends.set(nameOf(m), [{ id: r.id, started: r.started, m }, ...trends.get(nameOf(m)) ?? []]);
  for (const [name, points] of trends) {
    points.sort((a, b) => (a.started ?? "").localeCompare(b.started ?? ""));
    if (points.length < 2) trends.delete(name);
  }
  return trends;
}

// verdictOf says whether a rate reaches a mark from 0 to 1. At a mark of 1 each run must pass, as lathe eval judges; else the interval says how sure that is.
export function verdictOf(m: Measured, mark: number): [kind: "ok" | "bad" | "wait", word: string] {
  if (m.ok_rate === null) return ["wait", "no score"];
  if (mark === 1) return m.ok === m.runs ? ["ok", "every run passed"] : ["bad", `${m.runs - m.ok} of ${m.runs} failed`];
  if ((m.ok_rate_low ?? 0) >= mark) return ["ok", "reaches it"];
  if ((m.ok_rate_high ?? 1) < mark) return ["bad", "below it"];
  return ["wait", m.ok_rate >= mark ? "reaches it, not surely" : "below it, not surely"];
}

export interface Filed extends Scored { model: string; strategy?: string; fallback?: boolean; control?: boolean; provokes?: boolean }
interface Tally { ok: number; runs: number }
export interface Figures { rate: Tally; recovery: Tally; control: Tally }

// figuresOf counts the files of the runs of a model as its row of the summary does: runs without tools and runs after a provoked mistake apart, if there are others.
export function figuresOf(runs: Filed[]): Figures {
  const kind = (r: Filed) => r.control ? "control" : r.provokes ? "recovery" : "rate", scored = runs.filter((r) => r.scored), apart = new Set(runs.map(kind)).size > 1;
  const out: Figures = { rate: { ok: 0, runs: 0 }, recovery: { ok: 0, runs: 0 }, control: { ok: 0, runs: 0 } };
  for (const r of scored) {
    const t = out[apart ? kind(r) : "rate"];
    t.runs++;
    if (r.ok) t.ok++;
  }
  return out;
}

// contradictions says where the outcome does not fit the rates, and where the files of the runs are not those that the summary counts.
export function contradictions({ status, models, runs }: { status?: string; models: Measured[]; runs: Filed[] }): string[] {
  const names = new Set([...models, ...runs].map(nameOf)), wrong = models.some((m) => status === "passed" && m.ok < m.runs) ? [`the outcome is passed, but ${models.filter((m) => m.ok < m.runs).map((m) => `${nameOf(m)} passed ${m.ok} of ${m.runs}`).join(" and ")}`] : [];
  return !runs.length ? wrong : [...wrong, ...[...names].flatMap((name) => {
    const m = models.find((o) => nameOf(o) === name), own = runs.filter((r) => nameOf(r) === name), { rate } = figuresOf(own);
    if (!m) return [`${name} is not in the summary`];
    if (!own.length) return [`no file of a run of ${name}`];
    return rate.ok === m.ok && rate.runs === m.runs ? [] : [`${name} passed ${m.ok} of ${m.runs} in the summary, ${rate.ok} of ${rate.runs} in the files`];
  })];
}

const shipped = ["retail", "airline", "skills", "injection", "faults"], quoted = (s: string) => /^[\w./:,@-]+$/.test(s) ? s : `'${s.replaceAll("'", "'\\''")}'`;

// commandOf is the command that measures models. The suite state is the one of lathe eval without a name; another one that does not come with Lathe is a file.
export function commandOf({ suite = "state", scenarios = [], models, trials, out }: { suite?: string; scenarios?: string[]; models: string[]; trials: number; out: string }): string {
  return ["lathe eval", suite === "state" ? scenarios.length ? `--scenario ${quoted(scenarios.join(","))}` : "" : suite === "bfcl" ? "bfcl --data FOLDER" : shipped.includes(suite) ? suite : quoted(`${suite}.yaml`), models.length ? `--model ${quoted(models.join(","))}` : "", `--trials ${trials}`, `--out ${quoted(out)}`].filter(Boolean).join(" ");
}
