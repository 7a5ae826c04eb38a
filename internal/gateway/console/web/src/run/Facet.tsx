// A filter of the list of runs whose values are listed with the number of runs that have them.

import { useState } from "preact/hooks";
import { query } from "../api";
import { Time } from "../components/basics";
import { Drop } from "../components/Drop";
import { Icon } from "../components/Icon";
import { Picker } from "../components/Picker";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { visible } from "../text/visible";

interface Row { name?: string; runs?: number }
interface Counts { statuses: Row[]; models: Row[]; tools: Row[]; keys: Row[]; reasons: Row[]; complete_since?: string }

// lists are the members of the statistics that count the values of a filter.
const lists = { status: "statuses", model: "models", tool: "tools", principal: "keys", reason: "reasons" } as const;

export interface Span { since?: string; until?: string; session_id?: string }
interface Props { name: keyof typeof lists; label: string; known: string[]; only?: boolean; nameOf?: (value: string) => string; time: Span }

// Facet shows the chosen value, and opens the list. known are values that are listed even if no run is counted; with only, there are no others.
export function Facet(props: Props) {
  const { name, label, nameOf = visible } = props, value = param(name), face = value ? nameOf(value) : "any";
  return <div class="facet"><span aria-hidden="true">{label}</span><Drop label={`${label}: ${face}`} kind="dialog" class={`quiet${value ? " set" : ""}`} face={<><span class="pick-name">{face}</span><Icon name="down" /></>}
    content={(close) => <List {...props} value={value} take={(to) => { close(); setParams({ [name]: to }); }} />} /></div>;
}

// List counts when it is opened: the runs of the chosen time, without the other filters.
function List({ name, label, known, only, nameOf = visible, time, value, take }: Props & { value: string; take: (value: string) => void }) {
  const [text, setText] = useState(""), want = text.trim();
  const { data, error } = useResource<Counts>(query("api/stats", { since: time.since || "1970-01-02", until: time.until ?? "", session_id: time.session_id ?? "", buckets: 1 }));
  const runs = new Map(data?.[lists[name]].flatMap((r) => r.name && r.runs ? [[r.name, r.runs]] : []));
  const names = [...new Set([...runs.keys(), ...known, ...value ? [value] : []])].filter((n) => !only || known.includes(n)).toSorted((a, b) => (runs.get(b) ?? 0) - (runs.get(a) ?? 0));
  const found = names.filter((n) => `${n} ${nameOf(n)}`.toLowerCase().includes(want.toLowerCase())).map((n) => ({ key: n, face: <><span class="pick-name">{nameOf(n)}</span><span class="soft small num">{data ? (runs.get(n) ?? 0).toLocaleString() : error ? "" : "…"}</span></> }));
  if (!want) found.unshift({ key: "", face: <><span class="pick-name">any</span><span /></> });
  if (want && !only && !names.includes(want)) found.push({ key: want, face: <><span class="pick-name">{visible(want)}</span><span class="soft small">as typed</span></> });
  return <><Picker label={`Find a ${label.toLowerCase()}`} text={text} setText={setText} found={found} chosen={value} take={(f) => take(f.key)} />
    <p class="facet-note soft small">{error ? "The gateway could not count the runs." : <>Runs of the chosen time, without the other filters{data?.complete_since && <>, counted since <Time at={data.complete_since} exact /></>}.</>}</p></>;
}
