// The calls that wait for a person.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { enc, get, isGone, query, send } from "../api";
import { ApprovalCard, decidedLine, decisionIn, Exact, fault, reasonOf, type Decision, type Run, type WaitingCall } from "../components/ApprovalCard";
import { announce, Dialog, Empty, ErrorState, Link, Loading, PageHeader, StateBadge, Time } from "../components/basics";
import { Notify } from "../components/Notify";
import { useResource } from "../resource";
import type { RunPage } from "../run/types";
import { count } from "../text/format";
import { visible } from "../text/visible";

type Waiting = WaitingCall & { run_id: string };

interface Decided { key: string; run: string; text: string; decision: string }

const keyOf = (w: Waiting) => `${w.run_id} ${w.tool_call_id} ${w.args_digest}`;
const madeOf = (w: Waiting) => `${w.tool} ${w.exact_arguments ?? w.arguments}`; // equal for equal calls, whichever run makes them
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
  const runs = new Map<string, Waiting[]>(); // the calls of one run stand together, where its first one does
  for (const w of open ?? []) runs.set(w.run_id, [...runs.get(w.run_id) ?? [], w]);
  const done = (w: Waiting, d: Decision, focused: boolean) => {
    note(w, decidedLine(w.tool, d), d.decision);
    const all = [...list.current?.querySelectorAll<HTMLElement>("[data-key]") ?? []], at = all.findIndex((el) => el.dataset.key === keyOf(w));
    if (focused) ((all[at + 1] ?? all[at - 1])?.querySelector<HTMLElement>(".card") ?? document.querySelector<HTMLElement>("h1"))?.focus();
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
    {open?.length === 0 && <Empty title="No call waits for you.">A call appears here when policy asks a person.</Empty>}
    {runs.size > 0 && <ul class="approval-list" ref={list} onKeyDown={move}>{[...runs].map(([run, calls]) => <OfRun key={run} run={run} calls={calls} open={open!} done={done} />)}</ul>}
  </div>;
}

// OfRun shows the calls of one run below what it was asked. open are all calls that wait.
function OfRun({ run, calls, open, done }: { run: string; calls: Waiting[]; open: Waiting[]; done: (w: Waiting, d: Decision, focused: boolean) => void }) {
  const of = useQuestion(run), question = <Question run={run} of={of} />;
  return <li class={calls.length > 1 ? "approval-run" : undefined}>
    <Together calls={calls} reading={of.reading} done={(w, d) => done(w, d, false)}>{question}</Together>
    <ul class="approval-list">{calls.map((w) => <li key={keyOf(w)} data-key={keyOf(w)}>
      <ApprovalCard alone runId={run} call={w} reading={of.reading} note={<Same calls={open.filter((o) => o !== w && madeOf(o) === madeOf(w))} />} question={calls.length > 1 ? undefined : question} onDecided={(d, _run, focused) => done(w, d, focused)} /></li>)}</ul></li>;
}

// Same says that other calls that wait are equal to this one, and leads to the first of them.
function Same({ calls }: { calls: Waiting[] }) {
  const [first] = calls;
  if (!first) return null;
  const show = () => {
    const card = [...document.querySelectorAll<HTMLElement>("[data-key]")].find((el) => el.dataset.key === keyOf(first))?.querySelector<HTMLElement>(".card");
    card?.scrollIntoView({ block: "start" });
    card?.focus({ preventScroll: true });
  };
  return <p class="approval-same small"><span aria-hidden="true">△ </span>Same tool and arguments as {calls.length === 1 ? "another waiting call" : `${calls.length} other waiting calls`}{first.requested_at && <>, asked <Time at={first.requested_at} /></>}. <button type="button" class="link" onClick={show}>Show {calls.length === 1 ? "that call" : "the first"}</button></p>;
}

const longRead = 5000; // ms after which a call can be approved although the question has not been read

interface Asked { text?: string; known: boolean; error?: Error; reading: boolean; reload: () => void }

// useQuestion reads what a run was asked.
function useQuestion(run: string): Asked {
  const { data, error, reload } = useResource<RunPage>(query("api/runs", { run_id: run, questions: "true", limit: 1 })), [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), longRead);
    return () => clearTimeout(timer);
  }, []);
  const known = data !== undefined;
  return { text: data?.data[0]?.question, known, error: known ? undefined : error, reading: !known && !error && !late, reload };
}

// Question is what the run of a call was asked. A key that may decide about a run of another key does not get its question.
function Question({ run, of: { text, known, error, reading, reload } }: { run: string; of: Asked }) {
  return <div class="approval-asked" aria-busy={reading}><h3>The run was asked</h3>{text ? <p dir="auto">{visible(text)}</p> : known ? <p class="soft">Its question is not stored, or belongs to another key.</p>
    : error ? <p class="soft">The run cannot be read: {visible(error.message)} <button type="button" class="link" onClick={reload}>Try again</button></p> : <p class="soft">{reading ? "loading…" : "loading… The gateway has not answered yet. The call can be approved without the question."}</p>}<Link class="small" to={`/runs/${enc(run)}`}>Show the run</Link></div>;
}

type Verb = "approve" | "deny";

// Together is the head of several calls of one run, children what the run was asked. It decides about all of them after it has shown each one.
function Together({ calls, reading, done, children }: { calls: Waiting[]; reading: boolean; done: (w: Waiting, d: Decision) => void; children: ComponentChildren }) {
  const [asking, setAsking] = useState<{ verb: Verb; of: Waiting[] }>(), [problem, setProblem] = useState(""), [written, setWritten] = useState(""), [busy, setBusy] = useState(false);
  const mine = calls.filter((w) => w.may_decide !== false), whole = mine.filter((w) => fault(w) === "");
  if (calls.length < 2 && !asking) return null;
  const verb = asking?.verb, list = asking?.of.filter((o) => calls.some((w) => keyOf(w) === keyOf(o))) ?? [], reason = reasonOf(written), name = verb === "deny" ? "Deny" : "Approve";
  const close = () => { setAsking(undefined); setProblem(""); };
  const decide = async () => {
    if (busy) return;
    if (verb === "deny" && reason.problem) return setProblem(reason.problem);
    setProblem("");
    setBusy(true);
    try {
      for (const w of list) {
        await send("POST", `api/runs/${enc(w.run_id)}/approvals/${enc(w.tool_call_id)}`, { decision: verb, digest: w.args_digest, ...(verb === "deny" && reason.code ? { reason: reason.code } : {}) })
          .catch((e: Error) => { throw new Error(`${visible(w.tool)}: ${e.message}`); });
        done(w, { decision: verb === "deny" ? "denied" : "approved", mine: true, decided_at: new Date().toISOString() });
      }
      close();
      setTimeout(() => document.querySelector<HTMLElement>("h1")?.focus()); // after the dialog has gone
    } catch (e) { setProblem((e as Error).message); }
    setBusy(false);
  };
  return <div class="stack approval-together"><h2>{calls.length} calls of one run wait</h2>{children}
    <div class="answers">{whole.length > 1 && <button type="button" class="small" disabled={reading} onClick={() => setAsking({ verb: "approve", of: whole })}>Approve all {whole.length}…</button>}
      {mine.length > 1 && <button type="button" class="danger small" onClick={() => setAsking({ verb: "deny", of: mine })}>Deny all {mine.length}…</button>}</div>
    {asking && <Dialog title={`${name} ${count(list.length, "call")}?`} close={close}><div class="stack">
      <ol class="stack">{list.map((w) => <li key={keyOf(w)} class="stack"><b class="mono">{visible(w.tool)}</b><Exact call={w} /></li>)}</ol>
      {verb === "deny" ? <label class="form-field">Reason, for the model and the log<input value={written} autocomplete="off" placeholder="none" onInput={(e) => { setWritten(e.currentTarget.value); setProblem(""); }} />{reason.code && <span class="meta">The model gets <span class="mono">{reason.code}</span></span>}</label> : <p class="soft small">Each is approved once, exactly as it stands here.</p>}
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="answers"><button type="button" class={verb === "deny" ? "danger" : ""} disabled={busy || !list.length} onClick={() => void decide()}>{name} all {list.length}</button><button type="button" class="quiet" onClick={close}>Cancel</button></div></div>
    </Dialog>}</div>;
}
