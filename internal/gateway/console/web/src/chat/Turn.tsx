// One message of the conversation, with what can be done about it.

import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { Copy } from "../components/basics";
import { Icon } from "../components/Icon";
import { visible } from "../text/visible.js";
import { chat } from "./chat";
import { textOf, type Message } from "./message";
import { ModelPicker } from "./ModelPicker";
import { entries } from "./models";
import { Facts, Parts, ProblemBox, reasons, Working } from "./parts";

// Versions leads to the other versions of a message.
function Versions({ message, busy }: { message: Message; busy: boolean }) {
  const [at, of] = chat.branches.place(chat.messages, chat.messages.indexOf(message));
  return of < 2 ? null : <span class="versions" role="group" aria-label="Versions">
    <button type="button" class="icon" aria-label="Previous version" disabled={busy || at === 1} onClick={() => chat.turn(message, -1)}>‹</button>
    <span class="num" aria-label={`Version ${at} of ${of}`}>{at}/{of}</span>
    <button type="button" class="icon" aria-label="Next version" disabled={busy || at === of} onClick={() => chat.turn(message, 1)}>›</button></span>;
}

// Editor changes a question in its place. Nothing else changes until it is sent.
function Editor({ message }: { message: Message }) {
  const box = useRef<HTMLTextAreaElement>(null);
  const [text, set] = useState(() => message.parts.map((p) => p.filename ? "" : p.text ?? "").join(""));
  useEffect(() => { box.current?.focus(); }, []);
  const submit = () => { if (text.trim()) void chat.replace(message, text.trim()); };
  const leave = () => { chat.endEdit(); document.getElementById("prompt")?.focus(); };
  const later = chat.messages.length - chat.messages.indexOf(message) - 1;
  return <form class="stack own-editor" onSubmit={(e) => { e.preventDefault(); submit(); }}>
    <textarea ref={box} aria-label="Edited question" rows={3} dir="auto" value={text} onInput={(e) => set(e.currentTarget.value)} onKeyDown={(e) => {
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
      if (e.key === "Escape") { e.preventDefault(); leave(); }
    }} />
    {later > 0 && <p class="meta">{later === 1 ? "The message" : `The ${later} messages`} below will stay as another version.</p>}
    <div class="answers"><button type="submit" class="small" disabled={!text.trim()}>Send</button><button type="button" class="quiet small" onClick={leave}>Cancel</button></div>
  </form>;
}

// Question is a message of the person.
function Question({ message: m, revision, busy, effects }: { message: Message; revision: number; busy: boolean; effects: Map<string, string> }) {
  if (chat.editing.value === m) return <div class="bubble"><Editor message={m} /></div>;
  return <><div class="bubble"><Parts message={m} revision={revision} effects={effects} /></div>
    <div class="meta user-actions"><Versions message={m} busy={busy} /><span class="acts"><Copy icon text={() => m.parts.map((p) => p.text ?? "").join("")} />
      {!busy && <button type="button" class="icon" title="Edit" onClick={() => chat.edit(m)}><Icon name="edit" /><span class="unseen">Edit</span></button>}</span></div></>;
}

// Below is the line below an answer: what can be done about it, and what it took.
function Below({ message: m, revision, last, busy }: { message: Message; revision: number; last: boolean; busy: boolean }) {
  const again = last && !busy && !m.problem && m.metadata?.reason !== "awaiting_approval";
  return <div class={`meta${last ? " last" : ""}`}><Versions message={m} busy={busy} />
    <span class="acts">{textOf(m) && <Copy icon text={() => textOf(m)} />}
      {again && <button type="button" class="icon" title="Answer again" onClick={() => void chat.retry()}><Icon name="again" /><span class="unseen">Answer again</span></button>}
      {again && entries.value.length > 1 && <ModelPicker label="Answer again with another model" class="icon narrow" face={<Icon name="down" />} take={(model) => void chat.retry(model)} />}</span>
    <Facts message={m} revision={revision} /></div>;
}

// A Turn is drawn again when its message has changed: revision says so.
export const Turn = memo(({ message: m, revision, last, effects, busy }: { message: Message; revision: number; last: boolean; effects: Map<string, string>; busy: boolean }) => {
  if (m.role === "user") return <article class="turn user" aria-label="You"><Question message={m} revision={revision} busy={busy} effects={effects} /></article>;
  const meta = m.metadata ?? {}, made = m.parts.some((p) => p.state === "output-available"), note = reasons[meta.reason ?? ""];
  return <article class="turn assistant" aria-label="Assistant">
    <Parts message={m} revision={revision} effects={effects} />
    {m.working ? <Working message={m} revision={revision} /> : <>
      {m.problem ? <ProblemBox {...m.problem}>{last && <>
        <button type="button" onClick={() => void chat.retry()}>Try again</button><button type="button" class="quiet" onClick={() => chat.edit()}>Edit the question</button>
        {made && <small>Calls above were made. They may be made once more.</small>}
      </>}</ProblemBox> : note ? <div class="problem note" role="note">{visible(note)}</div> : null}
      <Below message={m} revision={revision} last={last} busy={busy} />
    </>}
  </article>;
}, (a, b) => a.message === b.message && a.revision === b.revision && a.last === b.last && a.busy === b.busy && a.effects.size === b.effects.size);
