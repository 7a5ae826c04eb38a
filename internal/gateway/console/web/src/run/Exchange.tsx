// The requests to model servers, as far as the log of the run has them: messages, tools, parameters, and what was answered.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Badge, Copy, Empty, JsonView, Seen, StateBadge } from "../components/basics";
import { SchemaView } from "../components/SchemaView";
import { useResource } from "../resource";
import { failureName } from "../state";
import { bytes, count, inAndOut, measured, rate, shell, words } from "../text/format";
import { visible } from "../text/visible";
import type { WithheldTool } from "../../events";
import { chatMessages, chatTools, haveHash, sentIn, type Sent, type ToolDefinition } from "./request";
import { Given, Made } from "./SpanDetail";
import { money, type RunEvent } from "./types";

type Listed = ToolDefinition & { advertised: boolean };
interface Pin { name: string; state: string; accepted?: { description?: string; inputSchema?: unknown } }

const size = (v: unknown) => bytes(new TextEncoder().encode(JSON.stringify(v)).length);

// An Offer is the tools of a model call. exact says whether they have the hash that the run recorded; undefined: it is being computed, or cannot be.
interface Offer { tools: ToolDefinition[]; exact?: boolean; known: boolean }

// Known are the tools that the gateway knows: those of today, and of those that are blocked since they have changed, the definitions that were accepted.
interface Known { now?: Listed[]; before: ToolDefinition[] }

function useKnown(): Known {
  const tools = useResource<{ data: Listed[] }>("api/tools").data?.data, pins = useResource<{ data: Pin[] }>("api/pins"); // only admin keys may read these
  return useMemo(() => ({
    now: pins.data || pins.error ? tools : undefined,
    before: (pins.data?.data ?? []).filter((p) => p.state === "blocked" && p.accepted).map((p) => ({ name: p.name, description: p.accepted!.description ?? "", parameters: p.accepted!.inputSchema })),
  }), [tools, pins.data, pins.error]);
}

// useOffer finds the tools that a model call was sent by the hash that the log has of them.
function useOffer({ own, allowed, hash, tools: sent }: Sent, known: Known): Offer {
  const [found, set] = useState<{ of: Known; tools: ToolDefinition[]; exact?: boolean }>();
  const may = (t: ToolDefinition) => !allowed || allowed.includes(t.name), today = useMemo(() => [...(known.now ?? []).filter((t) => t.advertised && may(t)).map(({ name, description, parameters }) => ({ name, description, parameters })), ...own], [known, hash]);
  useEffect(() => {
    let left = false;
    const seek = async () => {
      const exact = await haveHash(today, hash), before = [...today, ...known.before.filter(may)], then = exact === false && before.length > today.length && await haveHash(before, hash);
      if (!left) set({ of: known, tools: then ? before : today, exact: then || exact });
    };
    if (known.now && sent) void seek();
    return () => { left = true; };
  }, [known, hash]);
  const done = found?.of === known;
  return sent === 0 ? { tools: [], exact: true, known: true } : { tools: done ? found.tools : today, exact: done ? found.exact : undefined, known: done };
}

// Tools names the tools; one that is pressed shows its description and its schema.
function Tools({ offer: { tools, exact, known }, of }: { offer: Offer; of: string }) {
  const [chosen, set] = useState(""), tool = tools.find((t) => t.name === chosen);
  if (!tools.length) return null;
  return <section class="stack" aria-label={`Tools${of}`}><h2 class="label">{exact === false ? "Tools that the gateway offers now" : "Tools"}</h2>
    <ul class="chips">{tools.map((t) => <li key={t.name}><button type="button" class="chip mono" aria-expanded={t === tool} onClick={() => set(t === tool ? "" : t.name)}><Seen text={t.name} /></button></li>)}</ul>
    {tool && <><p class="soft small"><Seen text={tool.description} /></p><SchemaView schema={tool.parameters} label={`Schema of ${visible(tool.name)}${of}`} /></>}
    <p class="soft small">{exact ? "Their definitions have the hash that the run recorded: they are the ones that were sent." : exact === false ? "The run log has the number and a hash of the definitions that were sent. They have changed since, or another key was offered others." : known && "The run log has the number and a hash of the definitions that were sent. This page cannot compare the hash: a browser does so over https only."}</p></section>;
}

const choices: Record<string, string> = { auto: "the model may call tools", none: "the model must not call a tool", required: "the model must call a tool" };

// parametersText says what is set, for people.
function parametersText(of: Record<string, unknown>): string {
  return Object.entries(of).filter(([name]) => name !== "tool_choice").map(([name, v]) => `${words(name)} ${typeof v === "string" ? v : JSON.stringify(v)}`).join(", ");
}

function choiceText(sent: Sent): string {
  const choice = sent.parameters?.tool_choice as string | { function?: { name?: string } } | undefined;
  if (!sent.tools) return "no tools were sent";
  if (!sent.parameters) return "not stored with this run";
  return !choice ? `${choices.auto} (not set)` : typeof choice === "string" ? choices[choice] ?? choice : `the model must call ${choice.function?.name ?? "a tool"}`;
}

const withheldFor: Record<string, string> = { policy: "policy denies every call", needs_approval: "needs an approval, and there was no approver", undeclared_effect: "needs an approval, and there was no approver", max_depth: "the run may start no other run", tool_use_mode: "the run uses no tools" };

const ends: Record<string, string> = { stop: "the answer is complete", tool_calls: "it calls tools", length: "the longest answer was reached", content_filter: "a filter of the model server" };

const mostShown = 10; // calls whose messages are shown at first; of more, those of the last

function ModelCall({ events, started, finished, known, shown }: { events: RunEvent[]; started: RunEvent; finished?: RunEvent; known: Known; shown: boolean }) {
  const at = started.event_id ?? 0, of = ` of model call ${at}`, d = finished?.data, u = d?.usage, model = started.data.model ?? "";
  const [open, set] = useState(shown);
  const sent = useMemo(() => sentIn(events, started), [events.length, at]), offer = useOffer(sent, known), messages = useMemo(() => chatMessages(sent.messages), [sent]);
  const run = events.find((e) => e.type === "RunStarted"), held = (run?.data.tools as { withheld?: WithheldTool[] } | undefined)?.withheld ?? [];
  const lacks = sent.total - sent.messages.length, whole = lacks === 0 && offer.exact === true && sent.parameters !== undefined;
  const request = { model, messages, ...offer.exact && offer.tools.length ? { tools: chatTools(offer.tools) } : {}, ...sent.parameters }, text = () => JSON.stringify(request, null, 2);
  const speed = d?.first_token_ms ? rate(u?.output_tokens ?? 0, (d.latency_ms ?? 0) - d.first_token_ms) : "";
  return <article class="card-box" aria-label={`Model call ${at}`}>
    <div class="run-who"><b><Seen text={`${started.data.provider ?? ""} ${model}`} /></b><Badge>turn {started.turn}, attempt {started.data.attempt}</Badge>
      {d && <StateBadge of={d.status === "success" ? "completed" : "failed"}>{d.error_code && `: ${failureName(d.error_code)}`}</StateBadge>}{d?.upstream_status ? <Badge kind="bad">HTTP {d.upstream_status}</Badge> : null}
      <span class="run-acts"><Copy label="Copy as JSON" text={text} />{whole && started.data.provider !== "sim" && <Copy label="Copy as curl" text={() => `curl -s "$BASE_URL/chat/completions" -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -d ${shell(JSON.stringify(request))}`} />}</span></div>
    <div class="exchange-halves">
      <section aria-label={`Request${of}`}><h2 class="label">Request</h2><dl class="facts">
        <dt>Messages</dt><dd>{count(sent.total, "message")}{sent.messages.length > 0 && <>, {size(messages)} as JSON</>}{lacks > 0 && <span class="soft">; the run log has {sent.messages.length} of them</span>}</dd>
        <dt>Tools</dt><dd>{sent.tools ? <>{count(sent.tools, "tool")}{offer.exact && <>, {size(chatTools(offer.tools))} as JSON</>}</> : "none"}</dd>
        {held.length > 0 && <><dt>Not offered</dt><dd><Seen text={held.map((w) => `${w.tool} (${withheldFor[w.reason] ?? words(w.reason)})`).join(", ")} /></dd></>}
        <dt>Tool choice</dt><dd><Seen text={choiceText(sent)} /></dd>
        <dt>Parameters</dt><dd><Seen text={sent.parameters ? parametersText(sent.parameters) || "none set: those of the model server" : "not stored with this run"} /></dd>
        <dt>Tokens</dt><dd class="num">{u?.input_tokens ? <>{u.input_tokens.toLocaleString()} in, as the model server counts{u.cached_tokens ? `, ${u.cached_tokens.toLocaleString()} of them cached` : ""}</> : d ? inAndOut(u) : "not known yet"}</dd>
      </dl></section>
      <section aria-label={`Answer${of}`}><h2 class="label">Answer</h2><dl class="facts">
        {!d && <><dt>Ended</dt><dd>not yet</dd></>}
        {d?.finish_reason && <><dt>Ended because</dt><dd>{ends[d.finish_reason] && `${ends[d.finish_reason]} · `}<span class="mono">{visible(d.finish_reason)}</span></dd></>}
        {d && <><dt>Took</dt><dd class="num">{measured(d.latency_ms ?? 0)}{d.first_token_ms ? `, first token after ${measured(d.first_token_ms)}` : ""}{speed && `, ${speed}`}</dd></>}
        {u && (u.input_tokens || u.output_tokens) ? <><dt>Tokens</dt><dd class="num">{u.output_tokens.toLocaleString()} out{u.reasoning_tokens ? `, ${u.reasoning_tokens.toLocaleString()} of them reasoning` : ""}</dd></> : null}
        {d?.cost ? <><dt>Cost</dt><dd class="num">{money(d.cost)} for request and answer</dd></> : null}
        {d?.dropped?.length ? <><dt>Left out</dt><dd><Seen text={d.dropped.join(", ")} /> <span class="soft">of the request, which the model server has no form for</span></dd></> : null}
        {d?.faults?.length ? <><dt>Faults</dt><dd><Seen text={d.faults.map((f) => f.kind).join(", ")} /></dd></> : null}
        {finished?.content?.error_message && <><dt>It said</dt><dd><Seen text={finished.content.error_message} /></dd></>}
        {d?.upstream_request_id && <><dt>Request id there</dt><dd class="mono exchange-id"><Seen text={d.upstream_request_id} /> <Copy icon text={d.upstream_request_id} label="Copy the request id" /></dd></>}
      </dl></section>
    </div>
    <details open={open} onToggle={(e) => { if (e.target === e.currentTarget) set(e.currentTarget.open); }}><summary class="small">Messages, tools and answer</summary>{open && <div class="exchange-halves">
      <div class="stack"><Given name="Messages" events={events} at={at} of={of} /><Tools offer={offer} of={of} /></div>
      <div class="stack"><Made name="What it wrote" over={finished} open="" of={of} /></div></div>}</details>
    <Raw text={text} of={of} lacks={[lacks !== 0 && "messages that the run log lacks", offer.exact !== true && "the tools", !sent.parameters && "the parameters"].filter(Boolean).join(", ")} hash={started.data.prompt_hash_v2 ?? ""} />
  </article>;
}

// Raw is the request in the form of chat completions; lacks names what is not in it.
function Raw({ text, of, lacks, hash }: { text: () => string; of: string; lacks: string; hash: string }) {
  const [open, set] = useState(false);
  return <details open={open} onToggle={(e) => { if (e.target === e.currentTarget) set(e.currentTarget.open); }}><summary class="small">Request as JSON</summary>{open && <div class="stack">
    <JsonView text={text()} label={`Request as JSON${of}`} />
    <p class="soft small">In the form of chat completions, from the run log{lacks && <>; without {lacks}</>}. Hash of what was sent: <span class="mono"><Seen text={hash} /></span> <Copy icon text={hash} label="Copy the prompt hash" /></p></div>}</details>;
}

export function Exchange({ events }: { events: RunEvent[] }) {
  const known = useKnown();
  const calls: { started: RunEvent; finished?: RunEvent }[] = [];
  for (const e of events) {
    if (e.type === "ModelCallStarted") calls.push({ started: e });
    else if (e.type === "ModelCallFinished" && calls.length) calls.at(-1)!.finished = e;
  }
  return <div class="stack">
    {calls.length === 0 && <Empty title="No model was called." />}
    {calls.map(({ started, finished }) => <ModelCall key={started.event_id} events={events} started={started} finished={finished} known={known} shown={calls.length <= mostShown || started === calls.at(-1)!.started} />)}
    <p class="soft small">This is what the run log has. Not stored: the bytes and headers of requests to model servers, and the address. <code>lathe doctor --base-url URL MODEL</code> shows how a model server answers.</p>
  </div>;
}
