// A run again with another model, and the two beside each other.

import { useMemo, useState } from "preact/hooks";
import { enc, now, send } from "../api";
import { announce, Badge, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, StateBadge } from "../components/basics";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { align, partsOf, same, type Row } from "../run/compare";
import { useEvents } from "../run/follow";
import { itemsOf } from "../run/items";
import { lasted, money, reasonOf, type Run } from "../run/types";
import { ofRun } from "../state";
import { count, duration } from "../text/format";
import { visible } from "../text/visible";
import { wordDiff } from "../text/worddiff";
import type { ScreenProps } from ".";

export default function Replay({ params }: ScreenProps) {
  const id = params.id!, other = param("with");
  const left = useResource<Run>(`api/runs/${enc(id)}`);
  return <div class="page">
    <PageHeader title="Run again" back={{ to: `/runs/${enc(id)}`, label: "The recorded run" }} note="The same conversation, with another model or other settings. The new run is a run of its own." />
    {left.error && !left.data && <ErrorState error={left.error} retry={left.reload} />}
    {!left.data && !left.error && <Loading />}
    {left.data && <Start key={id} run={left.data} />}
    {left.data && other && <Compare key={other} left={left.data} right={other} />}
  </div>;
}

const efforts = ["low", "medium", "high"];

function Start({ run }: { run: Run }) {
  const models = useResource<{ data: { id: string }[] }>("v1/models");
  const [model, setModel] = useState("");
  const [settings, set] = useState<Record<string, string>>({}); // numbers, but for the effort
  const [tools, setTools] = useState("recorded");
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy) return;
    setError(undefined);
    setBusy(true);
    const changed = Object.entries(settings).filter(([, v]) => v);
    try {
      const made = await send<Run>("POST", `api/runs/${enc(run.run_id)}/replay`, { tools, ...(model ? { model } : {}), ...(changed.length ? { settings: Object.fromEntries(changed.map(([name, v]) => [name, name === "reasoning_effort" ? v : Number(v)])) } : {}) });
      setParams({ with: made.run_id });
      announce("The new run has begun.");
    } catch (e) { setError(e as Error); }
    setBusy(false);
  };
  const own = run.target || run.model;
  const field = (name: string, label: string, bounds: { min?: number; max?: number; step?: number }) => <label>{label}<input type="number" {...bounds} placeholder="as recorded" style={{ width: "9rem" }} value={settings[name] ?? ""} onInput={(e) => set({ ...settings, [name]: e.currentTarget.value })} /></label>;
  return <form class="card-box" aria-label="A new run" onSubmit={(e) => void submit(e)}>
    <div class="filters">
      <label>Model<select value={model} onChange={(e) => setModel(e.currentTarget.value)}><option value="">{visible(own)}, as recorded</option>{models.data?.data.filter((m) => m.id !== own).map((m) => <option key={m.id} value={m.id}>{visible(m.id)}</option>)}</select></label>
      {field("temperature", "Temperature", { min: 0, max: 2, step: .1 })}
      <label>Tools<select value={tools} onChange={(e) => setTools(e.currentTarget.value)}><option value="recorded">recorded results, nothing is called</option><option value="live">called again, with their effects</option></select></label>
      <button type="submit" disabled={busy}>{busy ? "Starting…" : "Run again"}</button>
    </div>
    <details><summary class="small">More settings</summary><div class="filters">{field("max_completion_tokens", "Longest answer, tokens", { min: 1 })}{field("top_p", "Top p", { min: 0, max: 1, step: .05 })}{field("seed", "Seed", {})}
      <label>Reasoning effort<select value={settings.reasoning_effort ?? ""} onChange={(e) => set({ ...settings, reasoning_effort: e.currentTarget.value })}><option value="">as recorded</option>{efforts.map((e) => <option key={e}>{e}</option>)}</select></label></div></details>
    {tools === "live" && <p class="small problem note">Tools that change something change it again. Policy and approvals hold as for any run.</p>}
    {error && <ErrorState error={error} />}
  </form>;
}

function Compare({ left, right: id }: { left: Run; right: string }) {
  const a = useEvents(left.run_id), b = useEvents(id);
  const over = b.events.some((e) => e.type === "RunFinished");
  const right = useResource<Run>(`api/runs/${enc(id)}`, { every: over ? undefined : 1000 });
  const rows = useMemo(() => align(itemsOf(a.events).items, itemsOf(b.events).items), [a.events, b.events]);
  const [all, setAll] = useState(true);
  const changed = rows.filter((r) => !same(r));
  const failed = a.error ?? b.error ?? (right.data ? undefined : right.error);
  if (failed) return <ErrorState error={failed} retry={right.reload} />;
  if (!right.data) return <Loading />;
  return <>
    <Facts left={left} right={right.data} />
    <h2 class="unseen">Conversation</h2>
    <div class="compare-bar"><p role="status">{!over && <StateBadge of="running" />} {over && (changed.length ? `${count(changed.length, "item")} of ${rows.length} differ.` : "Both runs say the same.")}</p>
      <label class="small"><input type="checkbox" checked={!all} onChange={(e) => setAll(!e.currentTarget.checked)} /> Only what differs</label></div>
    {rows.length === 0 ? <Empty title="Neither run has a conversation yet." /> : <ol class="compare">{(all ? rows : changed).map((r) => <Pair key={rows.indexOf(r)} row={r} at={rows.indexOf(r) + 1} />)}</ol>}
  </>;
}

function Facts({ left, right }: { left: Run; right: Run }) {
  const rows: [string, (r: Run) => preact.ComponentChildren][] = [
    ["Model", (r) => <Seen text={r.target || r.model} />], ["Status", (r) => <><StateBadge of={ofRun(r)} /> {reasonOf(r)}</>], ["Duration", (r) => duration(lasted(r, now()))],
    ["Turns, calls", (r) => `${r.turns}, ${r.tool_calls}`], ["Tokens", (r) => `${r.usage.input_tokens.toLocaleString()} in, ${r.usage.output_tokens.toLocaleString()} out`], ["Cost", (r) => r.cost ? money(r.cost) : "not known"],
  ];
  return <PlainTable label="Both runs" head={["What", "Recorded", "New"]}>
    {rows.map(([name, cell]) => <tr key={name}><th scope="row">{name}</th><td>{cell(left)}</td><td>{cell(right)}</td></tr>)}
    <tr><th scope="row">Run</th><td><Link to={`/runs/${enc(left.run_id)}`}><Seen text={left.run_id} /></Link></td><td><Link to={`/runs/${enc(right.run_id)}`}><Seen text={right.run_id} /></Link></td></tr>
  </PlainTable>;
}

// Pair is one row: what differs is marked on both sides.
function Pair({ row, at }: { row: Row; at: number }) {
  const item = row.left ?? row.right!, left = partsOf(row.left), right = partsOf(row.right), equal = same(row);
  const title = item.kind === "call" ? item.call.name : item.kind === "text" ? [item.role, item.note].filter(Boolean).join(", ") : "note";
  const side = (parts: typeof left, others: typeof left, mine: "gone" | "new") => parts.map((p, i) => {
    const from = mine === "gone" ? p.text : others[i]?.text ?? "", to = mine === "gone" ? others[i]?.text ?? "" : p.text;
    return <div key={i}>{p.label && <h3>{visible(p.label)}</h3>}<pre class="diff" tabIndex={0} role="region" aria-label={`${mine === "gone" ? "Recorded" : "New"} ${at}: ${visible(title)}${p.label && `, ${visible(p.label)}`}`}>
      {others.length === 0 ? p.text : wordDiff(from, to).filter(([kind]) => kind === "same" || kind === mine).map(([kind, text], n) => kind === "same" ? text : mine === "gone" ? <del key={n}>{text}</del> : <ins key={n}>{text}</ins>)}</pre></div>;
  });
  return <li class={`compare-row${equal ? "" : " changed"}`}>
    <div class="run-who"><b class={item.kind === "call" ? "mono" : ""}><Seen text={title} /></b>{!row.left ? <Badge kind="wait">only in the new run</Badge> : !row.right ? <Badge kind="wait">only in the recorded run</Badge> : equal ? <Badge>the same</Badge> : <Badge kind="wait">differs</Badge>}</div>
    <div class="compare-side">{row.left ? side(left, right, "gone") : <p class="soft small">nothing here</p>}</div>
    <div class="compare-side">{row.right ? side(right, left, "new") : <p class="soft small">nothing here</p>}</div>
  </li>;
}
