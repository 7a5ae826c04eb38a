import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, rulesIn } from "../src/policy.ts";

const row = (key, value, origin = "default") => ({ key: `policy.${key}`, value, origin });

test("the rules of the settings in force", () => {
  const got = rulesIn([row("effects.writes", "deny", "lathe.yaml:6"), row("tools.send_mail", "ask", "lathe.yaml:3"),
    row("rules.late.decision", "ask", "lathe.yaml:13"), row("rules.late.tool", "mail_*", "lathe.yaml:13"), row("rules.late.effect", "", "lathe.yaml:12"),
    row("rules.big.decision", "deny", "lathe.yaml:9"), row("rules.big.when", "args.n > 100", "lathe.yaml:11"), row("trifecta", "ask"), row("budget.calls", "0"), row("budget.tokens", "9000", "lathe.yaml:20"), { key: "serve.addr", value: "x", origin: "default" }, { key: "constructor", value: "x", origin: "default" }]);
  assert.deepEqual(got.map((r) => [r.rule, r.decision, r.applies, r.when, r.origin]), [
    ["big", "deny", "all calls", "args.n > 100", "lathe.yaml:9"], ["late", "ask", "tools mail_*", "", "lathe.yaml:12"],
    ["tools.ask", "ask", "the tool send_mail", "", "lathe.yaml:3"], ["effect.writes", "deny", "tools whose effect is writes", "", "lathe.yaml:6"],
    ["trifecta", "ask", "the call by which a run would have used tools that read private data, that read untrusted content and that can send data out", "", "default"],
    ["budget.tokens", "deny", "calls beyond 9000 tokens of a run", "", "lathe.yaml:20"]]);
});

test("the setting of the rule that a verdict names", () => {
  assert.deepEqual([keyOf("tools.ask", "policy.tools.a"), keyOf("effect.read_only"), keyOf("taint"), keyOf("disabled")], ["policy.tools.a", "policy.effects.read_only", "policy.taint", ""]);
});
