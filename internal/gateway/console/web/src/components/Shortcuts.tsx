// The keys of the page, shown by ?, and those that work on every screen.

import { useEffect, useState } from "preact/hooks";
import { chat } from "../chat/chat";
import { go } from "../router";
import { Dialog } from "./basics";

const keys: [keys: string, does: string][] = [
  ["?", "shows this list"], ["/", "leads to the message box, or to the search of a screen"], ["n", "begins a new chat"],
  ["g, then c, a, r, t or s", "opens the chat, approvals, runs, tools or statistics"],
  ["Enter, Shift + Enter", "sends a message, begins a new line"], ["Esc", "stops an answer, or leaves what is edited"],
  ["j, k, arrows", "move in lists, in the timeline and among approvals"], ["a, r", "approve or deny the call in focus"], ["+, −", "zoom in the timeline"],
];
const screens: Record<string, string> = { c: "/", a: "/approvals", r: "/runs", t: "/tools", s: "/stats" };
const patience = 1500; // ms between g and the next key

export function Shortcuts() {
  const [open, set] = useState(false);
  useEffect(() => {
    let led = 0;
    const press = (e: KeyboardEvent) => {
      const on = e.target as HTMLElement;
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || on.closest("input, textarea, select, dialog, .card, [role=listbox], [role=tablist]")) return;
      const leads = e.timeStamp - led < patience ? screens[e.key] : undefined;
      led = e.key === "g" ? e.timeStamp : 0;
      if (leads) go(leads);
      else if (e.key === "?") set(true);
      else if (e.key === "/") (document.getElementById("prompt") ?? document.querySelector<HTMLElement>("main [name=text]") ?? document.querySelector<HTMLElement>("main input"))?.focus();
      else if (e.key === "n") { chat.fresh(); go("/"); }
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return open ? <Dialog title="Keys" close={() => set(false)}><dl class="facts">{keys.map(([k, does]) => <><dt class="mono">{k}</dt><dd>{does}</dd></>)}</dl></Dialog> : null;
}
