// All components with their states on one page, for a person who changes them and for e2e/components.mjs. It is no screen and no part of
// the bundle. docs/internals/console-design.md says what the tokens are for.

import { render, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Lost, Refusal } from "../src/api";
import { ToolCard } from "../src/chat/ToolCard";
import { ProblemBox } from "../src/chat/parts";
import type { Message, Part } from "../src/chat/message";
import { ApprovalCard } from "../src/components/ApprovalCard";
import { Badge, Copy, Dialog, Empty, ErrorState, JsonView, Link, LiveRegion, Loading, PageHeader, PlainTable, Seen, StateBadge, Tabs, Time } from "../src/components/basics";
import { DataTable } from "../src/components/DataTable";
import { Menu } from "../src/components/Drop";
import { Icon } from "../src/components/Icon";
import { Markdown } from "../src/components/Markdown";
import { ResultView } from "../src/components/ResultView";
import { SchemaField } from "../src/components/SchemaForm";
import { SchemaView } from "../src/components/SchemaView";
import { Spark } from "../src/components/Spark";

const grounds = ["paper", "card", "sunk", "hover", "mine", "ok-bg", "wait-bg", "bad-bg", "run-bg"], inks = ["ink", "soft", "accent", "ok", "wait", "bad", "run"];
const kinds = ["", "ok", "wait", "bad", "run"] as const;
const picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const message: Message = { id: "m1", role: "assistant", parts: [], metadata: { runId: "run_1" }, working: true };
const calls: Part[] = [
  { type: "tool-search", toolCallId: "c1", state: "input-available", input: `{"words":"notes"}`, began: Date.now(), progress: { done: 9, total: 24, message: "step 9" } },
  { type: "tool-search", toolCallId: "c2", state: "output-available", input: `{"words":"notes"}`, output: `{"found":2}`, ms: 340 },
  { type: "tool-search", toolCallId: "c3", state: "output-error", input: `{"words":""}`, errorText: `{"error":{"code":"execution_failed","message":"disk full"}}`, ms: 12 },
];
const text = "## A heading\n\nText with **bold**, `code`, a [link](https://example.org) and $a^2+b^2$.\n\n- one\n- [x] done\n\n| name | size |\n|---|--:|\n| a | 12 |\n\n> A quotation\n\n```go\nfunc main() { println(\"hello\") } // colours\n```\n\nمرحبا";

const Part = ({ title, children }: { title: string; children: ComponentChildren }) => <section class="stack" aria-label={title}><h2>{title}</h2>{children}</section>;

function Components() {
  const [tab, setTab] = useState<"a" | "b">("a"), [open, setOpen] = useState(false), [value, setValue] = useState<Parameters<Parameters<typeof SchemaField>[0]["change"]>[0]>({});
  return <main class="page">
    <PageHeader title="Components" note="Each component with its states" back={{ to: "/", label: "Back" }}><button type="button" class="quiet">An action</button></PageHeader>
    <Part title="Colours">{grounds.map((g) => <p key={g} style={{ background: `var(--${g})`, padding: ".3rem .6rem", display: "flex", gap: "1rem", flexWrap: "wrap" }}><span class="mono">{g}</span>{inks.filter((i) => !g.endsWith("-bg") || g === `${i}-bg` || i === "ink").map((i) => <span key={i} style={{ color: `var(--${i})` }}>{i}</span>)}</p>)}</Part>
    <Part title="Type"><h3>Heading of a part</h3><p>Text</p><p class="soft">Soft text</p><p class="small">Small text</p><p class="mono">Fixed width 0123456789</p><p class="num">1,234.5 ms</p><p><Link to="/">A link</Link> <Seen text={"hidden \u202e\u200b characters"} /></p></Part>
    <Part title="Buttons"><div class="answers"><button type="button">Main</button><button type="button" class="quiet">Quiet</button><button type="button" class="danger">Danger</button><button type="button" class="quiet small">Small</button><button type="button" class="link">Link</button><button type="button" disabled>Disabled</button><Copy text="copied" /><Copy icon text="copied" /><Menu label="A menu" face={<Icon name="more" />} items={[{ name: "First", act: () => {} }, { name: "Delete", danger: true, act: () => {} }]} /><button type="button" class="quiet" onClick={() => setOpen(true)}>Open a dialog</button></div></Part>
    <Part title="Fields"><form class="filters"><label>Text<input defaultValue="text" /></label><label>Choice<select><option>one</option></select></label><label class="check"><input type="checkbox" defaultChecked />Checked</label><label>Wrong<input aria-invalid="true" defaultValue="abc" /></label></form>
      <SchemaField label="From a schema" root={{}} required value={value} change={setValue} schema={{ type: "object", properties: { words: { type: "string", description: "Some words." }, most: { type: "integer", minimum: 1 }, exact: { type: "boolean" } }, required: ["words"] }} /></Part>
    <Part title="States"><div class="answers">{kinds.map((k) => <Badge key={k} kind={k}>{k || "plain"}</Badge>)}<Time at={new Date().toISOString()} /><Time at={new Date().toISOString()} exact /></div><div class="answers">{["running", "awaiting_approval", "completed", "limited", "cancelled", "failed", "denied", "expired"].map((s) => <StateBadge key={s} of={s} />)}</div><Loading /><Empty title="Nothing is here.">What to do about it.</Empty><ErrorState error={new Error("The gateway cannot be reached.")} retry={() => {}} /><ErrorState error={new Lost()} retry={() => {}} /><ErrorState error={new Refusal(403, { code: "admin_required", detail: "This needs an admin key." }, "/api/config")} /><p class="problem note">A note</p><p class="problem warning">A warning</p><ProblemBox text="rate_limited: too many requests" /></Part>
    <Part title="Tabs"><Tabs label="Views" chosen={tab} choose={setTab} tabs={[{ id: "a", label: "First" }, { id: "b", label: "Second" }]}><p>The panel of {tab}</p></Tabs></Part>
    <Part title="Tables"><div style={{ display: "flex", flexDirection: "column", maxHeight: "14rem" }}><DataTable label="Rows" sort="-size" sortBy={() => {}} rows={[{ name: "first", size: 12, about: "In the second line of a narrow screen." }, { name: "second", size: 7, about: "" }]} rowKey={(r) => r.name} to={() => "/"} columns={[{ key: "name", title: "Name", cell: (r) => r.name }, { key: "size", title: "Size", align: "end", phone: true, value: (r) => r.size, cell: (r) => r.size }, { key: "about", title: "About", phone: 2, cell: (r) => r.about }]} /></div>
      <PlainTable label="Parts" head={["Part", "State"]}><tr><th scope="row">store</th><td><Badge kind="ok">fine</Badge></td></tr></PlainTable></Part>
    <Part title="Facts"><article class="card-box"><dl class="facts"><dt>Version</dt><dd>v0.1.0</dd><dt>Node</dt><dd class="mono">node-1</dd></dl></article></Part>
    <Part title="Texts and results"><JsonView text={`{"a":12345678901234567890,"note":"\u202e hidden"}`} label="JSON" /><ResultView label="Tree" text={`{"found":2,"rows":{"a":[1,2]}}`} /><ResultView label="Table" text={`[{"name":"a","size":1},{"name":"b","size":2}]`} /><ResultView label="Failure" failed text={`{"ok":false,"error":{"code":"timeout","message":"The tool did not finish in time.","limit":"tool_timeout","max_ms":30000}}`} /><ResultView label="Diff" text={"--- a/notes.txt\n+++ b/notes.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three"} /><ResultView label="Picture" text={`{"content":[{"type":"image"}]}`} files={[{ mediaType: "image/png", url: picture }]} /></Part>
    <Part title="Schemas and bars"><SchemaView label="A schema" schema={{ type: "object", required: ["words"], properties: { words: { type: "string", description: "Some words." }, rows: { type: "array", items: { type: "object", properties: { id: { type: "integer", minimum: 1 }, way: { enum: ["up", "down"] } } } } } }} />
      <dl class="sparks"><Spark name="Calls" kind="model" label="Calls of each hour" bars={[{ all: 3, title: "3" }, { all: 0, title: "0" }, { all: 9, bad: 2, title: "9" }]}>12</Spark></dl></Part>
    <Part title="Calls">{calls.map((p, i) => <ToolCard key={p.toolCallId} part={p} message={message} revision={0} effect={i ? "read_only" : "writes"} />)}
      <ApprovalCard alone runId="run_1" call={{ tool_call_id: "c4", tool: "send_mail", state: "awaiting_approval", arguments: `{"to":"ann","text":"Dear all,\\n\\nplease read."}`, args_digest: "00d1", effect: "writes", origin: "mcp:mail", rule: "effect.writes", expires_at: new Date(Date.now() + 36e5).toISOString() }} /></Part>
    <Part title="Answers"><div style={{ display: "grid" }}><div class="turn user" style={{ justifySelf: "end" }}><div class="bubble"><p class="said" dir="auto">A question</p></div></div></div><Markdown text={text} /><div class="working">working</div></Part>
    {open && <Dialog title="A dialog" close={() => setOpen(false)}><p>Its text</p><div class="answers"><button type="button" onClick={() => setOpen(false)}>Do it</button></div></Dialog>}
    <LiveRegion />
  </main>;
}

render(<Components />, document.getElementById("app")!);
