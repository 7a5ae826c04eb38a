// The calls that wait for a person: everything that Lathe knows of a call first, then what the model wrote.

import { useEffect, useRef, useState } from "preact/hooks";
import { enc, get, isGone, now, Refusal, send } from "../api";
import { announce, Badge, Copy, Empty, ErrorState, JsonView, Link, Loading, PageHeader, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { duration, words } from "../text/format";
import { visible, writable } from "../text/visible";

export interface Waiting {
  run_id: string; session_id?: string; principal?: string; model: string; started: string;
  tool_call_id: string; tool: string; arguments: string; exact_arguments?: string; args_digest: string; origin?: string; effect?: string;
  tool_labels?: string[]; rule?: string; reason?: string; may_decide?: boolean; requested_at?: string; expires_at?: string;
}

interface Decided { key: string; tool: string; run: string; text: string; elsewhere: boolean }
interface RunDecisions { status: string; decisions?: { tool_call_id: string; decision: string; by?: string; decided_at: string }[] }

const keyOf = (w: Waiting) => `${w.run_id} ${w.tool_call_id} ${w.args_digest}`;
const past: Record<string, string> = { approve: "approved", deny: "denied", edit: "approved with other arguments", answer: "answered in place of the tool" };

export default function Approvals() {
  const { data, error, reload } = useResource<{ data: Waiting[] }>("api/approvals", { every: 2000 });
  const [decided, setDecided] = useState<Decided[]>([]);
  const mine = useRef(new Set<string>());
  const before = useRef(new Map<string, Waiting>());
  const list = useRef<HTMLUListElement>(null);
  const note = (d: Decided) => {
    setDecided((all) => [d, ...all.filter((o) => o.key !== d.key)].slice(0, 10));
    announce(d.text);
  };
  useEffect(() => { // who decided about a call that is gone from the list
    if (!data) return;
    const here = new Map(data.data.map((w) => [keyOf(w), w]));
    for (const [key, w] of before.current) {
      if (here.has(key) || mine.current.has(key)) continue;
      get<RunDecisions>(`api/runs/${enc(w.run_id)}`).then((run) => {
        const d = run.decisions?.findLast((one) => one.tool_call_id === w.tool_call_id);
        note({ key, tool: w.tool, run: w.run_id, elsewhere: true, text: d ? `${visible(w.tool)} was ${d.decision}${d.by ? ` by ${visible(d.by)}` : ""} elsewhere.` : `${visible(w.tool)} waits no longer: its run is ${words(run.status)}.` });
      }, () => note({ key, tool: w.tool, run: w.run_id, elsewhere: true, text: `${visible(w.tool)} waits no longer.` }));
    }
    before.current = here;
  }, [data]);
  const waiting = data?.data.filter((w) => !mine.current.has(keyOf(w)));
  const done = (w: Waiting, text: string, elsewhere = false) => {
    mine.current.add(keyOf(w));
    note({ key: keyOf(w), tool: w.tool, run: w.run_id, text, elsewhere });
    const next = [...list.current?.querySelectorAll<HTMLElement>(".approval") ?? []].find((el) => el.dataset.key !== keyOf(w));
    (next ?? document.querySelector<HTMLElement>("h1"))?.focus();
    reload();
  };
  const move = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[e.key];
    const on = e.target as HTMLElement;
    if (step === undefined || !on.classList.contains("approval")) return;
    const all = [...list.current!.querySelectorAll<HTMLElement>(".approval")];
    const to = all[all.indexOf(on) + step];
    if (to) { e.preventDefault(); to.focus(); }
  };
  return <div class="page">
    <PageHeader title="Approvals" note="Calls that run when you allow them. With a call in focus: A approves it once, R denies it, arrows move.">
      <Notify />
    </PageHeader>
    {error && !data && (isGone(error) ? <Empty title="This server keeps no runs, so that no call can wait.">Start it with a store to use approvals.</Empty> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {decided.length > 0 && <section aria-label="Decided"><ul class="approval-decided">{decided.map((d) => <li key={d.key}>
      <Badge kind={d.elsewhere ? "wait" : "ok"}>{d.elsewhere ? "elsewhere" : "decided"}</Badge> {d.text} <Link to={`/runs/${enc(d.run)}`}>Show the run</Link>
    </li>)}</ul></section>}
    {waiting?.length === 0 && <Empty title="No call waits for you.">A call appears here when policy asks a person.</Empty>}
    {waiting && waiting.length > 0 && <ul class="approval-list" ref={list} onKeyDown={move}>{waiting.map((w) => <li key={keyOf(w)}><Card w={w} done={done} reload={reload} /></li>)}</ul>}
  </div>;
}

// Notify asks whether the browser may show a notification while another window is in front; never unasked.
function Notify() {
  const has = "Notification" in window && isSecureContext;
  const [state, set] = useState(has ? Notification.permission : "denied");
  if (!has || state === "denied") return null;
  if (state === "granted") return <span class="soft small">The browser notifies you when a call waits.</span>;
  return <button type="button" class="quiet small" onClick={() => { void Notification.requestPermission().then(set); }}>Notify me</button>;
}

type Mode = "" | "edit" | "answer" | "deny";

function Card({ w, done, reload }: { w: Waiting; done: (w: Waiting, text: string, elsewhere?: boolean) => void; reload: () => void }) {
  const exact = w.exact_arguments ?? w.arguments;
  const [mode, setMode] = useState<Mode>("");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const article = useRef<HTMLElement>(null);
  const id = `a-${w.tool_call_id}-${w.args_digest.slice(0, 8)}`.replace(/[^\w-]/g, "_");
  const decide = async (verb: "approve" | "deny" | "edit" | "answer", scope = "", extra = "") => {
    if (busy) return;
    setBusy(true);
    setProblem("");
    const body = `{"decision":${JSON.stringify(verb)},"digest":${JSON.stringify(w.args_digest)}${scope && `,"scope":${JSON.stringify(scope)}`}${extra}}`;
    try {
      await send("POST", `api/runs/${enc(w.run_id)}/approvals/${enc(w.tool_call_id)}`, body);
      done(w, `${visible(w.tool)} was ${past[verb]}${scope ? ` for ${scopes[scope]}` : ""}.`);
    } catch (e) {
      setBusy(false);
      if (e instanceof Refusal && e.code === "already_decided") {
        const by = typeof e.problem.by === "string" && e.problem.by ? ` by ${visible(e.problem.by)}` : "";
        done(w, `Your answer does not count: ${visible(w.tool)} was ${typeof e.problem.decision === "string" ? e.problem.decision : "decided"}${by} before.`, true);
        return;
      }
      setProblem(e instanceof Refusal && e.code === "digest_mismatch" ? "The call has changed since it was shown. Read it again." : (e as Error).message);
      if (e instanceof Refusal && e.status === 409) reload();
    }
  };
  const open = (to: Mode, start: string) => { setMode(mode === to ? "" : to); setText(start); setProblem(""); };
  const submit = (e: Event) => {
    e.preventDefault();
    if (mode === "deny") return void decide("deny", "", text ? `,"reason":${JSON.stringify(text)}` : "");
    if (mode === "answer") return void decide("answer", "", `,"result":${JSON.stringify(text)}`);
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("Arguments are a JSON object.");
    } catch (error) {
      return setProblem(`These arguments cannot be sent: ${(error as Error).message}`);
    }
    void decide("edit", "", `,"arguments":${text}`);
  };
  const keys = (e: KeyboardEvent) => {
    if (e.target !== article.current || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "a") void decide("approve");
    else if (e.key === "r") void decide("deny");
    else return;
    e.preventDefault();
  };
  const left = w.expires_at ? Date.parse(w.expires_at) - now() : 0;
  const facts: [string, string][] = [
    ["Why asked", `${w.reason ? `${w.reason} ` : ""}(rule ${w.rule || "unknown"})`], ["Origin", w.origin || "unknown"], ["Effect", words(w.effect || "undeclared")],
    ...(w.tool_labels?.length ? [["Labels", w.tool_labels.join(", ")] as [string, string]] : []),
    ["Asked for", w.principal || "the local user"], ["Model", w.model],
  ];
  return <article class="approval card-box" ref={article} tabIndex={0} data-key={keyOf(w)} aria-labelledby={`${id}-h`} onKeyDown={keys}>
    <div class="approval-head"><h2 id={`${id}-h`}><Seen text={w.tool} /></h2><Badge kind="wait">waits</Badge>
      {w.requested_at && <span class="soft small">asked <Time at={w.requested_at} /></span>}
      {w.expires_at && <span class="soft small">expires in {duration(Math.max(0, left))}</span>}</div>
    <dl class="facts">
      {facts.map(([name, value]) => <><dt>{name}</dt><dd><Seen text={value} /></dd></>)}
      <dt>Digest</dt><dd class="mono"><Seen text={w.args_digest} /> <Copy text={w.args_digest} label="Copy digest" /></dd>
      <dt>Run</dt><dd><Link to={`/runs/${enc(w.run_id)}`}><Seen text={w.run_id} /></Link></dd>
    </dl>
    <div class="approval-model"><h3>Arguments, written by the model</h3><JsonView text={exact} exact label={`Arguments of ${visible(w.tool)}`} /></div>
    {w.exact_arguments !== undefined && <details><summary class="small">What the model wrote before it was unwrapped</summary><JsonView text={w.arguments} exact label="As the model wrote it" /></details>}
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {w.may_decide === false ? <p class="soft">Your key may not decide about this call.</p> : <>
      <div class="answers" role="group" aria-label={`Decide about ${visible(w.tool)}`}>
        <button type="button" disabled={busy} onClick={() => void decide("approve")}>Approve once</button>
        <button type="button" class="danger" disabled={busy} onClick={() => void decide("deny")}>Deny</button>
        <button type="button" class="quiet" disabled={busy} aria-expanded={mode === "deny"} onClick={() => open("deny", "")}>Deny with a reason</button>
        <button type="button" class="quiet" disabled={busy} aria-expanded={mode === "edit"} onClick={() => open("edit", writable(exact))}>Edit</button>
        <button type="button" class="quiet" disabled={busy} aria-expanded={mode === "answer"} onClick={() => open("answer", "")}>Answer instead</button>
      </div>
      <details><summary class="small">Approve further calls, too</summary><div class="answers approval-scopes">
        {Object.entries(scopes).filter(([scope]) => scope !== "session" || w.session_id).map(([scope, what]) => <button key={scope} type="button" class="quiet small" disabled={busy} onClick={() => void decide("approve", scope)}>Approve {what}</button>)}
      </div></details>
      {mode && <form class="stack" onSubmit={submit} onKeyDown={(e) => { if (e.key === "Escape") { setMode(""); article.current?.focus(); } }}>
        <label for={`${id}-t`}>{{ edit: "Arguments that the tool gets instead", answer: "Text that the model gets; the tool is not called", deny: "Reason, one word of a–z, 0–9 and _" }[mode]}</label>
        {mode === "deny" ? <input id={`${id}-t`} value={text} pattern="[a-z0-9_]{0,64}" autocomplete="off" onInput={(e) => setText(e.currentTarget.value)} />
          : <textarea id={`${id}-t`} class="mono" rows={mode === "edit" ? 8 : 3} spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} />}
        <div class="answers"><button type="submit" disabled={busy}>{{ edit: "Approve with these arguments", answer: "Send the answer", deny: "Deny" }[mode]}</button><button type="button" class="quiet" onClick={() => setMode("")}>Cancel</button></div>
      </form>}
    </>}
  </article>;
}

const scopes: Record<string, string> = { call: "the same call again in this run", run: "every call of the tool in this run", session: "every call of the tool in this session" };
