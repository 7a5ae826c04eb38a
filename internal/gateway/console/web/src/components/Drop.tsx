// What opens below a button: a menu, or a list with a search.

import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";

const least = 260; // px below the button, else the box opens above it
const gap = 4; // px between the button and the box
const widest = 380; // px of a box with its margins

// Drop is a button with a box that it opens. Escape, a press beside it and close close it; the focus returns to the button.
// Its first entry or field has the focus while it is open.
// content is made anew each time the box opens.
export function Drop({ id, label, kind, face, class: name = "quiet small", disabled, content }: { id?: string; label: string; kind: "menu" | "dialog"; face: ComponentChildren; class?: string; disabled?: boolean; content: (close: () => void) => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null), button = useRef<HTMLButtonElement>(null), boxId = useId();
  const [open, set] = useState(false);
  const place = () => {
    const at = button.current!.getBoundingClientRect(), style = box.current!.style, left = at.left + at.width / 2 < innerWidth / 2, below = innerHeight - at.bottom > least || at.top < least;
    const beside = Math.min(left ? at.left : innerWidth - at.right, Math.max(2 * gap, innerWidth - widest)); // so that it fits into a narrow window
    Object.assign(style, { left: left ? `${beside}px` : "auto", right: left ? "auto" : `${beside}px`, top: below ? `${at.bottom + gap}px` : "auto", bottom: below ? "auto" : `${innerHeight - at.top + gap}px`, maxHeight: `${(below ? innerHeight - at.bottom : at.top) - 4 * gap}px` });
  };
  const close = () => {
    box.current?.hidePopover();
    button.current?.focus();
  };
  return <>
    <button type="button" id={id} ref={button} class={name} title={label} aria-label={label} aria-haspopup={kind} aria-expanded={open} disabled={disabled} popovertarget={boxId}>{face}</button>
    <div id={boxId} ref={box} popover="auto" class="drop" role={kind === "dialog" ? "dialog" : undefined} aria-label={kind === "dialog" ? label : undefined}
      onBeforeToggle={(e) => { if (e.newState === "open") { place(); set(true); } }} onToggle={(e) => { if (e.newState === "closed") set(false); else box.current?.querySelector<HTMLElement>("[role=menuitem], input")?.focus(); }}
      onKeyDown={(e) => { if (e.key === "Escape") { e.preventDefault(); close(); } }}>{open && content(close)}</div>
  </>;
}

export interface Item { id?: string; name: string; act: () => void; danger?: boolean }

// Menu is a button that opens a list of actions. Arrows move in it.
export function Menu({ id, label, face, items }: { id?: string; label: string; face: ComponentChildren; items: (Item | false | undefined)[] }) {
  return <Drop id={id} label={label} kind="menu" face={face} class="icon" content={(close) => <Items label={label} items={items.filter((i) => i !== undefined && i !== false)} close={close} />} />;
}

function Items({ label, items, close }: { label: string; items: Item[]; close: () => void }) {
  const move = (e: KeyboardEvent) => {
    const all = [...(e.currentTarget as HTMLElement).children] as HTMLElement[], at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at + all.length - 1) % all.length, Home: 0, End: all.length - 1 }[e.key];
    if (e.key === "Tab") close();
    if (to === undefined) return;
    e.preventDefault();
    all[to]!.focus();
  };
  return <div role="menu" aria-label={label} onKeyDown={move}>{items.map((item) => <button key={item.name} type="button" role="menuitem" id={item.id} tabIndex={-1} class={`plain${item.danger ? " bad" : ""}`} onClick={() => { close(); item.act(); }}>{item.name}</button>)}</div>;
}
