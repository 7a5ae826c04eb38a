// One tool: what it is, why policy decides as it does, and a form to try it.

import { useEffect, useState } from "preact/hooks";
import { enc, isGone, send, session } from "../api";
import { announce, Badge, Copy, ErrorState, JsonView, Link, Loading, PageHeader, Seen, StateBadge, Tabs, Time } from "../components/basics";
import { inOneLine } from "../components/CallCard";
import { ResultView } from "../components/ResultView";
import { SchemaField } from "../components/SchemaForm";
import { useResource } from "../resource";
import { base } from "../router";
import { from, initial, problem as problemOf, text, type Json } from "../schema";
import { count, duration, words } from "../text/format";
import { visible, writable } from "../text/visible";
import type { ScreenProps } from ".";
import { errorRate, verdict, type Disabled, type Tool } from "./tools";

interface Pin { state: string; reason?: string; changed?: string[]; digest?: string }
interface Call { time: string; run_id: string; success: boolean; latency_ms: number }
interface Detail extends Tool { last_calls?: Call[]; complete_since?: string; output_schema?: unknown; output_allowlist: string[]; policy_rule?: string; policy_reason?: string; limits: Record<string, number>; server?: string; pin?: Pin }
interface Result { is_error: boolean; code?: string; content: string; args: string; took: number } // took: ms, with the way

const mostResults = 8; // that are kept on the page

const shell = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`;
const limitNames: Record<string, string> = { timeout_ms: "Timeout", cache_ttl_ms: "Answers are cached for", concurrency: "Calls at once" };

export default function ToolScreen({ params }: ScreenProps) {
  const name = params.name ?? "";
  const { data, error, reload } = useResource<Detail>(`api/tools/${enc(name)}?since=7d`);
  return <div class="page">
    <PageHeader title={name} back={{ to: "/tools", label: "Tools" }} note={data && <Seen text={data.description} />} />
    {error && !data && (isGone(error) ? <Missing name={name} error={error} /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {data && <>
      {data.disabled && <p class="problem">Disabled <Time at={data.disabled.at} />{data.disabled.by && <> by <Seen text={data.disabled.by} /></>}{data.disabled.reason && <>: <Seen text={data.disabled.reason} /></>}. Models are not offered it, and its calls are denied.</p>}
      <div class="tool-halves"><div class="stack"><Try key={data.name} tool={data} /></div>
        <div class="stack"><Facts tool={data} /><Use tool={data} reload={reload} />
          <details class="card-box" open><summary>Schema of the arguments</summary><JsonView text={JSON.stringify(data.parameters)} label="Schema of the arguments" /></details>
          {data.output_schema !== undefined && <details class="card-box"><summary>Schema of the output</summary><JsonView text={JSON.stringify(data.output_schema)} label="Schema of the output" /></details>}</div></div></>}
  </div>;
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
    <dt>Effect</dt><dd>{words(tool.effect)}</dd>
    {tool.labels?.length ? <><dt>Labels</dt><dd><Seen text={tool.labels.join(", ")} /></dd></> : null}
    <dt>Models see</dt><dd><Seen text={tool.output_allowlist.includes("*") ? "the whole output" : tool.output_allowlist.join(", ") || "nothing of the output"} /></dd>
    {Object.entries(tool.limits).map(([k, n]) => <><dt>{limitNames[k] ?? words(k)}</dt><dd>{k.endsWith("_ms") ? duration(n) : n}</dd></>)}
    {tool.pin && <><dt>Definition</dt><dd><Badge kind={tool.pin.state === "ready" ? "ok" : "bad"}>{tool.pin.state === "ready" ? "accepted" : tool.pin.state}</Badge> {tool.pin.reason && <Seen text={tool.pin.reason} />} <Link to="/pins">Show definitions</Link></dd></>}
  </dl></section>;
}

// Use shows how calls went, and disables the tool or enables it again.
function Use({ tool, reload }: { tool: Detail; reload: () => void }) {
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
    <p>{s?.calls ? <>{count(s.calls, "call")} in the last 7 days, {errorRate(s)} failed, p50 {duration(s.p50_ms)}, p95 {duration(s.p95_ms)}. <Link to={`/runs?tool=${enc(tool.name)}`}>Show the runs</Link></> : "No call in the last 7 days."}</p>
    {tool.last_calls?.length ? <details open={tool.last_calls.length <= 5}><summary class="small">Last calls</summary><ul class="tool-calls">{tool.last_calls.map((c, i) => <li key={i}><StateBadge of={c.success ? "completed" : "failed"} /><span class="num">{duration(c.latency_ms)}</span><Link to={`/runs/${enc(c.run_id)}`} aria-label={`Run ${c.run_id}`}><Time at={c.time} /></Link></li>)}</ul></details> : null}
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {may && (tool.disabled ? <div class="answers"><button type="button" onClick={() => void turn("enable")}>Enable the tool</button></div>
      : <form class="filters" onSubmit={(e) => { e.preventDefault(); void turn("disable"); }}><label>Reason, shown to people<input value={reason} maxLength={200} autocomplete="off" onInput={(e) => setReason(e.currentTarget.value)} /></label><button type="submit" class="danger small">Disable the tool</button></form>)}
  </section>;
}

function Try({ tool }: { tool: Detail }) {
  const [value, setValue] = useState<Json>(() => initial(tool.parameters, tool.parameters));
  const [raw, setRaw] = useState("");
  const [tab, setTab] = useState<"form" | "json">("form");
  const [problem, setProblem] = useState("");
  const [results, setResults] = useState<Result[]>([]), [result, ...earlier] = results; // the newest first
  const [busy, setBusy] = useState(false);
  const args = tab === "json" ? raw : text(value);
  useEffect(() => { setProblem(""); }, [args]);
  const choose = (to: "form" | "json") => {
    if (to === tab) return;
    if (to === "json") setRaw(writable(text(value)));
    else try { setValue(from(JSON.parse(raw))); } catch (e) { return setProblem(`The form cannot show this: ${(e as Error).message}`); }
    setTab(to);
  };
  const compact = () => { try { return JSON.stringify(JSON.parse(args)) === undefined ? args : args.replace(/\n\s*/g, ""); } catch { return args; } };
  const submit = async (e: Event) => {
    e.preventDefault();
    const wrong = tab === "form" ? problemOf(value) : "";
    if (wrong) return setProblem(wrong);
    try { JSON.parse(args); } catch (error) { return setProblem(`This is not valid JSON: ${(error as Error).message}`); }
    setBusy(true);
    try {
      const began = performance.now(), got = await send<Result>("POST", `api/tools/${enc(tool.name)}/call`, `{"arguments":${args}}`);
      setResults((all) => [{ ...got, args, took: performance.now() - began }, ...all].slice(0, mostResults));
      announce(got.is_error ? "The call failed." : "The call has a result.");
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  const url = `${location.origin}${base}api/tools/${enc(tool.name)}/call`;
  const copies = {
    "Copy as curl": () => `curl -s ${shell(url)} -H "Authorization: Bearer $LATHE_KEY" -H 'Content-Type: application/json' -d ${shell(`{"arguments":${compact()}}`)}`,
    "Copy as command": () => `lathe tools call ${shell(tool.name)} ${shell(compact())}`,
    "Copy as Go": () => `result, err := runner.Call(ctx, ${JSON.stringify(tool.name)}, json.RawMessage(${goText(compact())}))`,
  };
  return <section class="card-box" aria-labelledby="try-h">
    <h2 id="try-h">Try it</h2>
    <p class="soft small">The call passes the same checks, policy and audit log as a call of a model.</p>
    <form class="stack" onSubmit={(e) => void submit(e)}>
      <Tabs label="How to enter the arguments" tabs={[{ id: "form", label: "Form" }, { id: "json", label: "JSON" }]} chosen={tab} choose={choose}>
        {tab === "form" ? <SchemaField label="Arguments" schema={tool.parameters} root={tool.parameters} required value={value} change={(v) => setValue(v ?? {})} />
          : <div class="form-field"><label for="try-json">Arguments</label><textarea id="try-json" class="mono" rows={6} spellcheck={false} value={raw} onInput={(e) => setRaw(e.currentTarget.value)} /></div>}
      </Tabs>
      {problem && <p class="problem" role="alert">{visible(problem)}</p>}
      <div class="answers"><button type="submit" disabled={busy}>{busy ? "Calling…" : "Call"}</button>{Object.entries(copies).map(([label, make]) => <Copy key={label} label={label} text={make} />)}</div>
    </form>
    {result && !busy && <section class="stack tool-result" aria-label="Result"><Outcome key={results.length} result={result} /></section>}
    {earlier.length > 0 && <section class="stack tool-result" aria-labelledby="earlier-h"><h2 class="label" id="earlier-h">Earlier calls of this page</h2>
      {earlier.map((r, i) => <details key={earlier.length - i}><summary class="small"><StateBadge of={r.is_error ? "failed" : "completed"} /> <span class="mono">{inOneLine(r.args) || "no arguments"}</span></summary>
        <div class="stack"><Outcome result={r} of={` of earlier call ${earlier.length - i}`} /><div><button type="button" class="quiet small" onClick={() => { setRaw(writable(r.args)); setTab("json"); }}>Use these arguments</button></div></div></details>)}</section>}
  </section>;
}

// Outcome is what a call of this page came to.
const Outcome = ({ result: r, of = "" }: { result: Result; of?: string }) => <>
  {r.is_error ? <><h2 class="label">Result <Badge kind="bad">{words(r.code ?? "error")}</Badge></h2><JsonView text={r.content} label={`Text of the failure${of}`} /></> : <ResultView text={r.content} label="Result" name={`Text of the result${of}`} />}
  <p class="meta"><span class="num">{duration(r.took)}</span></p></>;

const goText = (s: string) => s.includes("`") ? JSON.stringify(s) : `\`${s}\``;
