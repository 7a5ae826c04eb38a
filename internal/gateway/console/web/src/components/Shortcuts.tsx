// The keys of the page, shown by ?, those that work on every screen, and the search for whatever the page has.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { chat } from "../chat/chat";
import { enc, session, signOut } from "../api";
import { go } from "../router";
import { useResource } from "../resource";
import type { Run } from "../run/types";
import { screens as screenList } from "../screens";
import { theme, themes } from "../theme";
import { visible } from "../text/visible.js";
import { Dialog } from "./basics";
import { Picker } from "./Picker";

const all = screenList.filter((s) => s.nav);
const keys: [group: string, of: [keys: string[], does: string][]][] = [
  ["Everywhere", [[["Ctrl", "K"], "finds a screen, a chat, a tool or a run, or does something"], [["?"], "shows this list"], [["/"], "leads to the message box, or to the search of a screen"], [["n"], "begins a new chat"], [["g", "c"], "opens the chat; g, then a approvals, r runs, t tools, s statistics"]]],
  ["Chat", [[["Enter"], "sends a message"], [["Shift", "Enter"], "begins a new line"], [["↑"], "in an empty box, edits the last question"], [["Esc"], "stops an answer, or leaves what is edited"]]],
  ["Lists and approvals", [[["j", "k"], "move in lists, in the timeline and among approvals, as arrows do"], [["Enter"], "opens what is chosen"], [["x"], "chooses a run of the list, or no longer; so does Space"], [["a"], "approves the call in focus"], [["r"], "denies it"], [["+", "−"], "zoom in the timeline"]]],
];
const screens: Record<string, string> = { c: "/", a: "/approvals", r: "/runs", t: "/tools", s: "/stats" };
const patience = 1500; // ms between g and the next key

// finding is which of the dialogs is open.
export const finding = signal<"" | "keys" | "find">("");

export function Shortcuts() {
  const open = finding.value, set = (to: typeof open) => { finding.value = to; };
  useEffect(() => {
    let led = 0;
    const press = (e: KeyboardEvent) => {
      const on = e.target as HTMLElement;
      if (e.key === "k" && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && !document.querySelector("dialog[open]")) {
        e.preventDefault();
        return set("find");
      }
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || on.closest("input, textarea, select, dialog, .card, [role=listbox], [role=tablist]")) return;
      const leads = e.timeStamp - led < patience ? screens[e.key] : undefined;
      led = e.key === "g" ? e.timeStamp : 0;
      if (leads) go(leads);
      else if (e.key === "?") set("keys");
      else if (e.key === "/") (document.getElementById("prompt") ?? document.querySelector<HTMLElement>("main [name=text]") ?? document.querySelector<HTMLElement>("main input"))?.focus();
      else if (e.key === "n") { chat.fresh(); go("/"); }
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  if (open === "find") return <Finder close={() => set("")} />;
  return open ? <Dialog title="Keys" close={() => set("")}><div class="stack">{keys.map(([group, of]) => <section key={group}><h3>{group}</h3><dl class="facts keys">{of.map(([k, does]) => <><dt>{k.map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{does}</dd></>)}</dl></section>)}</div></Dialog> : null;
}

const mostFound = 30; // lines
const patienceToFind = 150; // ms without a key before the gateway is asked

interface Hit { name: string; kind: string; act: () => void; more?: string }

// useLater returns a value once it has not changed for a while.
function useLater(value: string): string {
  const [later, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), patienceToFind);
    return () => clearTimeout(timer);
  }, [value]);
  return later;
}

// Finder leads to a screen, a chat, a tool or a run by a part of its name, and does what is on no screen.
function Finder({ close }: { close: () => void }) {
  const [text, setText] = useState(""), want = text.trim(), asked = useLater(want);
  const chats = useResource<{ data: { session_id: string; title: string }[] }>(`api/sessions?limit=8${asked ? `&q=${enc(asked)}` : ""}`);
  const tools = useResource<{ data: { name: string; description: string }[] }>("api/tools");
  const runs = useResource<{ data: Run[] }>(asked ? `api/runs?questions=true&limit=8&${/^run_/.test(asked) ? "run_id" : "text"}=${enc(asked)}` : undefined);
  const fits = (h: Hit) => `${h.name} ${h.more ?? ""}`.toLowerCase().includes(want.toLowerCase());
  const leads = (name: string, kind: string, to: string, more?: string): Hit => ({ name, kind, more, act: () => go(to) });
  const does = (name: string, act: () => void): Hit => ({ name, kind: "action", act });
  const signedIn = session.value?.csrf_token;
  const found = [
    does("New chat", () => { chat.fresh(); go("/"); }),
    ...all.map((s) => leads(s.nav!.label, "screen", s.path)),
    ...(want ? (tools.data?.data ?? []).map((t) => leads(t.name, "tool", `/tools/${enc(t.name)}`, t.description)) : []),
    ...themes.map((t) => does(`Theme: ${t}`, () => { theme.value = t; })), does("Show the keys", () => { finding.value = "keys"; }), ...(signedIn ? [does("Sign out", () => void signOut())] : []),
  ].filter(fits)
    .concat((chats.data?.data ?? []).map((c) => leads(c.title || "Untitled", "chat", `/chats/${enc(c.session_id)}`)))
    .concat((want ? runs.data?.data ?? [] : []).map((r) => leads(r.question || r.run_id, "run", `/runs/${enc(r.run_id)}`))).slice(0, mostFound);
  const order = want ? found : [...found.filter((f) => f.kind !== "action" || f.name === "New chat"), ...found.filter((f) => f.kind === "action" && f.name !== "New chat")];
  return <Dialog title="Find" close={close}><Picker label="A screen, a chat, a tool, a run or an action" text={text} setText={setText} take={(f) => { close(); f.act(); }}
    found={order.map((f, i) => ({ ...f, key: `${f.kind} ${f.name} ${i}`, face: <><span class="pick-name">{visible(f.name)}</span><span class="soft small">{f.kind}</span></> }))} /></Dialog>;
}
