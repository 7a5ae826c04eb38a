// The rules of the policy with the lines that they are from, and which of them decides a call. Nothing is called.

import { useEffect, useState } from "preact/hooks";
import { send } from "../api";
import { announce, Badge, ErrorState, Link, Loading, PageHeader, PlainTable, Seen } from "../components/basics";
import { keyOf, rulesIn, type Rule, type Setting } from "../policy";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { initial, text } from "../schema";
import { visible } from "../text/visible";
import { verdict, type Tool } from "./tools";

interface Finding { rule: string; decision: string; matched: boolean; decides: boolean; source?: string; why?: string }
interface Explanation { tool: string; decision: string; rule: string; reason?: string; rules: Finding[] }

// Where leads to the setting of a rule; its text is the line of the file.
const Where = ({ rule, source }: { rule?: Rule; source: string }) => !source ? null
  : <Link to={`/settings?q=${encodeURIComponent(source)}`}>{rule && rule.origin !== "default" ? <Seen text={rule.origin} /> : rule ? "default" : <Seen text={source} />}</Link>;

// argumentsOf are those with which a call of a tool begins: its required arguments, empty.
const argumentsOf = (tool?: Tool) => tool ? text(initial(tool.parameters, tool.parameters)) : "{}";

export default function Policy() {
  const tools = useResource<{ data: Tool[] }>("api/tools");
  const config = useResource<{ data: Setting[] }>("api/config");
  const tool = param("tool") || tools.data?.data[0]?.name || "", named = param("rule");
  const [args, setArgs] = useState("{}");
  const [used, setUsed] = useState("");
  const [principal, setPrincipal] = useState("");
  const [got, setGot] = useState<Explanation>();
  const [error, setError] = useState<Error>();
  const explain = async (args: string, quiet = false) => {
    setError(undefined);
    try { JSON.parse(args); } catch (wrong) { return setError(new Error(`The arguments are not valid JSON: ${(wrong as Error).message}`)); }
    const names = used.split(/[\s,]+/).filter(Boolean);
    try {
      const out = await send<Explanation>("POST", "api/policy/explain", `{"tool":${JSON.stringify(tool)},"arguments":${args}${names.length ? `,"used":${JSON.stringify(names)}` : ""}${principal ? `,"principal":${JSON.stringify(principal)}` : ""}}`);
      setGot(out);
      if (!quiet) announce(`${out.decision}, by rule ${out.rule}.`);
    } catch (wrong) { setError(wrong as Error); }
  };
  useEffect(() => { // a tool that is chosen is explained at once, with empty arguments
    setGot(undefined);
    if (!tool || !tools.data) return;
    const start = argumentsOf(tools.data.data.find((t) => t.name === tool));
    setArgs(start);
    void explain(start, true);
  }, [tool, tools.data !== undefined]);
  const rules = config.data && rulesIn(config.data.data), effect = tools.data?.data.find((t) => t.name === tool)?.effect.replace("undeclared", "writes");
  const means = (r: Rule) => named !== "" && r.rule === named && (!r.tool || r.tool === tool || !r.key.startsWith("policy.tools."));
  const decides = got?.rules.find((r) => r.decides), deciding = decides && rules?.find((r) => r.key === keyOf(decides.rule, decides.source));
  return <div class="page">
    <PageHeader title="Policy" note="The rules in force, and which of them decides about a call. Nothing is called." />
    {tools.error && !tools.data && <ErrorState error={tools.error} retry={tools.reload} />}
    <div class="policy-halves">
      <form class="card-box" aria-label="A call" onSubmit={(e) => { e.preventDefault(); void explain(args); }}>
        <div class="form-field"><label for="policy-tool">Tool</label><select id="policy-tool" value={tool} onChange={(e) => setParams({ tool: e.currentTarget.value })}>{tools.data?.data.map((t) => <option key={t.name} value={t.name}>{visible(t.name)}</option>)}</select></div>
        <div class="form-field"><label for="policy-args">Arguments</label><textarea id="policy-args" class="mono" rows={3} spellcheck={false} value={args} onInput={(e) => setArgs(e.currentTarget.value)} /></div>
        <details><summary class="small">The run that makes the call</summary><div class="stack">
          <div class="form-field"><label for="policy-used">Tools that it has used before</label><input id="policy-used" autocomplete="off" placeholder="none" value={used} onInput={(e) => setUsed(e.currentTarget.value)} /></div>
          <div class="form-field"><label for="policy-principal">Its key</label><input id="policy-principal" autocomplete="off" placeholder="your own" value={principal} onInput={(e) => setPrincipal(e.currentTarget.value)} /></div></div></details>
        <div class="answers"><button type="submit" disabled={!tool}>Explain</button></div>
      </form>
      <div class="stack">
        {error && <ErrorState error={error} />}
        {got && <section class="card-box policy-verdict" aria-labelledby="policy-h"><h2 id="policy-h"><Badge kind={verdict[got.decision] ?? ""}>{got.decision}</Badge> <Seen text={got.tool} /></h2>
          <dl class="facts"><dt>Decided by</dt><dd>rule <b><Seen text={got.rule} /></b>{deciding && <>, for <Seen text={deciding.applies} /></>} {decides && <Where rule={deciding} source={keyOf(decides.rule, decides.source)} />}</dd>
            <dt>Because</dt><dd><Seen text={got.reason || decides?.why || "it applies, and no stricter rule does"} /></dd>
            <dt>Also apply</dt><dd><Seen text={got.rules.filter((r) => r.matched && !r.decides).map((r) => `${r.rule} (${r.decision})`).join(", ") || "no other rules"} /></dd></dl>
        </section>}
        {!got && !error && <Loading />}
      </div>
    </div>
    <section class="stack" aria-labelledby="rules-h"><h2 id="rules-h">Rules in force</h2>
      {rules ? <Rules rules={rules} got={got} effect={effect} means={means} /> : config.error ? <><p class="soft">Only admin keys can list all rules. These are the ones that were looked at for the call.</p>
        {got && <PlainTable label="Rules for this call" head={["Rule", "Decision", "This call"]}>{got.rules.map((r, i) => <tr key={i} class={r.decides ? "decides" : ""}><th scope="row"><Seen text={r.rule} /></th><td><Badge kind={verdict[r.decision] ?? ""}>{r.decision}</Badge></td><td>{saysOf(r)}</td></tr>)}</PlainTable>}</> : <Loading />}
    </section>
  </div>;
}

// saysOf says whether a rule applies to the call. Without a finding the policy did not evaluate the rule; why is the reason.
const saysOf = (r?: Finding, why = "") => !r ? <span class="soft">{why}</span> : r.decides ? <Badge kind="run">decides</Badge> : r.matched ? "applies" : <span class="soft">no{r.why && <>: <Seen text={r.why} /></>}</span>;

function Rules({ rules, got, effect, means }: { rules: Rule[]; got?: Explanation; effect?: string; means: (r: Rule) => boolean }) {
  const conditions = rules.some((r) => r.when), findingOf = (r: Rule) => got?.rules.find((f) => keyOf(f.rule, f.source) === r.key);
  const unasked = (r: Rule) => r.rule.startsWith("effect.") && r.rule !== `effect.${effect}` ? "no: the tool has another effect" : "not evaluated: another rule decides";
  return <><p class="soft small">The strictest rule that applies decides. If none does, the decision for the effect of the tool holds. The guards at the end can make a decision stricter.</p>
    <PlainTable label="Rules and their lines" head={["Rule", "Applies to", ...(conditions ? ["Condition"] : []), "Decision", "This call", "From"]}>{rules.map((r) => { const f = findingOf(r); return <tr key={r.key} class={f?.decides || means(r) ? "decides" : ""}>
      <th scope="row"><Seen text={r.rule} />{means(r) && <> <Badge kind="run">decided</Badge></>}</th><td><Seen text={r.applies} /></td>{conditions && <td class="mono"><Seen text={r.when} /></td>}<td><Badge kind={verdict[r.decision] ?? ""}>{r.decision}</Badge></td><td class="policy-call">{saysOf(f, got ? unasked(r) : "…")}</td><td class="policy-from"><Where rule={r} source={r.key} /></td></tr>; })}</PlainTable></>;
}
