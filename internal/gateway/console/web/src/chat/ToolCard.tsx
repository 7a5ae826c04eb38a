// The calls of a chat as cards, with the one that asks for an approval.

import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApprovalCard, Decided } from "../components/ApprovalCard";
import { Link } from "../components/basics";
import { CallCard, failureOf } from "../components/CallCard";
import { stateOf } from "../state";
import { count } from "../text/format";
import { chat } from "./chat";
import type { Message, Part } from "./message";

const states: Record<string, string> = { "input-streaming": "writing", "approval-requested": "awaiting_approval", "output-available": "completed", "output-error": "failed", "output-denied": "denied" };

// ofPart is the state of a call.
function ofPart(p: Part, working: boolean): string {
  if (p.state === "input-available") return working ? "running" : "parked";
  if (p.state === "approval-responded") return p.approval?.approved ? working ? "running" : "approved" : "denied";
  return states[p.state ?? ""] ?? p.state ?? "";
}

const nameOf = (p: Part) => p.type.slice("tool-".length);

// ToolCard is one call: its arguments and what became of it. It is open while it asks, and where it has files.
export function ToolCard({ part: p, message, effect }: { part: Part; message: Message; revision: number; effect?: string }) {
  const summary = useRef<HTMLElement>(null);
  const asks = p.state === "approval-requested";
  const [touched, setTouched] = useState<boolean>();
  const open = asks || (touched ?? (p.state !== "output-error" && (p.files?.length ?? 0) > 0));
  const card = asks ? chat.cards.get(p.approval!.id) : undefined;
  useEffect(() => {
    if (chat.focusWanted !== p.toolCallId || asks && !card) return;
    chat.focusWanted = undefined;
    summary.current?.focus();
  });
  return <CallCard open={open} toggle={setTouched} summary={summary}
    call={{ id: p.toolCallId!, name: nameOf(p), args: p.input ?? "", state: ofPart(p, message.working ?? false), ms: p.ms, since: p.began, progress: p.progress, effect, result: p.state === "output-available" ? p.output ?? "" : p.state === "output-error" ? p.errorText ?? "" : undefined, files: p.files, why: p.errorText && failureOf(p.errorText) }}
    instead={!asks ? undefined : card ? <ApprovalCard key={p.approval!.id} runId={card.runId} call={card.call} decision={card.decision} onDecided={(d, _run, focused) => chat.decided(message, p.approval!.id, d, focused)} /> : message === chat.last ? <p class="soft">…</p> : <p>It waits for a decision. <Link to="/approvals">Decide about it</Link></p>}
    facts={<>{p.decision && <p class="meta"><Decided decision={p.decision} /></p>}{p.child && chat.durable && <p class="meta"><Link to={`/runs/${encodeURIComponent(p.child)}`}>see the run that it started</Link></p>}</>} />;
}

const folded = 8; // calls of one step beyond which those that are over are folded

// ToolGroup is the calls of one step, which the model has made at once. One call has the same place as several, so that its card stays when
// others follow.
export const ToolGroup = memo(({ parts, message, revision, effects }: { parts: Part[]; message: Message; revision: number; effects: Map<string, string> }) => {
  const [all, set] = useState(false);
  const ofEach = parts.map((p) => ofPart(p, message.working ?? false));
  const says = ["running", "awaiting_approval", "completed", "failed", "denied"].filter((s) => ofEach.includes(s)).map((s) => `${ofEach.filter((o) => o === s).length} ${stateOf(s).name}`).join(", ");
  const shown = all || parts.length <= folded ? parts : parts.filter((p) => p.state !== "output-available");
  const several = parts.length > 1;
  return <div class={several ? "tool-group" : "tool-one"} role={several ? "group" : undefined} aria-label={several ? count(parts.length, "call") : undefined}>
    {several && <p class="meta">{count(parts.length, "call")} in one step{says && `: ${says}`}</p>}
    {shown.map((p) => <ToolCard key={p.toolCallId} part={p} message={message} revision={revision} effect={effects.get(nameOf(p))} />)}
    {shown.length < parts.length && <button type="button" class="quiet small" onClick={() => set(true)}>Show {count(parts.length - shown.length, "call")} more</button>}
  </div>;
});
