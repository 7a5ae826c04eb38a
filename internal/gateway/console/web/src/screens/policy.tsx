// The rules of the policy with the lines that they are from, and which of them decides a call. Nothing is called.

import { useEffect, useState } from "preact/hooks";
import { send } from "../api";
import { announce, Badge, ErrorState, Link, PageHeader, PlainTable, Seen } from "../components/basics";
import { keyOf, rulesIn, type Rule, type Setting } from "../policy";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { verdict, type Tool } from "./tools";

interface Finding { rule: string; decision: string; matched: boolean; decides: boolean; source?: string; why?: string }
interface Explanation { tool: string; decision: string; rule: string; reason?: string; rules: Finding[] }

// Where leads to the setting of a rule; its text is the line of the file.
const Where = ({ rule, source }: { rule?: Rule; source: string }) => !source ? null
  : <Link to={`/settings?q=${encodeURIComponent(source)}`}>{rule && rule.origin !== "default" ? <Seen text={rule.origin} /> : rule ? "default" : <Seen text={source} />}</Link>;

export default function Policy() {
  const tools = useResource<{ data: Tool[] }>("api/tools");
  const config = useResource<{ data: Setting[] }>("api/config");
  const tool = param("tool") || tools.data?.data[0]?.name || "", named = param("rule");
  const [args, setArgs] = useState("{}");
  const [used, setUsed] = useState("");
  const [principal, setPrincipal] = useState("");
  const [got, setGot] = useState<Explanation>();
  const [error, setError] = useState<Error>();
  useEffect(() => setGot(undefined), [tool]);
  const submit = async (e: Event) => {
    e.preventDefault();
    setError(undefined);
    setGot(undefined);
    try { JSON.parse(args); } catch (wrong) { return setError(new Error(`The arguments are not valid JSON: ${(wrong as Error).message}`)); }
    const names = used.split(/[\s,]+/).filter(Boolean);
    try {
      const out = await send<Explanation>("POST", "api/policy/explain", `{"tool":${JSON.stringify(tool)},"arguments":${args}${names.length ? `,"used":${JSON.stringify(names)}` : ""}${principal ? `,"principal":${JSON.stringify(principal)}` : ""}}`);
      setGot(out);
      announce(`${out.decision}, by rule ${out.rule}.`);
    } catch (wrong) { setError(wrong as Error); }
  };
  const rules = config.data && rulesIn(config.data.data), of = (source: string) => rules?.find((r) => r.key === source);
  const means = (r: Rule) => named !== "" && r.rule === named && (!r.tool || r.tool === tool || !r.key.startsWith("policy.tools."));
  const conditions = rules?.some((r) => r.when);
  return <div class="page">
    <PageHeader title="Policy" note="The rules in force, and which of them decides a call. Nothing is called." />
    {tools.error && !tools.data && <ErrorState error={tools.error} retry={tools.reload} />}
    <div class="policy-halves">
      <form class="card-box" aria-label="A call" onSubmit={(e) => void submit(e)}>
        <div class="form-field"><label for="policy-tool">Tool</label><select id="policy-tool" value={tool} onChange={(e) => setParams({ tool: e.currentTarget.value })}>{tools.data?.data.map((t) => <option key={t.name} value={t.name}>{t.name}</option>)}</select></div>
        <div class="form-field"><label for="policy-args">Arguments</label><textarea id="policy-args" class="mono" rows={4} spellcheck={false} value={args} onInput={(e) => setArgs(e.currentTarget.value)} /></div>
        <div class="form-field"><label for="policy-used">Tools that the run has used before</label><input id="policy-used" autocomplete="off" value={used} onInput={(e) => setUsed(e.currentTarget.value)} /></div>
        <div class="form-field"><label for="policy-principal">For the key</label><input id="policy-principal" autocomplete="off" placeholder="your own" value={principal} onInput={(e) => setPrincipal(e.currentTarget.value)} /></div>
        <div class="answers"><button type="submit" disabled={!tool}>Explain</button></div>
      </form>
      <div class="stack">
        {error && <ErrorState error={error} />}
        {got && <section class="stack" aria-labelledby="policy-h"><h2 id="policy-h"><Badge kind={verdict[got.decision] ?? ""}>{got.decision}</Badge> by rule <Seen text={got.rule} /></h2>
          {got.reason && <p class="soft"><Seen text={got.reason} /></p>}
          <PlainTable label="Rules for this call" head={["Rule", "Decision", "Applies", "Why", "From"]}>{got.rules.map((r, i) => { const source = keyOf(r.rule, r.source), rule = of(source); return <tr key={i} class={r.decides ? "decides" : ""}>
            <th scope="row"><Seen text={rule?.label ?? r.rule} />{r.decides && <> <Badge kind="run">decides</Badge></>}</th><td>{r.decision}</td><td>{r.matched ? "yes" : "no"}</td><td><Seen text={r.why || "it applies"} /></td><td><Where rule={rule} source={source} /></td></tr>; })}</PlainTable>
        </section>}
        {!got && !error && <p class="soft">Choose a tool, enter arguments, and press Explain: each rule says whether it applies to the call.</p>}
      </div>
    </div>
    <section class="stack" aria-labelledby="rules-h"><h2 id="rules-h">Rules in force</h2>
      {config.error && <p class="soft">Only admin keys can list the rules. Explain names those that apply to a call.</p>}
      {rules && <><p class="soft small">The strictest rule that applies decides. If none does, the decision for the effect of the tool holds. The guards below can make a decision stricter.</p>
        <PlainTable label="Rules and their lines" head={["Rule", "Decision", "Applies to", ...(conditions ? ["Condition"] : []), "From"]}>{rules.map((r) => <tr key={r.key} class={means(r) ? "decides" : ""}>
          <th scope="row"><Seen text={r.label} />{means(r) && <> <Badge kind="run">decided</Badge></>}</th><td><Badge kind={verdict[r.decision] ?? ""}>{r.decision}</Badge></td><td><Seen text={r.applies} /></td>{conditions && <td class="mono"><Seen text={r.when} /></td>}<td><Where rule={r} source={r.key} /></td></tr>)}</PlainTable></>}
    </section>
  </div>;
}
