// The calls that wait for a person.

import { useEffect, useRef, useState } from "preact/hooks";
import { enc, get, isGone, query, send } from "../api";
import { ApprovalCard, decidedLine, decisionIn, fault, type Decision, type Run, type WaitingCall } from "../components/ApprovalCard";
import { announce, Dialog, Empty, ErrorState, Link, Loading, PageHeader, StateBadge } from "../components/basics";
import { Notify } from "../components/Notify";
import { inOneLine } from "../components/CallCard";
import { useResource } from "../resource";
import type { RunPage } from "../run/types";
import { visible } from "../text/visible";

type Waiting = WaitingCall & { run_id: string };

interface Decided { key: string; run: string; text: string; decision: string }

const keyOf = (w: Waiting) => `${w.run_id} ${w.tool_call_id} ${w.args_digest}`;
const kept = 10; // lines about decided calls

export default function Approvals() {
  const { data, error, reload } = useResource<{ data: Waiting[] }>("api/approvals", { every: 2000 });
  const [decided, setDecided] = useState<Decided[]>([]);
  const settled = useRef(new Set<string>()); // keys of calls about which a line stands
  const before = useRef(new Map<string, Waiting>());
  const list = useRef<HTMLUListElement>(null);
  const note = (w: Waiting, text: string, decision: string) => {
    settled.current.add(keyOf(w));
    setDecided((all) => [{ key: keyOf(w), run: w.run_id, text, decision }, ...all.filter((o) => o.key !== keyOf(w))].slice(0, kept));
    announce(text);
  };
  useEffect(() => { // who decided about a call that is gone from the list
    if (!data) return;
    const here = new Map(data.data.map((w) => [keyOf(w), w]));
    for (const [key, w] of before.current) {
      if (here.has(key) || settled.current.has(key)) continue;
      settled.current.add(key);
      get<Run>(`api/runs/${enc(w.run_id)}`).then((run) => {
        const d = decisionIn(run, w.args_digest) ?? { decision: "withdrawn" };
        note(w, decidedLine(w.tool, d), d.decision);
      }, () => note(w, `${visible(w.tool)} waits no longer.`, "withdrawn"));
    }
    before.current = here;
  }, [data]);
  const open = data?.data.filter((w) => !settled.current.has(keyOf(w)));
  const first = new Map(open?.map((w, i) => [w.run_id, i]).reverse() as [string, number][] | undefined); // the calls of one run stand together, where its first one does
  const waiting = open?.toSorted((a, b) => first.get(a.run_id)! - first.get(b.run_id)!);
  const done = (w: Waiting, d: Decision, focused: boolean) => {
    note(w, decidedLine(w.tool, d), d.decision);
    const next = [...list.current?.children ?? []].find((el) => (el as HTMLElement).dataset.key !== keyOf(w))?.querySelector<HTMLElement>(".card");
    if (focused) (next ?? document.querySelector<HTMLElement>("h1"))?.focus();
    reload();
  };
  const move = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[e.key];
    const on = e.target as HTMLElement;
    if (step === undefined || !on.classList.contains("card")) return;
    const all = [...list.current!.querySelectorAll<HTMLElement>(".card")];
    const to = all[all.indexOf(on) + step];
    if (to) { e.preventDefault(); to.focus(); }
  };
  return <div class="page">
    <PageHeader title="Approvals" note={<>Calls that run when you allow them. <span class="by-keys">With a call in focus: A approves it once, R denies it, arrows move.</span></>}>
      <Notify />
    </PageHeader>
    {error && !data && (isGone(error) ? <Empty title="This gateway stores no runs, so no call can wait.">Start it with a store to use approvals.</Empty> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {decided.length > 0 && <section aria-label="Decided"><ul class="approval-decided">{decided.map((d) => <li key={d.key}>
      <StateBadge of={d.decision} /> {d.text} <Link to={`/runs/${enc(d.run)}`}>Show the run</Link>
    </li>)}</ul></section>}
    {waiting?.length === 0 && <Empty title="No call waits for you.">A call appears here when policy asks a person.</Empty>}
    {waiting && waiting.length > 0 && <ul class="approval-list" ref={list} onKeyDown={move}>{waiting.map((w, i) => <li key={keyOf(w)} data-key={keyOf(w)}>
      {waiting[i - 1]?.run_id !== w.run_id && <Together calls={waiting.filter((o) => o.run_id === w.run_id)} done={(o, d) => done(o, d, false)} />}
      <ApprovalCard alone runId={w.run_id} call={w} question={<Question run={w.run_id} />} onDecided={(d, _run, focused) => done(w, d, focused)} /></li>)}</ul>}
  </div>;
}

// Question is what the run of a call was asked. A key that may decide about a run of another key does not get its question.
function Question({ run }: { run: string }) {
  const { data } = useResource<RunPage>(query("api/runs", { run_id: run, questions: "true", limit: 1 }));
  const asked = data?.data[0]?.question;
  return <div class="approval-asked"><h3>The run was asked</h3>{asked ? <p dir="auto">{visible(asked)}</p> : data && <p class="soft">Its question is not kept, or belongs to another key.</p>}<Link class="small" to={`/runs/${enc(run)}`}>Show the run</Link></div>;
}

// Together decides about several calls of one run at once, after each of them was listed.
function Together({ calls, done }: { calls: Waiting[]; done: (w: Waiting, d: Decision) => void }) {
  const [asking, setAsking] = useState(false), [problem, setProblem] = useState("");
  const may = calls.filter((w) => w.may_decide !== false && fault(w) === "");
  if (may.length < 2) return null;
  const approve = async () => {
    setProblem("");
    for (const w of may) {
      try {
        await send("POST", `api/runs/${enc(w.run_id)}/approvals/${enc(w.tool_call_id)}`, { decision: "approve", digest: w.args_digest });
        done(w, { decision: "approved", mine: true, decided_at: new Date().toISOString() });
      } catch (e) { return setProblem(`${visible(w.tool)}: ${(e as Error).message}`); }
    }
    setAsking(false);
  };
  return <div class="approval-together"><span>{may.length} calls of one run wait.</span> <button type="button" class="quiet small" onClick={() => setAsking(true)}>Approve these {may.length}…</button>
    {asking && <Dialog title={`Approve ${may.length} calls?`} close={() => setAsking(false)}>
      <ul class="stack">{may.map((w) => <li key={keyOf(w)}><b class="mono">{visible(w.tool)}</b> <span class="mono">{inOneLine(w.exact_arguments ?? w.arguments)}</span></li>)}</ul>
      <p class="soft small">Each is approved once, exactly as it stands in its card.</p>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="answers"><button type="button" onClick={() => void approve()}>Approve all {may.length}</button><button type="button" class="quiet" onClick={() => setAsking(false)}>Cancel</button></div>
    </Dialog>}</div>;
}
