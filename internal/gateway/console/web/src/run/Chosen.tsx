// What can be done with the runs that are chosen in the list.

import { useState } from "preact/hooks";
import { enc, getText, query, send } from "../api";
import { announce, Dialog, ErrorState, Link } from "../components/basics";
import { download } from "../download";
import { count } from "../text/format";
import { newer, type Run } from "./types";

const live = (r: Run) => r.status === "running" || r.status === "parked";

// Chosen is a bar that says how many runs are chosen. removed gets the ids of the runs that were deleted.
export function Chosen({ runs, all, chooseAll, clear, removed }: { runs: Run[]; all: number; chooseAll: () => void; clear: () => void; removed: (ids: string[]) => void }) {
  const [asking, ask] = useState<"" | "stop" | "delete">(""), [busy, setBusy] = useState(""), [failed, setFailed] = useState<Error>();
  const open = runs.filter(live), idle = runs.filter((r) => r.status !== "running"), [older, younger] = runs.toSorted((a, b) => newer(b, a));
  // each does one thing to one run after the other, and says how far it has come and what failed.
  const each = async (doing: string, past: string, of: Run[], act: (r: Run) => Promise<unknown>) => {
    const wrong: Error[] = [], good: string[] = [];
    ask("");
    setFailed(undefined);
    for (const [i, r] of of.entries()) {
      setBusy(`${doing} ${i + 1} of ${count(of.length, "run")}…`);
      await act(r).then(() => good.push(r.run_id), (e: Error) => wrong.push(e));
    }
    setBusy("");
    if (wrong.length) setFailed(of.length === 1 ? wrong[0] : new Error(`${wrong.length} of ${of.length} could not be ${past}. ${wrong[0]!.message}`));
    if (good.length) announce(`${count(good.length, "run")} ${past}.`);
    return good;
  };
  const cancel = () => void each("Stopping", "stopped", open, (r) => send("POST", `api/runs/${enc(r.run_id)}/cancel`));
  const remove = () => void each("Deleting", "deleted", idle, (r) => send("DELETE", `api/runs/${enc(r.run_id)}`)).then(removed);
  const save = async () => {
    const logs: string[] = [];
    await each("Reading", "exported", runs, async (r) => logs.push((await getText(`api/runs/${enc(r.run_id)}/export`)).trimEnd()));
    if (logs.length) download(runs.length === 1 ? `${runs[0]!.run_id}.jsonl` : `${runs.length} runs.jsonl`, "application/x-ndjson", `${logs.join("\n")}\n`);
  };
  const rest = (part: Run[], why: string) => runs.length > part.length && ` ${count(runs.length - part.length, "other chosen run")} ${why}.`;
  return <>{failed && <ErrorState error={failed} />}
    <div class="runs-chosen" role="group" aria-label="Chosen runs"><b class="num">{count(runs.length, "run")} chosen</b>
      {busy ? <span role="status">{busy}</span> : <>
        {runs.length === 2 && <Link class="button" to={query(`/runs/${enc(older!.run_id)}/replay`, { with: younger!.run_id })}>Compare both</Link>}
        <button type="button" class="quiet small" onClick={() => void save()}>Export {runs.length}</button>
        {open.length > 0 && <button type="button" class="quiet small" onClick={() => ask("stop")}>Stop {open.length}…</button>}
        {idle.length > 0 && <button type="button" class="danger small" onClick={() => ask("delete")}>Delete {idle.length}…</button>}
        <span class="runs-chosen-end">{runs.length < all && <button type="button" class="link small" onClick={chooseAll}>Choose all {all.toLocaleString()} listed</button>}<button type="button" class="link small" onClick={clear}>Clear</button></span></>}</div>
    {asking === "stop" && <Dialog title={`Stop ${count(open.length, "run")}?`} close={() => ask("")}><p>What was done stays done; open calls are answered cancelled.{rest(open, "ended before")}</p>
      <div class="answers"><button type="button" class="danger" onClick={cancel}>Stop {count(open.length, "run")}</button><button type="button" class="quiet" onClick={() => ask("")}>{open.length === 1 ? "Let it go on" : "Let them go on"}</button></div></Dialog>}
    {asking === "delete" && <Dialog title={`Delete ${count(idle.length, "run")}?`} close={() => ask("")}><p>The gateway removes {idle.length === 1 ? "its" : "their"} events, messages and results, for good. Lines of the audit log stay.{rest(idle, "must be stopped first")}</p>
      <div class="answers"><button type="button" class="danger" onClick={remove}>Delete {count(idle.length, "run")} for good</button><button type="button" class="quiet" onClick={() => ask("")}>{idle.length === 1 ? "Keep it" : "Keep them"}</button></div></Dialog>}</>;
}
