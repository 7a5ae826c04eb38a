// One tool: what it is, why policy decides as it does, a form to try it, and its last calls.

import { useEffect, useRef, useState } from "preact/hooks";
import { enc, isAbort, isGone, now, send, session } from "../api";
import { storedEvents } from "../chat/cause";
import { chat } from "../chat/chat";
import { ArgumentsForm, useArguments } from "../components/ArgumentsForm";
import { announce, Badge, Copy, ErrorState, JsonView, Link, Loading, PageHeader, Seen, StateBadge, Time } from "../components/basics";
import { Elapsed } from "../components/CallCard";
import { Drop } from "../components/Drop";
import { Icon } from "../components/Icon";
import { Picker } from "../components/Picker";
import { ResultView, type ResultFile } from "../components/ResultView";
import { SchemaView } from "../components/SchemaView";
import { useResource } from "../resource";
import { base, go } from "../router";
import { effectOf } from "../state";
import { itemsOf } from "../run/items";
import { filesOf } from "../run/types";
import { count, duration, measured, shell, words } from "../text/format";
import { visible } from "../text/visible";
import type { ScreenProps } from ".";
import { errorRate, verdict, type Disabled, type Tool } from "./tools";

interface Annotations { title?: string; readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean }
interface Pin { state: string; reason?: string; changed?: string[]; digest?: string; definition?: { annotations?: Annotations } }
interface Call { time: string; run_id: string; success: boolean; latency_ms: number }
interface Detail extends Tool { last_calls?: Call[]; complete_since?: string; output_schema?: unknown; output_allowlist: string[]; policy_rule?: string; policy_reason?: string; limits: Record<string, number>; server?: string; pin?: Pin }
interface Result { is_error: boolean; code?: string; content: string; blobs?: unknown; args: string; took: number; at: string } // took: ms, with the way
interface Verdict { decision: string; rule: string; reason?: string }

const mostResults = 8; // that are kept on the page
const askAfter = 300; // ms without a change

const limitNames: Record<string, string> = { timeout_ms: "Timeout", cache_ttl_ms: "Answers are cached for", concurrency: "Calls at once" };

// hints are the annotations that a server may give, with what each says of a tool.
const hints: [name: keyof Annotations, yes: string, no: string, bad?: boolean][] = [["readOnlyHint", "read only", "changes something"], ["destructiveHint", "destructive", "destroys nothing", true], ["idempotentHint", "idempotent", "not idempotent"], ["openWorldHint", "open world", "closed world"]];

export default function ToolScreen({ params }: ScreenProps) {
  const name = params.name ?? "";
  const { data, error, reload } = useResource<Detail>(`api/tools/${enc(name)}?since=7d`);
  const title = data?.pin?.definition?.annotations?.title;
  return <div class="page">
    <PageHeader title={name} back={{ to: "/tools", label: "Tools" }} note={data && <>{typeof title === "string" && title !== name && !data.description.startsWith(title) && <><b><Seen text={title} /></b> · </>}<Seen text={data.description} /></>}><Others name={name} /></PageHeader>
    {error && !data && (isGone(error) ? <Missing name={name} error={error} /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {data && <>
      {data.disabled && <p class="problem">Disabled <Time at={data.disabled.at} />{data.disabled.by && <> by <Seen text={data.disabled.by} /></>}{data.disabled.reason && <>: <Seen text={data.disabled.reason} /></>}. Models are not offered it, and its calls are denied.</p>}
      <Halves key={data.name} tool={data} reload={reload} /></>}
  </div>;
}

// Halves are the form and its result, and what is known of the tool.
function Halves({ tool, reload }: { tool: Detail; reload: () => void }) {
  const [given, use] = useState<{ args: string }>(), [results, setResults] = useState<Result[]>([]); // given: arguments of an earlier call; results: the newest first
  return <div class="tool-halves"><div class="stack"><Try tool={tool} given={given} result={results[0]} add={(r) => setResults((all) => [r, ...all].slice(0, mostResults))} /></div>
    <div class="stack"><Facts tool={tool} /><Use tool={tool} reload={reload} use={(args) => use({ args })} results={results} />
      <SchemaView schema={tool.parameters} label="Schema of the arguments" />
      {tool.output_schema !== undefined && <SchemaView schema={tool.output_schema} label="Schema of the output" />}</div></div>;
}

// Others leads to another tool.
function Others({ name }: { name: string }) {
  return <Drop label="Other tools" kind="dialog" face={<>Other tools <Icon name="down" /></>} class="quiet tool-others" content={(close) => <OtherList name={name} close={close} />} />;
}

function OtherList({ name, close }: { name: string; close: () => void }) {
  const { data } = useResource<{ data: Tool[] }>("api/tools");
  const [text, setText] = useState("");
  const found = (data?.data ?? []).filter((t) => `${t.name} ${t.description}`.toLowerCase().includes(text.trim().toLowerCase())).map((t) => ({ key: t.name, face: <><span class="pick-name">{visible(t.name)}</span><span class="soft small">{effectOf(t.effect).name}</span></> }));
  return data ? <Picker label="Find a tool" text={text} setText={setText} found={found} chosen={name} take={(f) => { close(); go(`/tools/${enc(f.key)}`); }} /> : <Loading />;
}

// Missing says of a tool that this key is not offered whether it is blocked.
function Missing({ name, error }: { name: string; error: Error }) {
  const servers = useResource<{ data: { name: string; tools: { name: string; state: string; reason?: string }[] }[] }>("api/servers");
  const tool = servers.data?.data.flatMap((s) => s.tools).find((t) => t.name === name && t.state !== "ready");
  if (!servers.data && !servers.error) return <Loading />;
  if (!tool) return <ErrorState error={error} />;
  return <section class="card-box" aria-label="State"><p><Badge kind="bad">{tool.state}</Badge> No model is offered this tool{tool.reason && <>: <Seen text={tool.reason} /></>}.</p>
    {tool.state === "blocked" && <p><Link to={`/pins?tool=${enc(name)}`}>Show the definition</Link></p>}</section>;
}

function Facts({ tool }: { tool: Detail }) {
  return <section class="card-box" aria-label="Facts"><dl class="facts">
    <dt>Policy</dt><dd><Badge kind={verdict[tool.policy ?? ""] ?? ""}>{tool.policy ?? "unknown"}</Badge> {tool.policy_rule && <>by rule <Seen text={tool.policy_rule} /></>} {tool.policy_reason && <span class="soft"><Seen text={tool.policy_reason} /></span>} <Link to={`/policy?tool=${enc(tool.name)}`}>Ask about a call</Link></dd>
    <dt>Offered to models</dt><dd>{tool.advertised ? "yes" : "no, policy keeps it from runs of this key"}</dd>
    <dt>From</dt><dd><Seen text={tool.origin ?? "an unnamed origin"} /> {tool.server && <Link to="/servers">Show the server</Link>}</dd>
    <dt>Effect</dt><dd>{effectOf(tool.effect).name} <span class="soft">{effectOf(tool.effect).about}</span></dd>
    <Hints of={tool.pin?.definition?.annotations} />
    {tool.labels?.length ? <><dt>Labels</dt><dd><Seen text={tool.labels.join(", ")} /></dd></> : null}
    <dt>Models see</dt><dd><Seen text={tool.output_allowlist.includes("*") ? "the whole output" : tool.output_allowlist.join(", ") || "nothing of the output"} /></dd>
    {Object.entries(tool.limits).map(([k, n]) => <><dt>{limitNames[k] ?? words(k)}</dt><dd>{k.endsWith("_ms") ? duration(n) : n}</dd></>)}
    {tool.pin && <><dt>Definition</dt><dd><Badge kind={tool.pin.state === "ready" ? "ok" : "bad"}>{tool.pin.state === "ready" ? "accepted" : tool.pin.state}</Badge> {tool.pin.reason && <Seen text={tool.pin.reason} />} <Link to="/pins">Show definitions</Link></dd></>}
  </dl></section>;
}

// Hints are what the server says of its tool.
function Hints({ of }: { of?: Annotations }) {
  const said = hints.filter(([name]) => typeof of?.[name] === "boolean");
  return said.length === 0 ? null : <><dt>Its server says</dt><dd><span class="tool-hints">{said.map(([name, yes, no, bad]) => <Badge key={name} kind={bad && of![name] ? "wait" : ""}>{of![name] ? yes : no}</Badge>)}</span> <span class="soft small">Nothing relies on it: policy goes by the effect.</span></dd></>;
}

// Use shows how calls went, and disables the tool or enables it again.
function Use({ tool, reload, use, results }: { tool: Detail; reload: () => void; use: (args: string) => void; results: Result[] }) {
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState("");
  const may = !session.value?.keys_required || session.value.role === "admin";
  const turn = async (to: "disable" | "enable") => {
    setProblem("");
    try {
      await send<{ disabled: Disabled | null }>("POST", `api/tools/${enc(tool.name)}/${to}`, to === "disable" && reason ? { reason } : {});
      announce(`${visible(tool.name)} is ${to}d.`);
      setReason("");
      reload();
    } catch (e) { setProblem((e as Error).message); }
  };
  const s = tool.stats;
  return <section class="card-box" aria-labelledby="use-h"><h2 id="use-h">Use</h2>
    <p>{s?.calls ? <>{count(s.calls, "call")} in the last 7 days, {errorRate(s)} failed, p50 {measured(s.p50_ms)}, p95 {measured(s.p95_ms)}. <Link to={`/runs?tool=${enc(tool.name)}`}>Show the runs</Link></> : "No call in the last 7 days."}</p>
    {results.length || tool.last_calls?.length ? <details open={results.length > 0 || tool.last_calls!.length <= 5}><summary class="small">Last calls</summary>
      {results.length > 0 && <p class="soft small">Calls from this page are in the audit log, not in the figures. They are listed until you leave it.</p>}
      <ul class="tool-calls">{results.map((r, i) => <li key={r.at}><PageCall result={r} n={results.length - i} use={use} /></li>)}{tool.last_calls?.map((c) => <li key={`${c.run_id} ${c.time} ${c.latency_ms}`}><LastCall call={c} tool={tool.name} use={use} /></li>)}</ul></details> : null}
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {may && (tool.disabled ? <div class="answers"><button type="button" onClick={() => void turn("enable")}>Enable the tool</button></div>
      : <form class="filters" onSubmit={(e) => { e.preventDefault(); void turn("disable"); }}><label>Reason, shown to people<input value={reason} maxLength={200} autocomplete="off" onInput={(e) => setReason(e.currentTarget.value)} /></label><button type="submit" class="danger small">Disable the tool</button></form>)}
  </section>;
}

interface Found { args: string; result?: string; files?: ResultFile[]; failed: boolean }

// LastCall is an executed call of a run. Its arguments and its result are read from the run when it is opened.
function LastCall({ call, tool, use }: { call: Call; tool: string; use: (args: string) => void }) {
  const [open, set] = useState(false), [found, setFound] = useState<Found | Error>();
  useEffect(() => {
    if (!open || found) return;
    storedEvents(call.run_id).then((events) => {
      const calls = itemsOf(events).items.flatMap((i) => i.kind === "call" && i.call.name === tool && i.call.executed ? [i.call] : []);
      const it = calls.find(({ executed: e }) => e!.data.latency_ms === call.latency_ms && e!.data.success === call.success) ?? calls[0];
      setFound(it ? { args: it.args, result: it.result?.content?.result, files: filesOf(it.result?.content?.blobs), failed: it.result?.data.status === "error" } : new Error("The run does not have the arguments of the call any more."));
    }, setFound);
  }, [open]);
  return <details open={open} onToggle={(e) => set(e.currentTarget.open)}><summary><StateBadge of={call.success ? "completed" : "failed"} /><span class="num">{measured(call.latency_ms)}</span><Time at={call.time} /></summary>
    {open && <div class="stack">{found === undefined ? <Loading /> : found instanceof Error ? <p class="soft small">{visible(found.message)}</p> : <>
      <div><h3>Arguments</h3><JsonView text={found.args || "{}"} label={`Arguments of the call in ${call.run_id}`} /></div>
      {found.result !== undefined && <ResultView text={found.result} files={found.files} failed={found.failed} label={found.failed ? "Failure" : "Result"} name={`Result of the call in ${call.run_id}`} />}
      <div class="answers"><button type="button" class="quiet small" onClick={() => use(found.args || "{}")}>Use these arguments</button><Link class="small" to={`/runs/${enc(call.run_id)}`}>Show the run</Link></div></>}</div>}
  </details>;
}

// PageCall is a call from this page.
function PageCall({ result: r, n, use }: { result: Result; n: number; use: (args: string) => void }) {
  const [open, set] = useState(false);
  return <details open={open} onToggle={(e) => set(e.currentTarget.open)}><summary><StateBadge of={r.is_error ? "failed" : "completed"} /><span class="num">{measured(r.took)}</span><span><Time at={r.at} /> <Badge>from this page</Badge></span></summary>
    {open && <div class="stack"><div><h3>Arguments</h3><JsonView text={r.args} label={`Arguments of call ${n} from this page`} /></div><Outcome result={r} of={` of call ${n} from this page`} />
      <div class="answers"><button type="button" class="quiet small" onClick={() => use(r.args)}>Use these arguments</button></div></div>}
  </details>;
}

// useVerdict asks policy about the call that is entered, a moment after it was. wrong: it cannot be sent as it is.
function useVerdict(tool: Detail, args: string, wrong: boolean): Verdict {
  const [got, set] = useState<Verdict>({ decision: tool.policy ?? "", rule: tool.policy_rule ?? "", reason: tool.policy_reason });
  useEffect(() => {
    if (wrong) return;
    const aborter = new AbortController();
    const timer = setTimeout(() => { send<Verdict>("POST", "api/policy/explain", `{"tool":${JSON.stringify(tool.name)},"arguments":${args}}`, aborter.signal).then(set, () => {}); }, askAfter); // without an answer, that about the tool stays
    return () => { clearTimeout(timer); aborter.abort(); };
  }, [args, wrong, tool.policy, tool.disabled]);
  return tool.disabled ? { decision: "deny", rule: "", reason: "the tool is disabled" } : got;
}

// Will says beforehand what becomes of a call.
function Will({ tool, verdict: { decision, rule, reason } }: { tool: Detail; verdict: Verdict }) {
  const why = reason ? `: ${reason}` : rule && `, by rule ${rule}`;
  return <p id="try-will" class="small">{decision === "ask" ? <><Badge kind="wait">asks first</Badge> A person has to approve this call<Seen text={why} />. Only a run can wait for that: have a model make the call in a chat, where you decide about it.</>
    : decision === "deny" ? <><Badge kind="bad">is denied</Badge> Policy does not allow this call<Seen text={why} />.</>
    : <><Badge kind={effectOf(tool.effect).name === "writes" ? "wait" : "ok"}>{effectOf(tool.effect).name === "writes" ? "runs at once and writes" : "runs at once"}</Badge> <span class="soft">The call passes the same checks, policy and audit log as a call of a model.</span></>}</p>;
}

function Try({ tool, given, result, add }: { tool: Detail; given?: { args: string }; result?: Result; add: (result: Result) => void }) {
  const args = useArguments(tool.parameters), box = useRef<HTMLElement>(null);
  const [problem, setProblem] = useState("");
  const [call, setCall] = useState<{ since: number; stop: () => void }>(); // in progress
  useEffect(() => { setProblem(""); }, [args.text]);
  const put = (text: string) => {
    args.put(text);
    box.current?.scrollIntoView({ block: "nearest" });
    announce("The form has these arguments.");
  };
  useEffect(() => { if (given) put(given.args); }, [given]);
  const compact = () => { try { return JSON.stringify(JSON.parse(args.text)) === undefined ? args.text : args.text.replace(/\n\s*/g, ""); } catch { return args.text; } };
  const submit = async (e: Event) => {
    e.preventDefault();
    const wrong = args.fault();
    if (wrong) return setProblem(wrong);
    const aborter = new AbortController(), text = args.text, began = performance.now();
    setCall({ since: Date.now(), stop: () => aborter.abort() });
    try {
      const got = await send<Result>("POST", `api/tools/${enc(tool.name)}/call`, `{"arguments":${text}}`, aborter.signal);
      add({ ...got, args: text, took: performance.now() - began, at: new Date(now()).toISOString() });
      announce(got.is_error ? "The call failed." : "The call has a result.");
    } catch (error) {
      setProblem(isAbort(error) ? "You cancelled the call. What it had done by then is not known." : (error as Error).message);
    }
    setCall(undefined);
  };
  const fault = args.fault(), will = useVerdict(tool, args.text, fault !== "");
  const inChat = () => {
    chat.fresh();
    chat.draft.value = `Call the tool ${tool.name} once, with exactly these arguments: ${compact()}`;
    go("/");
  };
  const url = `${location.origin}${base}api/tools/${enc(tool.name)}/call`;
  const copies = {
    "Copy as curl": () => `curl -s ${shell(url)} -H "Authorization: Bearer $LATHE_KEY" -H 'Content-Type: application/json' -d ${shell(`{"arguments":${compact()}}`)}`,
    "Copy as command": () => `lathe tools call ${shell(tool.name)} ${shell(compact())}`,
    "Copy as Go": () => `result, err := runner.Call(ctx, ${JSON.stringify(tool.name)}, json.RawMessage(${goText(compact())}))`,
  };
  return <section ref={box} class="card-box" aria-labelledby="try-h">
    <h2 id="try-h">Try it</h2>
    <form class="stack" onSubmit={(e) => void submit(e)}>
      <ArgumentsForm of={args} id="try-json" wrong={setProblem} />
      {problem && <p class="problem" role="alert">{visible(problem)}</p>}
      <Will tool={tool} verdict={will} />
      <div class="answers">{will.decision === "ask" && <button type="button" onClick={inChat}>Call it in a chat…</button>}<button type="submit" class={will.decision === "ask" ? "quiet" : ""} aria-describedby="try-will" disabled={call !== undefined || will.decision === "ask" || will.decision === "deny"}>{call ? <>Calling… <Elapsed since={call.since} /></> : "Call"}</button>{call ? <button type="button" class="quiet" onClick={call.stop}>Cancel</button> : Object.entries(copies).map(([label, make]) => <Copy key={label} label={label} text={make} />)}</div>
    </form>
    {result && !call && <section class="stack tool-result" aria-label="Result"><Outcome key={result.at} result={result} /></section>}
  </section>;
}

// Outcome is what a call of this page came to.
const Outcome = ({ result: r, of = "" }: { result: Result; of?: string }) => <>
  <ResultView text={r.content} files={filesOf(r.blobs)} failed={r.is_error} label={r.is_error ? "Failure" : "Result"} name={`Text of the ${r.is_error ? "failure" : "result"}${of}`} />
  <p class="meta"><span class="num">{measured(r.took)}</span></p></>;

const goText = (s: string) => s.includes("`") ? JSON.stringify(s) : `\`${s}\``;
