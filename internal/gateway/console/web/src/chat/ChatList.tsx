// The chats that the gateway keeps: a search, and the chats by the day on which they went on last.

import { useState } from "preact/hooks";
import { enc, isGone, now } from "../api";
import { Link, Loading, Time } from "../components/basics";
import { Menu, type Item } from "../components/Drop";
import { Icon } from "../components/Icon";
import { useResource, type Resource } from "../resource";
import { visible } from "../text/visible.js";
import { waitingChats } from "../waiting";
import { chat } from "./chat";

export interface ListedChat { session_id: string; title: string; updated: string; status: string; runs: number; pinned?: boolean }

const day = 86_400_000; // ms
const states: Record<string, [kind: string, sign: string, word: string, about: string]> = { parked: ["wait", "●", "waits", "It waits for you: a call asks for your approval, or a result is missing."], running: ["run", "◌", "answers", "An answer is being written."], failed: ["bad", "✗", "failed", "The newest answer failed."] };

// groupOf names the days under which a chat is listed.
function groupOf(c: ListedChat): string {
  if (c.pinned) return "Pinned";
  const today = new Date(now()).setHours(0, 0, 0, 0), at = Date.parse(c.updated);
  if (at >= today) return "Today";
  if (at >= today - day) return "Yesterday";
  if (at >= today - 7 * day) return "Last 7 days";
  return at >= today - 30 * day ? "Last 30 days" : new Date(at).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

function Row({ c, items }: { c: ListedChat; items: Item[] }) {
  const [kind, sign, word, about] = states[waitingChats.value.has(c.session_id) ? "parked" : c.status] ?? [];
  return <li class="chat-row"><Link to={`/chats/${enc(c.session_id)}`} title={visible([c.title, about].filter(Boolean).join(" · "))} aria-current={c.session_id === chat.id ? "page" : undefined}>
    <span class="chat-name">{c.pinned && <span class="pinned">★ <span class="unseen">pinned </span></span>}{visible(c.title || "Untitled")}</span>
    {word ? <span class={`chat-when chat-state ${kind}`}><span aria-hidden="true">{sign} </span>{word}</span> : <span class="soft chat-when"><Time at={c.updated} /></span>}</Link><Menu label={`More about ${visible(c.title || "Untitled")}`} face={<Icon name="more" />} items={items} /></li>;
}

// ChatList lists the chats, each with what itemsOf offers for it.
export function ChatList({ chats, itemsOf }: { chats: Resource<{ data: ListedChat[] }>; itemsOf: (c: ListedChat) => Item[] }) {
  const [search, setSearch] = useState("");
  const found = useResource<{ data: ListedChat[] }>(search ? `api/sessions?limit=100&q=${enc(search)}` : undefined);
  const rows = (search ? found.data : chats.data)?.data;
  const groups = new Map<string, ListedChat[]>();
  for (const c of rows ?? []) {
    const name = search ? "Found" : groupOf(c);
    groups.set(name, [...groups.get(name) ?? [], c]);
  }
  void chat.revision.value;
  return <div class="chat-list">
    <input type="search" aria-label="Search chats" placeholder="Search chats" value={search} onInput={(e) => setSearch(e.currentTarget.value.trim())} />
    {chats.error && !chats.data ? <p class="soft small">{isGone(chats.error) ? "This gateway stores no chats: it has no store." : visible(chats.error.message)}</p>
      : rows === undefined ? <Loading /> : rows.length === 0 ? <p class="soft small">{search ? "No chat has this in its title or its messages." : "Your chats will be listed here."}</p>
      : [...groups].map(([name, of]) => <section key={name}><h3>{name}</h3><ul>{of.map((c) => <Row key={c.session_id} c={c} items={itemsOf(c)} />)}</ul></section>)}
  </div>;
}
