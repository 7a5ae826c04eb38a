// The definitions of tools of MCP servers: what was accepted beside what the server says now.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { enc, isGone, send } from "../api";
import { announce, Badge, Copy, Empty, ErrorState, JsonView, Link, Loading, Pieces, PageHeader, Seen, Time } from "../components/basics";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { count } from "../text/format";
import { shown, visible } from "../text/visible";
import { wordDiff } from "../text/worddiff";
import { blockedCount } from "../waiting";

interface Pin { server: string; name: string; remote_name: string; state: string; reason?: string; changed?: string[]; digest?: string; hidden_characters?: number; definition?: Record<string, unknown>; accepted?: Record<string, unknown>; accepted_at?: string }

// kept are the definitions that the person has decided to keep blocked while this page is open, by digest.
const kept = signal(new Set<string>());

export default function Pins() {
  const { data, error, reload } = useResource<{ data: Pin[] }>("api/pins", { every: 5000 });
  const all = param("show") === "all", tool = param("tool");
  const rows = data?.data.filter((p) => tool ? p.name === tool : all || p.state === "blocked"), waiting = data?.data.filter((p) => p.state === "blocked").length;
  useEffect(() => { if (waiting !== undefined) blockedCount.value = waiting; }, [waiting]);
  return <div class="page">
    <PageHeader title="Definitions" note="A tool of an MCP server whose definition is new or has changed is blocked until a person accepts it: no model is offered it.">
      {data && (tool ? <Link to="/pins">Show all definitions</Link> : <label class="small"><input type="checkbox" checked={all} onChange={(e) => setParams({ show: e.currentTarget.checked ? "all" : "" })} /> Show accepted ones, too</label>)}
    </PageHeader>
    {error && !data && (isGone(error) ? <Empty title="This gateway does not describe its parts." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {rows?.length === 0 && <Empty title={tool ? "No MCP server has a tool of this name." : all ? "No MCP server has tools." : "Nothing waits to be accepted."}>{!all && !tool && !waiting && data!.data.length > 0 && <>All {count(data!.data.length, "definition")} are accepted.</>}</Empty>}
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
  const keep = (yes: boolean) => {
    const digests = new Set(kept.value);
    if (yes) digests.add(p.digest ?? "");
    else digests.delete(p.digest ?? "");
    kept.value = digests;
    if (!yes) return;
    announce(`${visible(p.name)} stays blocked.`);
    document.querySelector<HTMLElement>("h1")?.focus();
  };
  const blocked = p.state === "blocked", folded = blocked && kept.value.has(p.digest ?? "");
  const head = <div class="approval-head"><h2 id={`p-${p.name}`}><Seen text={p.name} /></h2><span class="soft small">of server <Link to="/servers"><Seen text={p.server} /></Link></span><Badge kind={p.state === "ready" ? "ok" : blocked ? "bad" : "wait"}>{p.state === "ready" ? "accepted" : p.state}</Badge>
    {p.accepted_at && <span class="soft small">{blocked ? "an earlier one was accepted" : "accepted"} <Time at={p.accepted_at} /></span>}
    {folded && <button type="button" class="quiet small" onClick={() => keep(false)}>Look at it again<span class="unseen">: {visible(p.name)}</span></button>}</div>;
  if (folded) return <article class="card-box" aria-labelledby={`p-${p.name}`}>{head}<p class="soft small">You kept it blocked. No model is offered it.</p></article>;
  return <article class="card-box" aria-labelledby={`p-${p.name}`}>
    {head}
    {p.reason && <p><span class="sentence"><Seen text={p.reason} /></span>{p.changed?.length ? <>: <b><Seen text={p.changed.join(", ")} /></b></> : null}.</p>}
    {p.hidden_characters ? <p class="problem warning">{count(p.hidden_characters, "invisible character")} in its texts: below as escapes, and left out of what models get. Such characters can hide text from a reader.</p> : null}
    {blocked && p.definition && (p.accepted ? <Diff before={p.accepted} after={p.definition} label={p.name} />
      : <>{p.accepted_at && <p class="soft small">The text that was accepted was not stored, so that only the new one can be shown.</p>}<JsonView text={JSON.stringify(p.definition)} label={`Definition of ${visible(p.name)}`} /></>)}
    {p.definition && (!blocked || p.accepted) && <details><summary class="small">Whole definition, written by the server</summary><JsonView text={JSON.stringify(p.definition)} label={`Definition of ${visible(p.name)}`} /></details>}
    {problem && <p class="problem" role="alert">{visible(problem)}</p>}
    {blocked && <div class="answers"><button type="button" onClick={() => keep(true)}>Keep blocked<span class="unseen">: {visible(p.name)}</span></button><button type="button" class="quiet" disabled={busy} onClick={() => void accept()}>Accept this definition<span class="unseen"> of {visible(p.name)}</span></button></div>}
    {p.digest && <p class="soft small digest">Digest <span class="mono"><Seen text={p.digest} /></span> <Copy text={p.digest} label="Copy digest" /></p>}
  </article>;
}

// Diff shows each part of two definitions that differs, by words. What is new is marked as a warning: it comes from the server.
function Diff({ before, after, label }: { before: Record<string, unknown>; after: Record<string, unknown>; label: string }) {
  const lines = (v: unknown) => v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v, undefined, 2);
  const parts = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((k) => lines(before[k]) !== lines(after[k]));
  return <>{parts.map((part) => <div key={part} class="stack"><div class="result-head"><h3>{visible(part)}</h3><span class="small doubt"><del>removed</del> <ins>added by the server</ins></span></div>
    <pre class="diff doubt" tabIndex={0} role="region" aria-label={`Change of ${visible(part)} of ${visible(label)}`}>{wordDiff(lines(before[part]), lines(after[part])).map(([kind, text], i) => kind === "same" ? <span key={i}><Pieces cut={shown(text)} /></span>
      : kind === "gone" ? <del key={i}><Pieces cut={shown(text)} /></del> : <ins key={i}><Pieces cut={shown(text)} /></ins>)}</pre></div>)}</>;
}
