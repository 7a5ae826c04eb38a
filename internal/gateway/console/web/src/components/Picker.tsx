// A search with the list of what it finds. Arrows choose, Enter takes.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface Found { key: string; face: ComponentChildren }

// Picker shows what the caller found for the text. It begins at the entry of the key chosen.
export function Picker<T extends Found>({ label, text, setText, found, chosen = "", take }: { label: string; text: string; setText: (text: string) => void; found: T[]; chosen?: string; take: (found: T) => void }) {
  const id = useId(), input = useRef<HTMLInputElement>(null), list = useRef<HTMLUListElement>(null);
  const [moved, setMoved] = useState<number>();
  const at = Math.min(moved ?? Math.max(0, found.findIndex((f) => f.key === chosen)), found.length - 1);
  useEffect(() => { input.current?.focus(); }, []);
  useEffect(() => { list.current?.children[at]?.scrollIntoView({ block: "nearest" }); }, [at]);
  return <div class="picker">
    <input ref={input} autoFocus role="combobox" autocomplete="off" aria-label={label} placeholder={label} aria-expanded="true" aria-controls={`${id}l`} aria-activedescendant={found.length ? `${id}${at}` : undefined} value={text}
      onInput={(e) => { setText(e.currentTarget.value); setMoved(0); }}
      onKeyDown={(e) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
        if (by) { e.preventDefault(); setMoved(Math.max(0, Math.min(found.length - 1, at + by))); }
        if (e.key === "Enter" && found[at]) { e.preventDefault(); take(found[at]); }
      }} />
    <ul id={`${id}l`} ref={list} class="found" role="listbox" aria-label="Found">{found.map((f, i) => <li key={f.key} id={`${id}${i}`} role="option" aria-selected={i === at} onClick={() => take(f)}>{f.face}</li>)}</ul>
    {found.length === 0 && <p class="soft small" role="status">Nothing found.</p>}
  </div>;
}
