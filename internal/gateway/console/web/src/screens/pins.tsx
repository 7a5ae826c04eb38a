// The definitions of tools of MCP servers: what was accepted beside what the server says now.

import { useState } from "preact/hooks";
import { enc, isGone, send } from "../api";
import { announce, Badge, Copy, Empty, ErrorState, JsonView, Loading, Pieces, PageHeader, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { count } from "../text/format";
import { shown, visible } from "../text/visible";
import { wordDiff } from "../text/worddiff";

interface Pin { server: string; name: string; remote_name: string; state: string; reason?: string; changed?: string[]; digest?: string; hidden_characters?: number; definition?: Record<string, unknown>; accepted?: Record<string, unknown>; accepted_at?: string }

export default function Pins() {
  const { data, error, reload } = useResource<{ data: Pin[] }>("api/pins", { every: 5000 });
  const all = param("show") === "all";
  const rows = data?.data.filter((p) => all || p.state === "blocked");
  return <div class="page">
    <PageHeader title="Definitions" note="A tool whose definition is new or has changed is kept from every model until a person accepts it.">
      <label class="small"><input type="checkbox" checked={all} onChange={(e) => setParams({ show: e.currentTarget.checked ? "all" : "" })} /> Show accepted ones, too</label>
    </PageHeader>
    {error && !data && (isGone(error) ? <Empty title="This gateway does not describe its parts." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {rows?.length === 0 && <Empty title={all ? "No MCP server has tools." : "Nothing waits to be accepted."} />}
    {rows?.map((p) => <One key={p.name} p={p} reload={reload} />)}
  </div>;
}

function One({ p, reload }: { p: Pin; reload: () => void }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const accept = async () => {
    setBusy(true);
    setProblem("");
    try {
      await send("POST", `api/pins/${enc(p.name)}/accept`, { digest: p.digest });
      announce(`The definition of ${visible(p.name)} is accepted.`);
      document.querySelector<HTMLElement>("h1")?.focus();
    } catch (e) { setProblem((e as Error).message); }
    setBusy(false);
    reload();
  };
  return <article class="card-box" aria-labelledby={`p-${p.name}`}>
    <div class="approval-head"><h2 id={`p-${p.name}`}><Seen text={p.name} /></h2><Badge kind={p.state === "ready" ? "ok" : p.state === "blocked" ? "bad" : "wait"}>{p.state === "ready" ? "accepted" : p.state}</Badge>
      {p.accepted_at && <span class="soft small">accepted <Time at={p.accepted_at} /></span>}</div>
    {p.reason && <p class="soft"><Seen text={p.reason} />{p.changed?.length ? <>: <Seen text={p.changed.join(", ")} /></> : null}</p>}
    {p.hidden_characters ? <p class="problem">{count(p.hidden_characters, "invisible character")} in its texts; models get them left out. They are marked below.</p> : null}
    {p.digest && <p class="soft small mono"><Seen text={p.digest} /> <Copy text={p.digest} label="Copy digest" /></p>}
    {p.state === "blocked" && p.definition && (p.accepted ? <Diff before={p.accepted} after={p.definition} label={p.name} />
      : <>{p.accepted_at && <p class="soft small">The text that was accepted was not stored, so that only the new one can be shown.</p>}<JsonView text={JSON.stringify(p.definition)} label={`Definition of ${visible(p.name)}`} /></>)}
    {p.state !== "blocked" && p.definition && <details><summary class="small">Definition, written by the server</summary><JsonView text={JSON.stringify(p.definition)} label={`Definition of ${visible(p.name)}`} /></details>}
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {p.state === "blocked" && <div class="answers"><button type="button" disabled={busy} onClick={() => void accept()}>Accept this definition<span class="unseen"> of {visible(p.name)}</span></button><span class="soft small">It stays blocked until you do.</span></div>}
  </article>;
}

// Diff shows each part of two definitions that differs, by words.
function Diff({ before, after, label }: { before: Record<string, unknown>; after: Record<string, unknown>; label: string }) {
  const lines = (v: unknown) => v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v, undefined, 2);
  const parts = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((k) => lines(before[k]) !== lines(after[k]));
  return <>{parts.map((part) => <div key={part} class="stack"><h3>{visible(part)}</h3>
    <pre class="diff" tabIndex={0} role="region" aria-label={`Change of ${visible(part)} of ${visible(label)}`}>{wordDiff(lines(before[part]), lines(after[part])).map(([kind, text], i) => kind === "same" ? <span key={i}><Pieces cut={shown(text)} /></span>
      : kind === "gone" ? <del key={i}><Pieces cut={shown(text)} /></del> : <ins key={i}><Pieces cut={shown(text)} /></ins>)}</pre></div>)}</>;
}
