// Small parts that every screen uses.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { now } from "../api";
import { go, href, path } from "../router";
import { stateOf, type Kind } from "../state";
import { ago, moment } from "../text/format";
import { announce, announcements } from "../announce";
import { title as documentTitle } from "../title";
import { Icon } from "./Icon";
import { shown, exactly, visible, type Piece } from "../text/visible.js";

// A Link leads to a path of the console without loading it anew.
export function Link({ to, children, ...rest }: { to: string; children: ComponentChildren; class?: string; title?: string; "aria-current"?: "page"; "aria-label"?: string }) {
  return <a {...rest} href={href(to)} onClick={(e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  }}>{children}</a>;
}

// PageHeader is the first thing of a screen. It holds the only h1, which gets the focus when the screen is opened.
export function PageHeader({ title, note, back, beside, children }: { title: string; note?: ComponentChildren; back?: { to: string; label: string }; beside?: ComponentChildren; children?: ComponentChildren }) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => { documentTitle.value = `${title} · Lathe`; }, [title]);
  useEffect(() => { if (document.activeElement === document.body) head.current?.focus(); }, [path.value]);
  return <header class="page-header">
    <div class="page-titles">
      {back && <div class="page-back"><Link class="back" to={back.to}>← {back.label}</Link>{beside}</div>}
      <h1 ref={head} tabIndex={-1}>{visible(title)}</h1>
      {note && <p class="soft">{note}</p>}
    </div>
    {children && <div class="page-actions">{children}</div>}
  </header>;
}

const ticks = signal(0);
setInterval(() => { if (!document.hidden) ticks.value++; }, 30_000);

// Time shows how far a time is from now, or with exact the time itself; the title has both. One that is due is to come. Its machine form is the
// time as the server has it.
export function Time({ at, exact = false, due = false }: { at: string; exact?: boolean; due?: boolean }) {
  void ticks.value;
  const far = ago(at, now(), due), when = moment(at);
  return <time dateTime={at} title={`${exact ? far : when} (${at})`}>{exact ? when : far}</time>;
}

export { announce };

// Copy copies a text, and says so where a screen reader hears it. With icon it is drawn, and its label is for screen readers.
export function Copy({ text, label = "Copy", icon = false }: { text: string | (() => string); label?: string; icon?: boolean }) {
  const [done, set] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => set(false), 2000);
    return () => clearTimeout(timer);
  }, [done]);
  return <button type="button" class={icon ? "icon" : "quiet small copy"} title={icon ? label : undefined} onClick={async () => {
    await copyText(typeof text === "string" ? text : text());
    set(true);
    announce("Copied.");
  }}>{icon ? <><Icon name={done ? "check" : "copy"} /><span class="unseen">{label}</span></> : done ? "Copied" : label}</button>;
}

// copyText works without a secure context, too: a page on another host over http has no clipboard API.
export async function copyText(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

// LiveRegion is in the page once.
export function LiveRegion() {
  return <div id="spoken" class="unseen" aria-live="polite">{announcements.value.map(({ id, text }) => <p key={id}>{text}</p>)}</div>;
}

// Pieces shows text with escapes marked.
export const Pieces = ({ cut }: { cut: Piece[] }) => <>{cut.map(([text, escaped]) => escaped ? <span class="escape" title="a character that cannot be seen">{text}</span> : text)}</>;

// Seen shows one line of text from outside, with escapes for what cannot be seen.
export const Seen = ({ text }: { text: string }) => <bdi>{visible(text)}</bdi>;

// JsonView shows a text from outside: JSON with a line for each member, other text as it is. Digits, the order of keys and
// repeated keys stay; characters that cannot be seen are escapes. exact shows line breaks outside of JSON as escapes too.
export function JsonView({ text, exact = false, label, copy = true, class: name = "" }: { text: string; exact?: boolean; label?: string; copy?: boolean; class?: string }) {
  return <div class="json">
    {copy && <Copy text={text} />}
    <pre class={name} tabIndex={0} role="region" aria-label={label ?? "Text"}><Pieces cut={exact ? exactly(text) : shown(text)} /></pre>
  </div>;
}

// PlainTable is a table of a few rows, at most 9 columns of which have labels on a phone: there each row is a card. ends are the columns whose heads stand at
// the end, over numbers.
export function PlainTable({ label, head, ends = [], children }: { label: string; head: string[]; ends?: boolean[]; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null), [over, set] = useState({ wide: false, more: false }); // wide: it scrolls sideways, more: there is more at the end
  useEffect(() => {
    const el = box.current!, look = () => { const wide = el.scrollWidth > el.clientWidth + 1, more = wide && el.scrollLeft + el.clientWidth < el.scrollWidth - 1; set((o) => o.wide === wide && o.more === more ? o : { wide, more }); };
    const observer = new ResizeObserver(look);
    observer.observe(el);
    observer.observe(el.firstElementChild!);
    el.addEventListener("scroll", look, { passive: true });
    return () => { observer.disconnect(); el.removeEventListener("scroll", look); };
  }, []);
  return <>{over.wide && <p class="soft small">{head.length} columns: scroll sideways to see all →</p>}<div ref={box} class={`plain-table${over.more ? " more" : ""}`} tabIndex={0} role="region" aria-label={label} style={Object.fromEntries(head.map((h, i) => [`--h${i + 1}`, JSON.stringify(h)]))}><table><thead><tr>{head.map((h, i) => <th key={h} scope="col" class={ends[i] ? "end" : undefined}>{h}</th>)}</tr></thead><tbody>{children}</tbody></table></div></>;
}

// seen replaces what cannot be seen in the texts among children.
const seen = (c: ComponentChildren): ComponentChildren => typeof c === "string" ? visible(c) : Array.isArray(c) ? c.map(seen) : c;

export const Badge = ({ kind = "", children }: { kind?: Kind; children: ComponentChildren }) => <span class={`badge ${kind}`}>{seen(children)}</span>;

// StateBadge shows a state of a run, a call or an approval; children stand behind its name.
export function StateBadge({ of, children }: { of: string; children?: ComponentChildren }) {
  const { kind, sign, name } = stateOf(of);
  return <span class={`badge ${kind}`}>{sign && <span aria-hidden="true">{sign} </span>}<span>{visible(name)}{children}</span></span>;
}

// Loading, Empty and ErrorState take the place of content that is not there.
export const Loading = ({ what = "Loading" }: { what?: string }) => <p class="state-box soft" role="status"><span class="pulse" aria-hidden="true" />{what}…</p>;

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="state-box"><strong>{title}</strong>{children && <div class="soft">{children}</div>}</div>;
}

export { ErrorState } from "./ErrorState";

// Tabs has one panel, that of the chosen tab. Arrow keys choose.
export function Tabs<T extends string>({ tabs, chosen, choose, label, children }: { tabs: { id: T; label: ComponentChildren }[]; chosen: T; choose: (id: T) => void; label: string; children: ComponentChildren }) {
  const list = useRef<HTMLDivElement>(null);
  const move = (e: KeyboardEvent) => {
    const at = tabs.findIndex((t) => t.id === chosen);
    const to = { ArrowRight: (at + 1) % tabs.length, ArrowLeft: (at + tabs.length - 1) % tabs.length, Home: 0, End: tabs.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    choose(tabs[to]!.id);
    (list.current?.children[to] as HTMLElement).focus();
  };
  return <>
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
      {tabs.map((t) => <button key={t.id} type="button" role="tab" id={`tab-${t.id}`} aria-selected={t.id === chosen} aria-controls={`panel-${chosen}`} tabIndex={t.id === chosen ? 0 : -1} onClick={() => choose(t.id)}>{t.label}</button>)}
    </div>
    <div class="panel" role="tabpanel" id={`panel-${chosen}`} aria-labelledby={`tab-${chosen}`}>{children}</div>
  </>;
}

// Dialog is modal. Closing it gives the focus back to what had it.
export function Dialog({ title, close, children, keep = false, above, class: name }: { title: string; close: () => void; children: ComponentChildren; keep?: boolean; above?: ComponentChildren; class?: string }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = `dialog-${title.replace(/\W+/g, "-")}`;
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const dialog = ref.current!;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  return <dialog ref={ref} class={name} aria-labelledby={id} onCancel={(e) => { e.preventDefault(); if (!keep) close(); }}>
    {above}
    <div class="dialog-head"><h2 id={id}>{visible(title)}</h2>{!keep && <button type="button" class="quiet small" onClick={close}>Close</button>}</div>
    {children}
  </dialog>;
}
