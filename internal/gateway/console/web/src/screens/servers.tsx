// The MCP servers: what each is doing, since when, and why it is not ready.

import { useEffect, useState } from "preact/hooks";
import { enc, isGone, now, send } from "../api";
import { announce, Badge, Copy, Empty, ErrorState, JsonView, Link, Loading, PageHeader, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { count, duration, words } from "../text/format";
import { visible } from "../text/visible";
import { countServers, isDown } from "../waiting";

interface ServerTool { name: string; state: string; reason?: string }
interface Server { name: string; state: string; since: string; required: boolean; transport: string; protocol?: string; software?: string; problem?: string; next_try?: string; starts: number; failures: number; target?: string; last_error?: string; stderr?: string; tools: ServerTool[] }

const kinds: Record<string, "ok" | "wait" | "bad" | "run"> = { ready: "ok", starting: "run", backoff: "wait", failed: "bad", closed: "" as "ok" };

const last = 8; // lines of standard error that are shown at first

// next says what a person may do about a server that is not ready.
const next = (s: Server) => s.transport === "stdio" ? <>Run its command in a terminal to see it fail, correct <code>tools.mcp.<Seen text={s.name} /></code> in lathe.yaml, then press Reconnect.</> : "Check that its address answers, then press Reconnect.";

export default function Servers() {
  const { data, error, reload } = useResource<{ data: Server[] }>("api/servers", { every: 2000 });
  useEffect(() => { if (data) countServers(data.data); }, [data]);
  const ordered = data?.data.toSorted((a, b) => Number(a.state === "ready") - Number(b.state === "ready") || (a.name < b.name ? -1 : 1));
  return <div class="page">
    <PageHeader title="Servers" note="MCP servers that tools come from. The gateway starts them again when they end." />
    {error && !data && (isGone(error) ? <Empty title="This gateway does not describe its parts." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {data?.data.length === 0 && <Empty title="No MCP server is configured."><code>tools.mcp</code> in lathe.yaml names them.</Empty>}
    <div class="server-list">{ordered?.map((s) => <One key={s.name} s={s} reload={reload} />)}</div>
  </div>;
}

function One({ s, reload }: { s: Server; reload: () => void }) {
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
    {failing && <div class="problem server-why"><b>{s.problem ? words(s.problem) : "It is not connected"}{s.failures > 0 && `, ${count(s.failures, "failed attempt")} in a row`}{s.next_try && `; next attempt ${Date.parse(s.next_try) > now() ? `in ${duration(Date.parse(s.next_try) - now())}` : "now"}`}</b>
      {s.last_error && <span class="cause-said"><Seen text={s.last_error} /></span>}<span>{next(s)}</span></div>}
    {!failing && s.state !== "ready" && s.last_error && <JsonView text={s.last_error} label={`Last error of ${visible(s.name)}`} />}
    {s.stderr && <Stderr name={s.name} text={s.stderr} />}
    {bad.length > 0 && <ul class="stack">{bad.map((t) => <li key={t.name}><Badge kind="bad">{t.state}</Badge> <Seen text={t.name} /> <span class="soft"><Seen text={t.reason ?? ""} /></span> {t.state === "blocked" && <Link to={`/pins?tool=${enc(t.name)}`}>Show the definition</Link>}</li>)}</ul>}
    <dl class="run-facts">
      <div><dt>Transport</dt><dd>{words(s.transport)}{s.protocol && <>, protocol <Seen text={s.protocol} /></>}</dd></div>
      {s.software && <div><dt>Software</dt><dd><Seen text={s.software} /></dd></div>}
      {s.target && <div><dt>{s.transport === "stdio" ? "Command" : "Address"}</dt><dd class="mono server-target"><Seen text={s.target} /> <Copy icon text={s.target} label={`Copy ${s.transport === "stdio" ? "the command" : "the address"} of ${visible(s.name)}`} /></dd></div>}
      <div><dt>Connections made</dt><dd class="num">{s.starts}</dd></div>
      <div><dt>Tools offered</dt><dd class="num">{ready.length} of {s.tools.length}</dd></div>
    </dl>
    {ready.length > 0 && <ul class="server-tools" aria-label={`Tools of ${visible(s.name)}`}>{ready.map((t) => <li key={t.name}><Link to={`/tools/${enc(t.name)}`}><Seen text={t.name} /></Link></li>)}</ul>}
  </article>;
}

// Stderr shows the last lines that a server wrote to its standard error, and all of them on request.
function Stderr({ name, text }: { name: string; text: string }) {
  const [all, set] = useState(false);
  const lines = text.trimEnd().split("\n");
  return <div class="stack server-stderr"><div class="result-head"><h3>Standard error{lines.length > last && !all && <>, the last {last} lines</>}</h3>
    {lines.length > last && <button type="button" class="quiet small" aria-expanded={all} onClick={() => set(!all)}>{all ? "Show the last lines" : `Show all ${count(lines.length, "line")}`}</button>}</div>
    <JsonView text={(all ? lines : lines.slice(-last)).join("\n")} label={`Standard error of ${visible(name)}`} /></div>;
}
