// The rules of the policy with the lines that they are from, which of them decides a call, and what holds for each tool. Nothing is called.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { send } from "../api";
import { ArgumentsForm, useArguments, type Arguments } from "../components/ArgumentsForm";
import { announce, Badge, ErrorState, Link, Loading, PageHeader, PlainTable, Seen } from "../components/basics";
import { keyOf, rulesIn, type Rule, type Setting } from "../policy";
import { useResource } from "../resource";
import { param, setParams } from "../router";
import { effectOf } from "../state";
import { count } from "../text/format";
import { visible } from "../text/visible";
import { verdict, type Tool } from "./tools";

interface Finding { rule: string; decision: string; matched: boolean; decides: boolean; source?: string; why?: string }
interface Explanation { tool: string; decision: string; rule: string; reason?: string; rules: Finding[] }

// Where leads to the setting of a rule; its text is the line of the file.
const Where = ({ rule, source }: { rule?: Rule; source: string }) => !source ? null
  : <Link to={`/settings?q=${encodeURIComponent(source)}`}>{rule && rule.origin !== "default" ? <Seen text={rule.origin} /> : rule ? "default" : <Seen text={source} />}</Link>;

export default function Policy() {
  const tools = useResource<{ data: Tool[] }>("api/tools");
  const config = useResource<{ data: Setting[] }>("api/config");
  const keys = useResource<{ data: { name: string }[] }>("api/keys");
  const tool = param("tool") || tools.data?.data[0]?.name || "", named = param("rule");
  const [used, setUsed] = useState("");
  const [principal, setPrincipal] = useState("");
  const [got, setGot] = useState<Explanation>();
  const [error, setError] = useState<Error>();
  const explain = async (args: string, quiet = false) => {
    setError(undefined);
    const names = used.split(/[\s,]+/).filter(Boolean);
    try {
      const out = await send<Explanation>("POST", "api/policy/explain", `{"tool":${JSON.stringify(tool)},"arguments":${args}${names.length ? `,"used":${JSON.stringify(names)}` : ""}${principal ? `,"principal":${JSON.stringify(principal)}` : ""}}`);
      setGot(out);
      if (!quiet) announce(`${out.decision}, by rule ${out.rule}.`);
    } catch (wrong) { setError(wrong as Error); }
  };
  useEffect(() => { setGot(undefined); }, [tool]);
  const one = tools.data?.data.find((t) => t.name === tool);
  const rules = config.data && rulesIn(config.data.data), effect = one?.effect.replace("undeclared", "writes");
  const means = (r: Rule) => named !== "" && r.rule === named && (!r.tool || r.tool === tool || !r.key.startsWith("policy.tools."));
  const decides = got?.rules.find((r) => r.decides), deciding = decides && rules?.find((r) => r.key === keyOf(decides.rule, decides.source));
  return <div class="page">
    <PageHeader title="Policy" note="The rules in force, and which of them decides about a call. Nothing is called." />
    {tools.error && !tools.data && <ErrorState error={tools.error} retry={tools.reload} />}
    <div class="policy-halves">
      <div class="card-box">
        <div class="form-field"><label for="policy-tool">Tool</label><select id="policy-tool" value={tool} onChange={(e) => setParams({ tool: e.currentTarget.value })}>{tools.data?.data.map((t) => <option key={t.name} value={t.name}>{visible(t.name)}</option>)}</select></div>
        {tools.data && <Call key={one?.name} tool={one} explain={explain} fail={setError}>
          <details><summary class="small">The run that makes the call</summary><div class="stack">
            <div class="form-field"><label for="policy-used">Tools that it has used before</label><input id="policy-used" autocomplete="off" placeholder="none" value={used} onInput={(e) => setUsed(e.currentTarget.value)} /></div>
            <div class="form-field"><label for="policy-principal">Its key</label><input id="policy-principal" autocomplete="off" placeholder="your own" list="policy-keys" value={principal} onInput={(e) => setPrincipal(e.currentTarget.value)} />
              <datalist id="policy-keys">{keys.data?.data.map((k) => <option key={k.name} value={k.name} />)}</datalist></div></div></details></Call>}
      </div>
      <div class="stack">
        {error && <ErrorState error={error} />}
        {got && <section class="card-box policy-verdict" aria-labelledby="policy-h"><h2 id="policy-h"><Badge kind={verdict[got.decision] ?? ""}>{got.decision}</Badge> <Seen text={got.tool} /></h2>
          <dl class="facts"><dt>Decided by</dt><dd>rule <b><Seen text={got.rule} /></b>{deciding && <>, for <Seen text={deciding.applies} /></>} {decides && <Where rule={deciding} source={keyOf(decides.rule, decides.source)} />}</dd>
            <dt>Because</dt><dd><Seen text={got.reason || decides?.why || "it applies, and no stricter rule does"} /></dd>
            <dt>Also apply</dt><dd><Seen text={got.rules.filter((r) => r.matched && !r.decides).map((r) => `${r.rule} (${r.decision})`).join(", ") || "no other rules"} /></dd></dl>
        </section>}
        {!got && !error && <Loading />}
        {tools.data && <Overview tools={tools.data.data} chosen={tool} />}
      </div>
    </div>
    <section class="stack" aria-labelledby="rules-h"><h2 id="rules-h">Rules in force</h2>
      {rules ? <Rules rules={rules} got={got} effect={effect} means={means} /> : config.error ? <><p class="soft">Only admin keys can list all rules. These are the ones that were looked at for the call.</p>
        {got && <PlainTable label="Rules for this call" head={["Rule", "Decision", "This call"]}>{got.rules.map((r, i) => <tr key={i} class={r.decides ? "decides" : ""}><th scope="row" class="policy-cell"><Seen text={r.rule} /></th><td><Badge kind={verdict[r.decision] ?? ""}>{r.decision}</Badge></td><td>{saysOf(r)}</td></tr>)}</PlainTable>}</> : <Loading />}
    </section>
  </div>;
}

// Call is the call that is asked about: at first with its required arguments, empty, which are explained at once.
function Call({ tool, explain, fail, children }: { tool?: Tool; explain: (args: string, quiet?: boolean) => Promise<void>; fail: (e: Error) => void; children: ComponentChildren }) {
  const args: Arguments = useArguments(tool?.parameters ?? {});
  useEffect(() => { if (tool) void explain(args.text, true); }, []);
  return <form class="stack" aria-label="A call" onSubmit={(e) => {
    e.preventDefault();
    const wrong = args.fault();
    if (wrong) fail(new Error(wrong));
    else void explain(args.text);
  }}>
    <ArgumentsForm of={args} id="policy-args" wrong={(text) => fail(new Error(text))} />
    {children}
    <div class="answers"><button type="submit" disabled={!tool}>Explain</button></div>
  </form>;
}

const decisions = ["allow", "ask", "deny"];

// Overview groups the tools of this key by what policy decides about them as such. One that is pressed is the tool of the call.
function Overview({ tools, chosen }: { tools: Tool[]; chosen: string }) {
  const of = (d: string) => tools.filter((t) => (t.disabled ? "deny" : t.policy ?? "") === d);
  return <section class="card-box policy-overview" aria-labelledby="policy-all-h"><h2 id="policy-all-h" class="label">Your {count(tools.length, "tool")}</h2>
    {decisions.map((d) => [d, of(d)] as const).filter(([, list]) => list.length > 0).map(([d, list]) => <div key={d} class="policy-group"><span><Badge kind={verdict[d]!}>{d}</Badge> <span class="soft small num">{list.length}</span></span>
      <ul class="chips">{list.map((t) => <li key={t.name}><button type="button" class="chip" aria-pressed={t.name === chosen} title={effectOf(t.effect).name} onClick={() => setParams({ tool: t.name, rule: "" })}><Seen text={t.name} />{t.disabled && <span class="soft"> disabled</span>}</button></li>)}</ul></div>)}
    <p class="soft small">Without arguments and history; rules with conditions may decide otherwise about a call.</p></section>;
}

// saysOf says whether a rule applies to the call. Without a finding the policy did not evaluate the rule; why is the reason.
const saysOf = (r?: Finding, why = "") => !r ? <span class="soft">{why}</span> : r.decides ? <Badge kind="run">decides</Badge> : r.matched ? "applies" : <span class="soft">no{r.why && <>: <Seen text={r.why} /></>}</span>;

function Rules({ rules, got, effect, means }: { rules: Rule[]; got?: Explanation; effect?: string; means: (r: Rule) => boolean }) {
  const [only, set] = useState(false), shown = only && got ? rules.filter((r) => got.rules.some((f) => f.matched && keyOf(f.rule, f.source) === r.key)) : rules;
  const conditions = rules.some((r) => r.when), findingOf = (r: Rule) => got?.rules.find((f) => keyOf(f.rule, f.source) === r.key);
  const unasked = (r: Rule) => r.rule.startsWith("effect.") && r.rule !== `effect.${effect}` ? "no: the tool has another effect" : "not evaluated: another rule decides";
  return <><p class="soft small">The strictest rule that applies decides. If none does, the decision for the effect of the tool holds. The guards at the end can make a decision stricter.</p>
    <div class="filters"><label class="check"><input type="checkbox" checked={only} onChange={(e) => set(e.currentTarget.checked)} /> only rules that apply to the call</label></div>
    <PlainTable label="Rules and their lines" head={["Rule", "Applies to", ...(conditions ? ["Condition"] : []), "Decision", "This call", "From"]}>{shown.map((r) => { const f = findingOf(r); return <tr key={r.key} class={f?.decides || means(r) ? "decides" : ""}>
      <th scope="row" class="policy-cell"><Seen text={r.rule} />{means(r) && <> <Badge kind="run">decided</Badge></>}</th><td class="policy-cell"><Seen text={r.applies} /></td>{conditions && <td class="policy-cell mono"><Seen text={r.when} /></td>}<td><Badge kind={verdict[r.decision] ?? ""}>{r.decision}</Badge></td><td class="policy-call">{saysOf(f, got ? unasked(r) : "…")}</td><td class="policy-from"><Where rule={r} source={r.key} /></td></tr>; })}</PlainTable></>;
}
