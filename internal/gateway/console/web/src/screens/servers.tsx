// The MCP servers: what each is doing, since when, and why it is not ready.

import { useState } from "preact/hooks";
import { enc, isGone, send } from "../api";
import { announce, Badge, Empty, ErrorState, JsonView, Link, Loading, PageHeader, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { count, words } from "../text/format";
import { visible } from "../text/visible";

interface ServerTool { name: string; state: string; reason?: string }
interface Server { name: string; state: string; since: string; required: boolean; transport: string; protocol?: string; software?: string; problem?: string; next_try?: string; starts: number; failures: number; target?: string; last_error?: string; stderr?: string; tools: ServerTool[] }

const kinds: Record<string, "ok" | "wait" | "bad" | "run"> = { ready: "ok", starting: "run", backoff: "wait", failed: "bad", closed: "" as "ok" };

export default function Servers() {
  const { data, error, reload } = useResource<{ data: Server[] }>("api/servers", { every: 2000 });
  return <div class="page">
    <PageHeader title="Servers" note="MCP servers that tools come from. Lathe starts them again when they end." />
    {error && !data && (isGone(error) ? <Empty title="This gateway does not describe its parts." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {data?.data.length === 0 && <Empty title="No MCP server is configured."><code>tools.mcp</code> in lathe.yaml names them.</Empty>}
    {data?.data.map((s) => <One key={s.name} s={s} reload={reload} />)}
  </div>;
}

function One({ s, reload }: { s: Server; reload: () => void }) {
  const [problem, setProblem] = useState("");
  const again = async () => {
    setProblem("");
    try {
      await send("POST", `api/servers/${enc(s.name)}/reconnect`);
      announce(`${visible(s.name)} is connected anew.`);
      reload();
    } catch (e) { setProblem((e as Error).message); }
  };
  const bad = s.tools.filter((t) => t.state !== "ready" && t.state !== "excluded");
  return <article class="card-box" aria-labelledby={`s-${s.name}`}>
    <div class="approval-head"><h2 id={`s-${s.name}`}><Seen text={s.name} /></h2><Badge kind={kinds[s.state] ?? ""}>{s.state}</Badge>{s.required && <Badge>required</Badge>}<span class="soft small">since <Time at={s.since} /></span>
      <button type="button" class="quiet small" onClick={() => void again()}>Reconnect<span class="unseen"> {visible(s.name)}</span></button></div>
    <dl class="facts">
      <dt>Transport</dt><dd>{words(s.transport)}{s.protocol && <>, protocol <Seen text={s.protocol} /></>}</dd>
      {s.software && <><dt>Software</dt><dd><Seen text={s.software} /></dd></>}
      {s.target && <><dt>Address</dt><dd class="mono"><Seen text={s.target} /></dd></>}
      <dt>Connections</dt><dd>{s.starts}{s.failures > 0 && `, ${count(s.failures, "failed attempt")} in a row`}{s.next_try && <>, next try <Time at={s.next_try} due /></>}</dd>
      {s.problem && <><dt>Problem</dt><dd>{words(s.problem)}</dd></>}
      <dt>Tools</dt><dd>{count(s.tools.filter((t) => t.state === "ready").length, "tool")} of {s.tools.length} offered</dd>
    </dl>
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {s.last_error && s.state !== "ready" && <JsonView text={s.last_error} label={`Last error of ${visible(s.name)}`} />}
    {bad.length > 0 && <ul class="stack">{bad.map((t) => <li key={t.name}><Badge kind="bad">{t.state}</Badge> <Seen text={t.name} /> <span class="soft"><Seen text={t.reason ?? ""} /></span> {t.state === "blocked" && <Link to="/pins">Show the definition</Link>}</li>)}</ul>}
    {s.tools.some((t) => t.state === "ready") && <details><summary class="small">Tools</summary><ul class="server-tools">{s.tools.filter((t) => t.state === "ready").map((t) => <li key={t.name}><Link to={`/tools/${enc(t.name)}`}><Seen text={t.name} /></Link></li>)}</ul></details>}
    {s.stderr && <details open={s.state !== "ready"}><summary class="small">Standard error, written by the server</summary><JsonView text={s.stderr} label={`Standard error of ${visible(s.name)}`} /></details>}
  </article>;
}
