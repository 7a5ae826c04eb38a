// The rules of a policy, as the settings in force have them.

export interface Setting { key: string; value: string; origin: string } // origin: such as lathe.yaml:12, or default

export interface Rule {
  key: string; // of the setting, or the part of it that all settings of the rule have
  rule: string; // its name, as verdicts have it
  decision: string;
  tool: string; // pattern of the names of its tools, "" for all
  applies: string; // to which calls, for people
  when: string; // its condition, "" for none
  origin: string;
}

const line = (origin: string) => Number(/:(\d+)$/.exec(origin)?.[1] ?? Infinity);
const rank = ["deny", "ask", "allow"];
const guards = new Map(Object.entries({ // a key of the settings may be any word, such as constructor
  "policy.trifecta": ["trifecta", "the call by which a run would have used tools that read private data, that read untrusted content and that can send data out"],
  "policy.taint": ["taint", "calls that change something, in a run that has read untrusted content"],
}));
const budgets: Record<string, string> = { calls: "tool calls of a run", tokens: "tokens of a run", cost: "US dollars of a run" };

// rulesIn returns the rules: those with a name, the strictest first, the decisions about single tools, those by effect, and the guards.
export function rulesIn(settings: Setting[]): Rule[] {
  const groups = new Map<string, Record<string, Setting>>(), named: Rule[] = [], tools: Rule[] = [], effects: Rule[] = [], last: Rule[] = [];
  for (const s of settings) {
    const [, name = "", field = ""] = /^policy\.rules\.(.+)\.(\w+)$/.exec(s.key) ?? [];
    const [, kind, rest = ""] = /^policy\.(tools|effects|budget)\.(.+)$/.exec(s.key) ?? [];
    if (name) groups.set(name, { ...groups.get(name), [field]: s });
    else if (kind === "tools") tools.push({ key: s.key, rule: `tools.${s.value}`, decision: s.value, tool: rest, applies: `the tool ${rest}`, when: "", origin: s.origin });
    else if (kind === "effects") effects.push({ key: s.key, rule: `effect.${rest}`, decision: s.value, tool: "", applies: `tools whose effect is ${rest.replace("_", " ")}`, when: "", origin: s.origin });
    else if (kind === "budget" && !["", "0", "none"].includes(s.value)) last.push({ key: s.key, rule: `budget.${rest.split(".")[0]}`, decision: "deny", tool: "", applies: `calls beyond ${s.value} ${budgets[rest] ?? `calls of ${rest.replace("tools.", "")} in a run`}`, when: "", origin: s.origin });
    else if (guards.has(s.key)) last.push({ key: s.key, rule: guards.get(s.key)![0]!, decision: s.value, tool: "", applies: guards.get(s.key)![1]!, when: "", origin: s.origin });
  }
  for (const [name, of] of groups) {
    const get = (field: string) => of[field]?.value ?? "";
    const applies = [get("tool") && `tools ${get("tool")}`, get("effect") && `effect ${get("effect").replace("_", " ")}`, get("principal") && `keys ${get("principal")}`, get("labels") && `runs with ${get("labels")}`].filter(Boolean).join(", ") || "all calls";
    named.push({ key: `policy.rules.${name}`, rule: name, decision: get("decision"), tool: get("tool"), applies, when: get("when"), origin: Object.values(of).map((s) => s.origin).sort((a, b) => line(a) - line(b))[0] ?? "" });
  }
  named.sort((a, b) => rank.indexOf(a.decision) - rank.indexOf(b.decision) || (a.rule < b.rule ? -1 : 1));
  return [...named, ...tools, ...effects, ...last];
}

// keyOf returns the setting of the rule that a verdict names; "" where there is none.
export const keyOf = (rule: string, source = "") => source || (rule.startsWith("effect.") ? `policy.effects.${rule.slice("effect.".length)}` : /^(trifecta|taint|budget)/.test(rule) ? `policy.${rule}` : "");
