// The configuration in force, and where each value comes from.

import { isGone } from "../api";
import { Empty, ErrorState, Loading, PageHeader, Seen } from "../components/basics";
import { DataTable, type Column } from "../components/DataTable";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { visible } from "../text/visible";

interface Setting { key: string; value: string; origin: string }

const columns: Column<Setting>[] = [
  { key: "key", title: "Key", cell: (s) => <Seen text={s.key} />, width: "minmax(9rem, 1.4fr)" },
  { key: "value", title: "Value", cell: (s) => <span title={visible(s.value)}><Seen text={s.value} /></span>, phone: true },
  { key: "origin", title: "From", cell: (s) => <Seen text={s.origin} />, width: "minmax(5rem, .8fr)" },
];

// rank puts what is set first, then what a section that is set leaves out, then the defaults.
const rank = (s: Setting) => s.origin === "default" ? 2 : s.value === "" ? 1 : 0;

export default function Settings() {
  const { data, error, reload } = useResource<{ data: Setting[] }>("api/config");
  const text = param("q").toLowerCase(), set = param("set") === "yes";
  const rows = data?.data.filter((s) => (!text || `${s.key} ${s.value}`.toLowerCase().includes(text)) && (!set || s.origin !== "default")).toSorted((a, b) => rank(a) - rank(b));
  return <div class="page fill">
    <PageHeader title="Settings" note="The configuration in force, what is set first. Secrets are shown as references. Change lathe.yaml and send SIGHUP, or start again." />
    <div class="filters"><label>Search<input type="search" value={param("q")} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
      <label>Show<select value={set ? "yes" : ""} onChange={(e) => setParams({ set: e.currentTarget.value })}><option value="">all settings</option><option value="yes">those that are set</option></select></label></div>
    {error && !data && (isGone(error) ? <Empty title="This gateway does not show its configuration." /> : <ErrorState error={error} retry={reload} />)}
    {!data && !error && <Loading />}
    {rows && <DataTable label="Settings" columns={columns} rows={rows} rowKey={(s) => s.key} empty={<Empty title="No setting fits." />} />}
  </div>;
}
