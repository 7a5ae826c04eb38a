// What this person should look at: calls that wait, with a notification of the browser if it is allowed, blocked definitions of tools, and servers that failed. The navigation counts them.

import { effect, signal } from "@preact/signals";
import { announce } from "./announce";
import { visible } from "./text/visible.js";
import { connection, get, isGone, Refusal, session } from "./api";

// waitingCount is the number of calls that wait for a decision of this person.
export const waitingCount = signal(0);

// waitingChats has the ids of the chats whose calls wait for a decision of this person.
export const waitingChats = signal<ReadonlySet<string>>(new Set());

// blockedCount is the number of tools that are blocked until this person has looked at their definitions.
export const blockedCount = signal(0);

// servers counts the MCP servers, and those of them that are not connected although they should be.
export const servers = signal({ all: 0, failed: 0 });

export function countServers(list: { state: string }[]) {
  servers.value = { all: list.length, failed: list.filter((s) => isDown(s.state)).length };
}

// isDown reports whether a server in a state has failed.
export const isDown = (state: string) => state === "failed" || state === "backoff";

const every = 10_000, everyServers = 10_000; // ms
let known: Set<string> | undefined;

async function look() {
  const { data } = await get<{ data: { run_id: string; session_id?: string; tool_call_id: string; tool: string }[] }>("api/approvals");
  const chats = data.flatMap((w) => w.session_id ?? []);
  if (chats.length !== waitingChats.value.size || chats.some((id) => !waitingChats.value.has(id))) waitingChats.value = new Set(chats);
  waitingCount.value = data.length;
  const now = new Set(data.map((w) => `${w.run_id} ${w.tool_call_id}`));
  const fresh = data.filter((w) => known && !known.has(`${w.run_id} ${w.tool_call_id}`));
  known = now;
  if (fresh.length) announce(fresh.length === 1 ? `A call of ${visible(fresh[0]!.tool)} waits for your approval.` : `${fresh.length} calls wait for your approval.`);
  if (fresh.length && document.hidden && "Notification" in window && Notification.permission === "granted") {
    new Notification("Lathe: a call waits for you", { body: fresh.map((w) => w.tool).slice(0, 3).join(", "), tag: "lathe-approvals" });
  }
}

// recount counts the waiting calls at once, where the page knows that there is another one or one less.
export const recount = () => void look().catch(() => {});

// watchWaiting looks again and again, also while the page is hidden. It ends on a server without runs.
export function watchWaiting() {
  let timer: ReturnType<typeof setInterval> | undefined;
  const once = () => { if (connection.value !== "lost") look().catch((e: unknown) => { if (isGone(e)) clearInterval(timer); }); };
  timer = setInterval(once, every);
  const stop = effect(() => { if (connection.value === "up") { once(); queueMicrotask(() => stop()); } });
}

// watchServers counts servers, and blocked tools for those who may accept their definitions, again and again while the page is in view.
export function watchServers() {
  let over = false;
  const once = async () => {
    if (over || connection.value !== "up" || document.hidden) return;
    try {
      const { data } = await get<{ data: { state: string; tools: { state: string }[] }[] }>("api/servers");
      countServers(data);
      if (!session.value?.keys_required || session.value.role === "admin") blockedCount.value = data.flatMap((s) => s.tools).filter((t) => t.state === "blocked").length;
    } catch (e) { over = e instanceof Refusal; }
  };
  setInterval(() => void once(), everyServers);
  const stop = effect(() => { if (connection.value === "up" && session.value) { void once(); queueMicrotask(() => stop()); } });
}
