// Which rules fit a call and which one decides. Nothing is called.

import { useState } from "preact/hooks";
import { send } from "../api";
import { announce, Badge, ErrorState, PageHeader, PlainTable, Seen } from "../components/basics";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { verdict, type Tool } from "./tools";

interface Explanation { tool: string; decision: string; rule: string; reason?: string; rules: { rule: string; decision: string; matched: boolean; decides: boolean; why?: string }[] }

export default function Policy() {
  const tools = useResource<{ data: Tool[] }>("api/tools");
  const tool = param("tool") || tools.data?.data[0]?.name || "";
  const [args, setArgs] = useState("{}");
  const [used, setUsed] = useState("");
  const [principal, setPrincipal] = useState("");
  const [got, setGot] = useState<Explanation>();
  const [error, setError] = useState<Error>();
  const submit = async (e: Event) => {
    e.preventDefault();
    setError(undefined);
    setGot(undefined);
    try { JSON.parse(args); } catch (wrong) { return setError(new Error(`The arguments are no JSON: ${(wrong as Error).message}`)); }
    const names = used.split(/[\s,]+/).filter(Boolean);
    try {
      const out = await send<Explanation>("POST", "api/policy/explain", `{"tool":${JSON.stringify(tool)},"arguments":${args}${names.length ? `,"used":${JSON.stringify(names)}` : ""}${principal ? `,"principal":${JSON.stringify(principal)}` : ""}}`);
      setGot(out);
      announce(`${out.decision}, by rule ${out.rule}.`);
    } catch (wrong) { setError(wrong as Error); }
  };
  return <div class="page">
    <PageHeader title="Policy" note="Ask what policy makes of a call: nothing is called." />
    {tools.error && !tools.data && <ErrorState error={tools.error} retry={tools.reload} />}
    <form class="card-box" onSubmit={(e) => void submit(e)}>
      <div class="form-field"><label for="policy-tool">Tool</label><select id="policy-tool" value={tool} onChange={(e) => setParams({ tool: e.currentTarget.value })}>{tools.data?.data.map((t) => <option key={t.name} value={t.name}>{t.name}</option>)}</select></div>
      <div class="form-field"><label for="policy-args">Arguments</label><textarea id="policy-args" class="mono" rows={4} spellcheck={false} value={args} onInput={(e) => setArgs(e.currentTarget.value)} /></div>
      <div class="form-field"><label for="policy-used">Tools that the run has used before</label><input id="policy-used" autocomplete="off" value={used} onInput={(e) => setUsed(e.currentTarget.value)} /></div>
      <div class="form-field"><label for="policy-principal">For the key</label><input id="policy-principal" autocomplete="off" placeholder="your own" value={principal} onInput={(e) => setPrincipal(e.currentTarget.value)} /></div>
      <div class="answers"><button type="submit" disabled={!tool}>Explain</button></div>
    </form>
    {error && <ErrorState error={error} />}
    {got && <section class="stack" aria-labelledby="policy-h"><h2 id="policy-h"><Badge kind={verdict[got.decision] ?? ""}>{got.decision}</Badge> by rule <Seen text={got.rule} /></h2>
      {got.reason && <p class="soft"><Seen text={got.reason} /></p>}
      <PlainTable label="Rules" head={["Rule", "Decision", "Fits", "Why"]}>{got.rules.map((r, i) => <tr key={i} class={r.decides ? "decides" : ""}><th scope="row"><Seen text={r.rule} />{r.decides && <> <Badge kind="run">decides</Badge></>}</th><td>{r.decision}</td><td>{r.matched ? "yes" : "no"}</td><td><Seen text={r.why || "it fits"} /></td></tr>)}</PlainTable>
    </section>}
  </div>;
}
