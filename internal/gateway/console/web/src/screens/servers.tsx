// The MCP servers: what each is doing, since when, and why it is not ready.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { enc, isGone, now, send } from "../api";
import { announce, Badge, Copy, Empty, ErrorState, JsonView, Link, Loading, PageHeader, Pieces, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { effectOf } from "../state";
import { count, wait, words } from "../text/format";
import { stampOf } from "../text/logline";
import { pieces, visible } from "../text/visible";
import { countServers, isDown } from "../waiting";
import { errorRate, verdict, type Tool } from "./tools";

interface ServerTool { name: string; state: string; reason?: string }
interface Server { name: string; state: string; since: string; required: boolean; transport: string; protocol?: string; software?: string; capabilities?: string[]; instructions?: string; problem?: string; next_try?: string; starts: number; failures: number; target?: string; last_error?: string; stderr?: string; tools: ServerTool[] }

const kinds: Record<string, "ok" | "wait" | "bad" | "run"> = { ready: "ok", starting: "run", backoff: "wait", failed: "bad", closed: "" as "ok" };

const last = 8; // lines of standard error that are shown at first

// next says what a person may do about a server that is not ready.
const next = (s: Server) => s.transport === "stdio" ? <>Run its command in a terminal to see it fail, correct <code>tools.mcp.<Seen text={s.name} /></code> in lathe.yaml, then press Reconnect.</> : "Check that its address answers, then press Reconnect.";

const used = new Set(["tools"]); // the capabilities of servers that the gateway uses

export default function Servers() {
  const tools = useResource<{ data: Tool[] }>("api/tools?stats=true&since=7d", { every: 15_000 });
  const known = new Map(tools.data?.data.map((t) => [t.name, t]));
  const { data, error, reload } = useResource<{ data: Server[] }>("api/servers", { every: 2000 });
  useEffect(() => { if (data) countServers(data.data); }, [data]);
  const ordered = data?.data.toSorted((a, b) => Number(a.state === "ready") - Number(b.state === "ready") || (a.name < b.name ? -1 : 1));
  return <div class="page">
    <PageHeader title="Servers" note="MCP servers that tools come from. The gateway starts them again when they end." />
    {error && !data && (isGone(error) ? <Empty title="This gateway does not describe its parts." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {data?.data.length === 0 && <Empty title="No MCP server is configured."><code>tools.mcp</code> in lathe.yaml names them.</Empty>}
    <div class="server-list">{ordered?.map((s) => <One key={s.name} s={s} known={known} reload={reload} />)}</div>
  </div>;
}

function One({ s, known, reload }: { s: Server; known: Map<string, Tool>; reload: () => void }) {
  const [problem, setProblem] = useState(""), [busy, setBusy] = useState(false);
  const again = async () => {
    setProblem("");
    setBusy(true);
    try {
      await send("POST", `api/servers/${enc(s.name)}/reconnect`);
      announce(`${visible(s.name)} is connected again.`);
      reload();
    } catch (e) { setProblem((e as Error).message); }
    setBusy(false);
  };
  const bad = s.tools.filter((t) => t.state !== "ready" && t.state !== "excluded"), ready = s.tools.filter((t) => t.state === "ready"), failing = isDown(s.state);
  return <article class="card-box" aria-labelledby={`s-${s.name}`}>
    <div class="approval-head"><h2 id={`s-${s.name}`}><Seen text={s.name} /></h2><Badge kind={kinds[s.state] ?? ""}>{s.state}</Badge>{s.required && <Badge>required</Badge>}<span class="soft small">since <Time at={s.since} /></span>
      <button type="button" class={failing ? "small" : "quiet small"} disabled={busy} onClick={() => void again()}>{busy ? "Connecting…" : "Reconnect"}<span class="unseen"> {visible(s.name)}</span></button></div>
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {failing && <div class="problem server-why"><b>{s.problem ? words(s.problem) : "It is not connected"}{s.failures > 0 && `, ${count(s.failures, "failed attempt")} in a row`}{s.next_try && `; next attempt ${Date.parse(s.next_try) > now() ? `in ${wait(Date.parse(s.next_try) - now())}` : "now"}`}</b>
      {s.last_error && <span class="cause-said"><Seen text={s.last_error} /></span>}<span>{next(s)}</span></div>}
    {!failing && s.state !== "ready" && s.last_error && <JsonView text={s.last_error} label={`Last error of ${visible(s.name)}`} />}
    {s.stderr && <Stderr name={s.name} text={s.stderr} folded={s.state === "ready"} />}
    {bad.length > 0 && <ul class="stack">{bad.map((t) => <li key={t.name}><Badge kind="bad">{t.state}</Badge> <Seen text={t.name} /> <span class="soft"><Seen text={t.reason ?? ""} /></span> {t.state === "blocked" && <Link to={`/pins?tool=${enc(t.name)}`}>Show the definition</Link>}</li>)}</ul>}
    <dl class="run-facts">
      <div><dt>Transport</dt><dd>{words(s.transport)}{s.protocol && <>, protocol <Seen text={s.protocol} /></>}</dd></div>
      {s.software && <div><dt>Software</dt><dd><Seen text={s.software} /></dd></div>}
      {s.target && <div><dt>{s.transport === "stdio" ? "Command" : "Address"}</dt><dd class="mono server-target"><Seen text={s.target} /> <Copy icon text={s.target} label={`Copy ${s.transport === "stdio" ? "the command" : "the address"} of ${visible(s.name)}`} /></dd></div>}
      <div><dt>Connections made</dt><dd class="num">{s.starts}</dd></div>
      <div><dt>Tools offered</dt><dd class="num">{ready.length} of {s.tools.length}</dd></div>
      <Calls of={ready.map((t) => known.get(t.name)?.stats)} />
    </dl>
    {s.capabilities && s.capabilities.length > 0 && <p class="server-declares"><span class="soft small">It declares</span> {s.capabilities.map((c) => <Badge key={c} kind={used.has(c) ? "ok" : ""}>{c}</Badge>)}{s.capabilities.some((c) => !used.has(c)) && <span class="soft small">The gateway uses its tools only.</span>}</p>}
    {s.instructions && <details><summary class="small">Its instructions <span class="soft">are not sent to models</span></summary><JsonView text={s.instructions} label={`Instructions of ${visible(s.name)}`} /></details>}
    {ready.length > 0 && <ul class="server-tools" aria-label={`Tools of ${visible(s.name)}`}>{ready.map((t) => <OneTool key={t.name} name={t.name} tool={known.get(t.name)} />)}</ul>}
  </article>;
}

// Calls sums up the calls of the tools of a server.
function Calls({ of }: { of: Tool["stats"][] }) {
  const calls = of.reduce((n, s) => n + (s?.calls ?? 0), 0), errors = of.reduce((n, s) => n + (s?.errors ?? 0), 0);
  return calls === 0 ? null : <div><dt>Calls in 7 days</dt><dd class="num">{calls.toLocaleString()}{errors > 0 && <>, <span class="bad-number">{errors.toLocaleString()} failed</span></>}</dd></div>;
}

// OneTool is a tool of a server, with what this key may know of it.
function OneTool({ name, tool }: { name: string; tool?: Tool }) {
  return <li><Link to={`/tools/${enc(name)}`}><Seen text={name} /></Link>
    {tool && <><span class="soft server-about" title={visible(tool.description)}><Seen text={tool.description} /></span>
      <span class="server-figures">{tool.stats?.calls ? <span class="soft num">{count(tool.stats.calls, "call")}, {errorRate(tool.stats)} failed</span> : null}<span class="tag" title={effectOf(tool.effect).about}>{effectOf(tool.effect).name}</span><Badge kind={tool.disabled ? "bad" : verdict[tool.policy ?? ""] ?? ""}>{tool.disabled ? "disabled" : tool.policy ?? "unknown"}</Badge></span></>}</li>;
}

// Stderr shows the last lines that a server wrote to its standard error, and all of them on request. Those of a server that is ready are folded.
function Stderr({ name, text, folded }: { name: string; text: string; folded: boolean }) {
  const [shown, show] = useState(!folded);
  const [all, set] = useState(false), box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => { if (box.current) box.current.scrollTop = box.current.scrollHeight; }, [all, shown]); // the newest lines are at the end
  const lines = text.trimEnd().split("\n");
  if (!shown) return <button type="button" class="link small server-folded" onClick={() => show(true)}>Show {count(lines.length, "line")} of its standard error</button>;
  return <div class="stack server-stderr"><div class="result-head"><h3>Standard error{lines.length > last && !all && <>, the last {last} lines</>}</h3><span class="answers"><Copy text={text} />
    {lines.length > last && <button type="button" class="quiet small" aria-expanded={all} onClick={() => set(!all)}>{all ? "Show the last lines" : `Show all ${count(lines.length, "line")}`}</button>}</span></div>
    <pre ref={box} class="log" tabIndex={0} role="region" aria-label={`Standard error of ${visible(name)}`}>{(all ? lines : lines.slice(-last)).map((l, i) => { const { time, short, rest } = stampOf(l); return <span key={i}>{time && <time class="soft" title={time}>{short} </time>}<Pieces cut={pieces(rest, "\t")} />{"\n"}</span>; })}</pre></div>;
}
