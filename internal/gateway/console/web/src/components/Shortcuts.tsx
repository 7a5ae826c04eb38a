// The keys of the page, shown by ?, and those that work on every screen.

import { useEffect, useState } from "preact/hooks";
import { chat } from "../chat/chat";
import { enc } from "../api";
import { go } from "../router";
import { useResource } from "../resource";
import { screens as screenList } from "../screens";
import { visible } from "../text/visible.js";
import { Dialog } from "./basics";
import { Picker } from "./Picker";

const all = screenList.filter((s) => s.nav);
const keys: [keys: string, does: string][] = [
  ["?", "shows this list"], ["Ctrl + K, ⌘ + K", "finds a screen or a chat by its name"], ["/", "leads to the message box, or to the search of a screen"], ["n", "begins a new chat"],
  ["g, then c, a, r, t or s", "opens the chat, approvals, runs, tools or statistics"],
  ["Enter, Shift + Enter", "sends a message, begins a new line"], ["Esc", "stops an answer, or leaves what is edited"],
  ["j, k, arrows", "move in lists, in the timeline and among approvals"], ["a, r", "approve or deny the call in focus"], ["+, −", "zoom in the timeline"],
];
const screens: Record<string, string> = { c: "/", a: "/approvals", r: "/runs", t: "/tools", s: "/stats" };
const patience = 1500; // ms between g and the next key

export function Shortcuts() {
  const [open, set] = useState<"" | "keys" | "find">("");
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
  return open ? <Dialog title="Keys" close={() => set("")}><dl class="facts">{keys.map(([k, does]) => <><dt class="mono">{k}</dt><dd>{does}</dd></>)}</dl></Dialog> : null;
}

const mostFound = 12; // lines

// Finder leads to a screen or a chat by a part of its name.
function Finder({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const chats = useResource<{ data: { session_id: string; title: string }[] }>(`api/sessions?limit=20${text.trim() ? `&q=${enc(text.trim())}` : ""}`);
  const fits = (name: string) => name.toLowerCase().includes(text.trim().toLowerCase());
  const found = [{ name: "New chat", kind: "", to: "/" }, ...all.map((s) => ({ name: s.nav!.label, kind: "screen", to: s.path }))].filter((f) => fits(f.name))
    .concat((chats.data?.data ?? []).map((c) => ({ name: c.title || "Untitled", kind: "chat", to: `/chats/${enc(c.session_id)}` }))).slice(0, mostFound);
  const open = (f: { kind: string; to: string }) => {
    close();
    if (!f.kind) chat.fresh();
    go(f.to);
  };
  return <Dialog title="Find" close={close}><Picker label="A screen or a chat" text={text} setText={setText} take={open}
    found={found.map((f) => ({ ...f, key: f.kind + f.to, face: <><span>{visible(f.name)}</span><span class="soft small">{f.kind}</span></> }))} /></Dialog>;
}
