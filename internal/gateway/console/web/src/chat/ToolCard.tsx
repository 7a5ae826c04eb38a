// A call as a card: which one it is, how far it has come, what it made, and the card that asks for its approval.

import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApprovalCard, Decided } from "../components/ApprovalCard";
import { JsonView, Link, StateBadge } from "../components/basics";
import { ResultView } from "../components/ResultView";
import { count, duration, words } from "../text/format";
import { content, entries } from "../text/jsontext.js";
import { visible } from "../text/visible.js";
import { chat } from "./chat";
import type { Message, Part } from "./message";

const states: Record<string, string> = { "input-streaming": "writing", "approval-requested": "awaiting_approval", "output-available": "completed", "output-error": "failed", "output-denied": "denied" };

// ofPart is the state of a call.
function ofPart(p: Part, working: boolean): string {
  if (p.state === "input-available") return working ? "running" : "parked";
  if (p.state === "approval-responded") return p.approval?.approved ? "running" : "denied";
  return states[p.state ?? ""] ?? p.state ?? "";
}

const runs = (p: Part, working: boolean) => working && (p.state === "input-available" || p.state === "approval-responded" && p.approval?.approved === true);
const longest = 160; // characters of the line of arguments

// inOneLine returns the arguments of a call as one line, such as label: "A", seconds: 4.
export function inOneLine(args: string): string {
  const line = entries(args)?.of.map(([name, value]) => `${name ?? ""}: ${value.replace(/\s+/g, " ")}`).join(", ") ?? args;
  return visible(line.length > longest ? `${line.slice(0, longest)}…` : line);
}

// failureOf returns what a call failed of in one line: the text of the tool, without the code and the frame of the server.
export function failureOf(text: string): string {
  const of = entries(text)?.of, data = of?.find(([name]) => name === "data")?.[1], inner = data ? undefined : of?.find(([name]) => name === "error")?.[1];
  const said = data ?? (inner ? entries(inner)?.of.find(([name]) => name === "detail" || name === "message")?.[1] ?? inner : text);
  return visible((content(said) ?? "").split("\n", 1)[0]!.slice(0, longest));
}

// Elapsed counts the seconds of a call that runs.
function Elapsed({ since }: { since: number }) {
  const [now, set] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span class="num" aria-hidden="true"> · {duration(Math.max(0, Math.round((now - since) / 1000) * 1000))}</span>;
}

function Progress({ part: p, name }: { part: Part; name: string }) {
  const { done, total, message } = p.progress!;
  return <div class="tool-progress">
    <progress aria-label={`Progress of ${visible(name)}`} max={total} value={total ? Math.min(done, total) : undefined} />
    <span class="num">{done.toLocaleString()}{total ? ` of ${total.toLocaleString()}` : ""}</span>{message && <span dir="auto">{visible(message)}</span>}
  </div>;
}

// ToolCard is one call: its arguments and what became of it. It is open while it asks, and where it failed.
export function ToolCard({ part: p, message, effect }: { part: Part; message: Message; revision: number; effect?: string }) {
  const summary = useRef<HTMLElement>(null);
  const asks = p.state === "approval-requested", failed = p.state === "output-error" || p.state === "output-denied";
  const [touched, setTouched] = useState<boolean>();
  const open = asks || (touched ?? (p.state === "output-error" || (p.files?.length ?? 0) > 0));
  const card = asks ? chat.cards.get(p.approval!.id) : undefined;
  const running = runs(p, message.working ?? false);
  const name = p.type.slice("tool-".length), line = p.input && !asks ? inOneLine(p.input) : "";
  useEffect(() => {
    if (chat.focusWanted !== p.toolCallId || asks && !card) return;
    chat.focusWanted = undefined;
    summary.current?.focus();
  });
  return <details class={`tool${asks ? " asks" : ""}${failed ? " failed" : ""}`} open={open} onToggle={(e) => { if (e.currentTarget.open !== open) setTouched(e.currentTarget.open); }}>
    <summary ref={summary}><b>{visible(name)}</b>{line && <span class="tool-args" dir="auto">{line}</span>}{effect && <span class={`tag ${effect}`}>{words(effect)}</span>}
      <span class="state"><StateBadge of={ofPart(p, message.working ?? false)}>{p.ms !== undefined ? ` · ${duration(p.ms)}` : running && p.began ? <Elapsed since={p.began} /> : null}</StateBadge></span>
      {failed && p.errorText && <span class="tool-why">{failureOf(p.errorText)}</span>}
      {running && p.progress && <Progress part={p} name={name} />}</summary>
    {open && <div>
      {asks ? card ? <ApprovalCard key={p.approval!.id} runId={card.runId} call={card.call} decision={card.decision} onDecided={(d, _run, focused) => chat.decided(message, p.approval!.id, d, focused)} /> : <p class="soft">…</p> : <>
        {p.decision && <p class="meta"><Decided decision={p.decision} /></p>}
        <h2 class="label">Arguments</h2><JsonView text={p.input || "{}"} label="Arguments" />
        {p.state === "output-available" && <ResultView text={p.output ?? ""} files={p.files} label="Result" />}
        {p.state === "output-error" && <ResultView text={p.errorText ?? ""} label="Failure" />}
        {p.child && chat.durable && <p class="meta"><Link to={`/runs/${encodeURIComponent(p.child)}`}>see the run that it started</Link></p>}
      </>}
    </div>}
  </details>;
}

const folded = 8; // calls of one step beyond which those that are done are folded

// ToolGroup is the calls of one step, which the model has made at once. One call has the same place as several, so that its card stays when
// others follow.
export const ToolGroup = memo(({ parts, message, revision, effects }: { parts: Part[]; message: Message; revision: number; effects: Map<string, string> }) => {
  const [all, set] = useState(false);
  const working = message.working ?? false, of = (word: string, test: (p: Part) => boolean) => { const n = parts.filter(test).length; return n ? `${n} ${word}` : ""; };
  const over = (p: Part) => p.state === "output-available";
  const says = [of("running", (p) => runs(p, working)), of("awaiting approval", (p) => p.state === "approval-requested"), of("completed", over), of("failed", (p) => p.state === "output-error"), of("denied", (p) => p.state === "output-denied")].filter(Boolean).join(", ");
  const shown = all || parts.length <= folded ? parts : parts.filter((p) => !over(p));
  const several = parts.length > 1;
  return <div class={several ? "tool-group" : "tool-one"} role={several ? "group" : undefined} aria-label={several ? count(parts.length, "call") : undefined}>
    {several && <p class="meta">{count(parts.length, "call")} in one step{says && `: ${says}`}</p>}
    {shown.map((p) => <ToolCard key={p.toolCallId} part={p} message={message} revision={revision} effect={effects.get(p.type.slice("tool-".length))} />)}
    {shown.length < parts.length && <button type="button" class="quiet small" onClick={() => set(true)}>Show {count(parts.length - shown.length, "call")} more</button>}
  </div>;
});
