// A run again with another model, and the two beside each other.

import { useEffect, useMemo, useState } from "preact/hooks";
import { enc, now, query, send } from "../api";
import { announce, Badge, Empty, ErrorState, Link, Loading, PageHeader, PlainTable, Seen, StateBadge } from "../components/basics";
import { inOneLine } from "../components/CallCard";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { aged, align, differs, partsOf, repeated, same, share, type Row, type Sides } from "../run/compare";
import { useEvents } from "../run/follow";
import { itemsOf } from "../run/items";
import { lasted, money, reasonOf, type Run, type RunPage } from "../run/types";
import { ofRun } from "../state";
import { count, measured, notReported, unmarked } from "../text/format";
import { visible } from "../text/visible";
import { wordDiff } from "../text/worddiff";
import type { ScreenProps } from ".";

export default function Replay({ params }: ScreenProps) {
  const id = params.id!, other = param("with");
  const left = useResource<Run>(`api/runs/${enc(id)}`), right = useResource<Run>(other ? `api/runs/${enc(other)}` : undefined).data;
  const two = right !== undefined && right.replays !== id; // runs that do not repeat one another
  return <div class="page">
    {two ? <PageHeader title="Compare two runs" back={{ to: "/runs", label: "Runs" }} note="The older run on the left, the newer one on the right." />
      : <PageHeader title="Run again" back={{ to: `/runs/${enc(id)}`, label: "The recorded run" }} note="The same conversation, with another model or other settings. The new run is a run of its own." />}
    {left.error && !left.data && <ErrorState error={left.error} retry={left.reload} />}
    {!left.data && !left.error && <Loading />}
    {left.data && !two && (!other || right) && <Start key={id} run={left.data} />}
    {left.data && <Runs of={left.data} shown={other} two={two ? right : undefined} />}
    {left.data && other && <Compare key={other} left={left.data} right={other} sides={two ? aged : repeated} />}
  </div>;
}

const efforts = ["low", "medium", "high"], mostModels = 24;

function Start({ run }: { run: Run }) {
  const models = useResource<{ data: { id: string }[] }>("v1/models");
  const [model, setModel] = useState(""), [also, setAlso] = useState<string[]>([]);
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
      const begin = (model: string) => send<Run>("POST", `api/runs/${enc(run.run_id)}/replay`, { tools, ...(model ? { model } : {}), ...(changed.length ? { settings: Object.fromEntries(changed.map(([name, v]) => [name, name === "reasoning_effort" ? v : Number(v)])) } : {}) });
      const made = await begin(model);
      for (const m of also) if (m !== model) await begin(m);
      setParams({ with: made.run_id });
      announce(also.length ? "The new runs have begun." : "The new run has begun.");
    } catch (e) { setError(e as Error); }
    setBusy(false);
  };
  const own = run.target || run.model, others = models.data?.data.map((m) => m.id).filter((m) => m !== own) ?? [];
  const field = (name: string, label: string, bounds: { min?: number; max?: number; step?: number }) => <label>{label}<input type="number" {...bounds} placeholder="as recorded" style={{ width: "9rem" }} value={settings[name] ?? ""} onInput={(e) => set({ ...settings, [name]: e.currentTarget.value })} /></label>;
  return <form class="card-box" aria-label="A new run" onSubmit={(e) => void submit(e)}>
    <div class="filters">
      <label>Model<select value={model} onChange={(e) => setModel(e.currentTarget.value)}><option value="">{visible(own)}, as recorded</option>{others.map((m) => <option key={m} value={m}>{visible(m)}</option>)}</select></label>
      {field("temperature", "Temperature", { min: 0, max: 2, step: .1 })}
      <label>Tools<select value={tools} onChange={(e) => setTools(e.currentTarget.value)}><option value="recorded">recorded results, nothing is called</option><option value="live">called again, with their effects</option></select></label>
      <button type="submit" disabled={busy}>{busy ? "Starting…" : "Run again"}</button>
    </div>
    {others.length > 1 && <details><summary class="small">Other models at once{also.length > 0 && ` (${also.length})`}</summary><fieldset class="filters"><legend class="unseen">Other models at once</legend>{others.slice(0, mostModels).map((m) => <label key={m} class="check"><input type="checkbox" checked={also.includes(m)} onChange={(e) => setAlso(e.currentTarget.checked ? [...also, m] : also.filter((o) => o !== m))} /><Seen text={m} /></label>)}</fieldset></details>}
    <details><summary class="small">More settings</summary><div class="filters">{field("max_completion_tokens", "Longest answer, tokens", { min: 1 })}{field("top_p", "Top p", { min: 0, max: 1, step: .05 })}{field("seed", "Seed", {})}
      <label>Reasoning effort<select value={settings.reasoning_effort ?? ""} onChange={(e) => set({ ...settings, reasoning_effort: e.currentTarget.value })}><option value="">as recorded</option>{efforts.map((e) => <option key={e}>{e}</option>)}</select></label></div></details>
    {tools === "live" && <p class="small problem note">Tools that change something change it again. Policy and approvals hold as for any run.</p>}
    {error && <ErrorState error={error} />}
  </form>;
}

function Compare({ left, right: id, sides }: { left: Run; right: string; sides: Sides }) {
  const a = useEvents(left.run_id), b = useEvents(id);
  const over = b.events.some((e) => e.type === "RunFinished");
  const right = useResource<Run>(`api/runs/${enc(id)}`, { every: over ? undefined : 1000 });
  useEffect(() => { if (over) right.reload(); }, [over]);
  const was = useMemo(() => itemsOf(a.events).items, [a.events]), is = useMemo(() => itemsOf(b.events).items, [b.events]), rows = useMemo(() => align(was, is), [was, is]);
  const [all, setAll] = useState(true);
  const changed = rows.filter((r) => !same(r));
  const failed = a.error ?? b.error ?? (right.data ? undefined : right.error);
  if (failed) return <ErrorState error={failed} retry={right.reload} />;
  if (!right.data) return <Loading />;
  const figures = (r: Run) => ({ tokens: r.usage.total_tokens, ms: lasted(r, now()), cost: r.cost, ended: Boolean(r.ended) });
  return <>
    <h2 class="unseen">Conversation</h2>
    <p class="compare-says">{differs(was, is, figures(left), figures(right.data), sides)}</p>
    <div class="compare-bar"><p role="status">{!over && <StateBadge of="running" />} {over && `${changed.length || "None"} of ${count(rows.length, "item")} ${changed.length === 1 ? "differs" : "differ"}.`}</p>
      <label class="small"><input type="checkbox" checked={!all} onChange={(e) => setAll(!e.currentTarget.checked)} /> Only what differs</label></div>
    {rows.length === 0 ? <Empty title="Neither run has a conversation yet." /> : <>{changed.length > 0 && <p class="compare-heads" aria-hidden="true"><b>{head(sides.left)}, <Seen text={left.target || left.model} /></b><b>{head(sides.right)}, <Seen text={right.data.target || right.data.model} /></b></p>}<ol class="compare">{(all ? rows : changed).map((r) => <Pair key={rows.indexOf(r)} row={r} at={rows.indexOf(r) + 1} sides={sides} />)}</ol></>}
  </>;
}

// Runs lists the recorded run and all that repeat it, each beside the recorded one; with two, that run and the other one.
function Runs({ of, shown, two }: { of: Run; shown: string; two?: Run }) {
  const { data, reload } = useResource<RunPage>(query("api/runs", { questions: "true", since: of.started, limit: 200 }));
  const again = two ? [data?.data.find((r) => r.run_id === shown) ?? two] : data?.data.filter((r) => r.replays === of.run_id) ?? [], open = again.some((r) => r.status === "running");
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(reload, 1500);
    return () => clearInterval(timer);
  }, [open]);
  useEffect(() => { if (data) reload(); }, [shown]);
  if (!again.length) return null;
  const recorded = data?.data.find((r) => r.run_id === of.run_id), first = { ...of, answer: recorded?.answer }, all = [first, ...again.toReversed()], cost = all.some((r) => r.cost);
  const beside = (from: number, to: number) => { const by = share(from, to); return by && <span class="soft"> {by}</span>; };
  return <PlainTable label={two ? "Both runs" : "Runs of this conversation"} head={["Run", "Model", "Status", "Answer", "Duration", "Calls", "Tokens", ...cost ? ["Cost"] : []]} ends={[false, false, false, false, true, true, true, true]}>
    {all.map((r) => <tr key={r.run_id} class={r.run_id === shown ? "decides" : ""}><th scope="row">{r === first ? <>{two ? "older" : "recorded"} <Link to={`/runs/${enc(r.run_id)}`} class="small"><Seen text={r.run_id} /></Link></> : <>{two ? "newer " : r.run_id === shown ? "compared " : <><button type="button" class="link" onClick={() => setParams({ with: r.run_id })}>Compare</button> </>}<Link to={`/runs/${enc(r.run_id)}`} class="small"><Seen text={r.run_id} /></Link></>}</th>
      <td><Seen text={r.target || r.model} /></td><td><StateBadge of={ofRun(r)} /> {reasonOf(r)}</td>
      <td class="replay-answer" dir="auto">{r !== first && r.answer && r.answer === first.answer ? <Badge kind="ok">the same</Badge> : <Seen text={r.answer ?? ""} />}</td>
      <td class="num end">{measured(lasted(r, now()))}{r !== first && beside(lasted(of, now()), lasted(r, now()))}</td><td class="num end">{r.tool_calls}</td>
      <td class="num end">{r.usage.total_tokens || !r.ended ? r.usage.total_tokens.toLocaleString() : notReported}{r !== first && beside(of.usage.total_tokens, r.usage.total_tokens)}</td>{cost && <td class="num end">{r.cost ? <>{money(r.cost)}{r !== first && beside(of.cost ?? 0, r.cost)}</> : "not known"}</td>}</tr>)}
  </PlainTable>;
}

const head = (word: string) => word[0]!.toUpperCase() + word.slice(1);

// Pair is one row: what differs is marked on both sides, and what is the same is folded and stands there once.
function Pair({ row, at, sides }: { row: Row; at: number; sides: Sides }) {
  const item = row.left ?? row.right!, left = partsOf(row.left), right = partsOf(row.right), equal = same(row);
  const title = item.kind === "call" ? item.call.name : item.kind === "text" ? [item.role, item.note].filter(Boolean).join(", ") : "note";
  const side = (parts: typeof left, others: typeof left, mine: "gone" | "new") => parts.map((p, i) => {
    const from = mine === "gone" ? p.text : others[i]?.text ?? "", to = mine === "gone" ? others[i]?.text ?? "" : p.text;
    return <div key={i}>{p.label && <h3>{visible(p.label)}</h3>}<pre class="diff" tabIndex={0} role="region" aria-label={`${head(mine === "gone" ? sides.left : sides.right)} ${at}: ${visible(title)}${p.label && `, ${visible(p.label)}`}`}>
      {others.length === 0 ? p.text : wordDiff(from, to).filter(([kind]) => kind === "same" || kind === mine).map(([kind, text], n) => kind === "same" ? text : mine === "gone" ? <del key={n}>{text}</del> : <ins key={n}>{text}</ins>)}</pre></div>;
  });
  const name = <b class={item.kind === "call" ? "mono" : ""}><Seen text={title} /></b>;
  if (equal) return <li class="compare-row"><details><summary>{name} <Badge>the same</Badge> <span class="soft small compare-line" dir="auto"><Seen text={item.kind === "call" ? inOneLine(item.call.args || "{}") : unmarked(item.text.slice(0, 300))} /></span></summary><div class="compare-side">{side(left, right, "gone")}</div></details></li>;
  return <li class="compare-row changed">
    <div class="run-who">{name}{!row.left ? <Badge kind="wait">only in the {sides.right} run</Badge> : !row.right ? <Badge kind="wait">only in the {sides.left} run</Badge> : <Badge kind="wait">differs</Badge>}</div>
    <div class="compare-side">{row.left ? side(left, right, "gone") : <p class="soft small">nothing here</p>}</div>
    <div class="compare-side">{row.right ? side(right, left, "new") : <p class="soft small">nothing here</p>}</div>
  </li>;
}
