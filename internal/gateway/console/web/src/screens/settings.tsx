// The configuration in force: where each value comes from, what it means, and what a change of it needs.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isGone, send } from "../api";
import { announce, Badge, Copy, Dialog, Empty, ErrorState, Link, Loading, PageHeader, Seen } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { useResource } from "../resource";
import { param, place, setParams } from "../router";
import { count } from "../text/format";
import { visible } from "../text/visible";

interface Setting { key: string; value: string; origin: string; about?: string; default?: string; restart?: boolean }

// A Row is the heading of a group, or a setting. Of settings with the same description the first has it.
type Row = { group: string; of?: undefined } | { group: string; of: Setting; about?: string };

const cell = (show: (s: Setting) => ComponentChildren) => (r: Row) => r.of && show(r.of);
const columns: Column<Row>[] = [
  { key: "key", title: "Setting", cell: (r) => r.of && <span class="runs-said"><span class="mono" title={visible(r.of.key)}>{r.group && <span class="unseen">{visible(r.group)}.</span>}<Seen text={r.group ? r.of.key.slice(r.group.length + 1) : r.of.key} /></span>{r.about && <span class="soft runs-at" title={visible(r.about)}>{visible(firstSentence(r.about))}</span>}</span>, width: "minmax(9rem, 2fr)" },
  { key: "value", title: "Value", cell: cell((s) => s.value ? <span title={visible(s.value)}><Seen text={s.value} /></span> : <span class="soft">none</span>), phone: 2 },
  { key: "origin", title: "From", cell: cell((s) => <Where of={s} />), width: "minmax(5rem, .8fr)", phone: 2 },
  { key: "change", title: "A change needs", cell: cell(needs), width: "9rem" },
];

// groupsOf returns what begins the keys of each model, MCP server and key: each has a setting that tells its name.
const groupsOf = (all: Setting[]) => all.flatMap((s) => /^((?:models|tools\.mcp|keys)\..+)\.(?:provider|allowlist|sha256)$/.exec(s.key)?.[1] ?? []).sort((a, b) => b.length - a.length);

// rowsOf returns settings in groups, each below its heading, in the order of their first settings. A setting without a section has no heading and comes first.
function rowsOf(settings: Setting[], groups: string[]): Row[] {
  const of = new Map<string, Setting[]>([["", []]]), said = new Set<string>();
  for (const s of settings) {
    const group = groups.find((g) => s.key.startsWith(`${g}.`)) ?? (s.key.includes(".") ? sectionOf(s) : "");
    of.set(group, [...of.get(group) ?? [], s]);
  }
  return [...of].flatMap(([group, list]): Row[] => [...group ? [{ group }] : [], ...list.map((s): Row => {
    const about = s.about && !said.has(s.about) ? s.about : undefined;
    if (about) said.add(about);
    return { group, of: s, about };
  })]);
}

// firstSentence is the beginning of what the documentation says of a setting, without the marks of code.
const firstSentence = (text: string) => text.replaceAll("`", "").replace(/\. .*$/s, ".");

// originOf is the kind of place where a setting was set.
const originOf = (s: Setting) => s.origin.replace(/:\d+$/, "");

function needs(s: Setting) { return s.restart ? <Badge kind="wait">a restart</Badge> : <span class="soft">a reload</span>; }

// settingAt is the address of the screen with a setting chosen; the filters stay.
function settingAt(s: Setting): string {
  const query = new URLSearchParams(place.value.query);
  query.set("key", s.key);
  return `/settings?${query}`;
}

// Where leads to a setting. Its text is the line of the file.
const Where = ({ of: s }: { of: Setting }) => /:\d+$/.test(s.origin) ? <Link class="policy-link" to={settingAt(s)}><Seen text={s.origin} /></Link> : <Seen text={s.origin} />;

// sectionOf is the first part of a key, such as models.
const sectionOf = (s: Setting) => s.key.split(".")[0]!;

// Detail says what a setting means.
function Detail({ of: s }: { of: Setting }) {
  return <aside class="card-box" aria-label={`Setting ${visible(s.key)}`}><div class="approval-head"><h2 class="mono"><Seen text={s.key} /></h2><button type="button" class="quiet small" onClick={() => setParams({ key: "" })}>Close</button></div>
    {s.about && <p><Prose text={s.about} /></p>}
    <dl class="facts"><dt>Value</dt><dd class="mono server-target">{s.value ? <><Seen text={s.value} /> <Copy icon text={s.value} label="Copy the value" /></> : <span class="soft">none</span>}</dd>
      <dt>From</dt><dd><Seen text={s.origin} /></dd>{s.default !== undefined && <><dt>Default</dt><dd class="mono"><Seen text={s.default} /></dd></>}
      <dt>A change needs</dt><dd>{needs(s)}{s.restart ? <span class="soft"> of the gateway</span> : <span class="soft"> of lathe.yaml</span>}</dd></dl></aside>;
}

// Prose shows a sentence of the documentation, with what it quotes as code.
const Prose = ({ text }: { text: string }) => <>{text.split("`").map((part, i) => i % 2 ? <code key={i}>{visible(part)}</code> : visible(part))}</>;

// rank puts what is set first, then what a section that is set leaves out, then the defaults.
const rank = (s: Setting) => s.origin === "default" ? 2 : s.value === "" ? 1 : 0;

// Reload has the gateway read lathe.yaml again, and says what came of it.
function Reload({ done }: { done: () => void }) {
  const [error, setError] = useState<Error>(), [said, set] = useState<string[]>(), [busy, setBusy] = useState(false);
  const again = async () => {
    setError(undefined);
    setBusy(true);
    try {
      set((await send<{ warnings?: string[] }>("POST", "api/reload")).warnings ?? []);
      announce("The configuration is reloaded.");
      done();
    } catch (e) {
      set(undefined);
      setError(e as Error);
    }
    setBusy(false);
  };
  return <>{said && <span role="status"><Badge kind={said.length ? "wait" : "ok"}>reloaded{said.length > 0 && `, ${count(said.length, "warning")}`}</Badge></span>}<button type="button" class="quiet" disabled={busy} onClick={() => void again()}>{busy ? "Reloading…" : "Reload lathe.yaml"}</button>
    {(error || said && said.length > 0) && <Dialog title={error ? "The configuration was not reloaded" : "Reloaded, with warnings"} close={() => { setError(undefined); set(undefined); }}>{error ? <ErrorState error={error} /> : <ul class="next">{said!.map((s) => <li key={s}><Seen text={s} /></li>)}</ul>}</Dialog>}</>;
}

export default function Settings() {
  const { data, error, reload } = useResource<{ data: Setting[] }>("api/config");
  const text = param("q").toLowerCase(), section = param("section"), chosen = param("key"), all = param("show") === "all", origin = param("from");
  const changed = data?.data.filter((s) => s.origin !== "default").length ?? 0, defaults = (data?.data.length ?? 0) - changed;
  const countOf = (name: (s: Setting) => string, value: string) => data?.data.filter((s) => (all || s.origin !== "default") && name(s) === value).length ?? 0;
  const origins = [...new Set(data?.data.map(originOf))].sort();
  const sections = [...new Set(data?.data.map(sectionOf))].sort();
  const fits = data?.data.filter((s) => (!section || sectionOf(s) === section) && (!origin || originOf(s) === origin) && (!text || `${s.key} ${s.value} ${s.about ?? ""}`.toLowerCase().includes(text)));
  const set = fits?.filter((s) => all || s.origin !== "default"), folded = !all && (!text && !section || Boolean(set?.length)); // a search or a section with defaults only shows them
  const shown = (folded ? set : fits)?.toSorted((a, b) => rank(a) - rank(b)), rows = shown && rowsOf(shown, groupsOf(data!.data));
  const one = data?.data.find((s) => s.key === chosen);
  return <div class="page fill">
    <PageHeader title="Settings" note={error && !data ? undefined : "The configuration in force, secrets as references. Change it in lathe.yaml: a reload applies it, unless a setting needs a restart."}>{data && <Reload done={reload} />}</PageHeader>
    {error && !data && (isGone(error) ? <Empty title="This gateway does not show its configuration." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {rows && <><div class="filters"><label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
      <label>Section<select value={section} onChange={(e) => setParams({ section: e.currentTarget.value })}><option value="">any</option>{sections.map((k) => <option key={k} value={k}>{visible(k)} ({countOf(sectionOf, k)})</option>)}</select></label>
      {origins.length > 2 && <label>From<select value={origin} onChange={(e) => setParams({ from: e.currentTarget.value })}><option value="">anywhere</option>{origins.filter((o) => all || o !== "default").map((o) => <option key={o} value={o}>{visible(o)} ({countOf(originOf, o)})</option>)}</select></label>}
      <label>Show<select value={all ? "all" : ""} onChange={(e) => setParams({ show: e.currentTarget.value })}><option value="">changed only ({changed})</option><option value="all">all settings ({changed + defaults})</option></select></label>
      {folded && <p class="soft small filters-note">{count(fits!.length - set!.length, "default")} not shown</p>}</div>
    <div class={`split${one ? " chosen" : ""}`}><DataTable label="Settings" columns={one || !rows.some((r) => r.of?.restart) ? columns.filter((c) => c.key !== "change") : columns} rows={rows} rowHeight={46} lines={52} rowKey={(r) => r.of?.key ?? `${r.group}.`} heading={(r) => r.of ? undefined : visible(r.group)} to={(r) => r.of ? settingAt(r.of) : ""} chosen={chosen} empty={<Empty title={text ? "No setting fits." : "Nothing is set: all settings have their defaults."} />} />{one && <Detail of={one} />}</div></>}
  </div>;
}
