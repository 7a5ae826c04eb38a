// The lines of the audit log, those of one call as one entry.

export interface Line { n: number; time: string; kind: string; type?: string; principal?: string; run_id?: string; tool_call_id?: string; tool?: string; decision?: string; rule?: string; by?: string; status?: string; prev?: string }

// An Entry is a line, or the lines of one tool call or model call.
export interface Entry {
  kind: "tool" | "model" | "line";
  lines: Line[]; // the oldest first
  waits?: true; // of a model call: its first line may be older than its work, by a wait before a retry
}

// entriesOf returns the entries of lines, which are the newest first, in the order of the newest line of each.
export function entriesOf(lines: Line[]): Entry[] {
  const out: Entry[] = [], tools = new Map<string, Entry>(), models = new Map<string, Entry>(); // models: by run, those whose beginning is still to come
  for (const l of lines) {
    const run = l.run_id ?? "", id = l.tool_call_id ? `${run} ${l.tool_call_id}` : "", began = l.type === "ModelCallStarted";
    const known = id ? tools.get(id) : began ? models.get(run) : undefined;
    if (began) models.delete(run);
    if (known) {
      known.lines.unshift(l);
      continue;
    }
    const entry: Entry = { kind: id ? "tool" : began || l.type === "ModelCallFinished" ? "model" : "line", lines: [l] };
    out.push(entry);
    if (id) tools.set(id, entry);
    else if (l.type === "ModelCallFinished") models.set(run, entry);
  }
  const before = new Set<string>(); // runs whose start or last good model call is the newest of them so far
  for (const e of out.toReversed()) {
    const last = e.lines.at(-1)!, run = last.run_id ?? "";
    if (last.type === "RunStarted") before.add(run);
    if (e.kind !== "model") continue;
    if (!before.has(run)) e.waits = true; // it follows a failed attempt, or what it follows is not known
    if (last.status === "success") before.add(run);
    else before.delete(run);
  }
  return out;
}

// outcomeOf is how what a line reports has ended, as a state; "" for a line without an outcome.
function outcomeOf({ type, status = "", decision }: Line): string {
  if (type === "RunPaused" || type === "RunResumed") return ""; // its status is what the run waits for
  return status === "error" ? decision === "deny" ? "denied" : "failed" : status === "success" ? "ok" : status;
}

export interface Summary { decision: string; rule: string; by: string; outcome: string; ms?: number; most?: true; waited?: number } // ms: of the work, with most at most that; waited: for an approval

// summaryOf returns what came of an entry.
export function summaryOf({ kind, lines, waits }: Entry): Summary {
  const last = lines.at(-1)!, of = (type: string) => lines.findLast((l) => l.type === type), between = (from?: Line, to?: Line) => from && to ? Math.max(0, Date.parse(to.time) - Date.parse(from.time)) : undefined;
  if (kind === "model") return { decision: "", rule: "", by: "", outcome: outcomeOf(last), ms: between(of("ModelCallStarted"), of("ModelCallFinished")), ...waits && { most: waits } };
  if (kind === "line") return { decision: last.decision ?? "", rule: last.rule ?? "", by: last.by ?? "", outcome: outcomeOf(last) };
  const asked = of("ApprovalRequested"), decided = of("ApprovalResolved"), result = of("ToolCallResult"), judged = result?.decision ? result : of("Call"), end = decided?.decision ?? "";
  return {
    decision: end || judged?.decision || "", rule: asked?.rule || judged?.rule || "", by: decided?.by ?? "",
    outcome: ["denied", "expired"].includes(end) ? end : result ? outcomeOf(result) : asked && !decided ? "awaiting_approval" : "",
    ms: between(of("Call"), of("ToolCallExecuted")), waited: between(asked, decided),
  };
}
