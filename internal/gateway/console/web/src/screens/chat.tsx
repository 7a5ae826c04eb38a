// The chat: conversation, message box, what the chat asks of its runs, and the chats that the server keeps.

import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { enc, isGone, send } from "../api";
import { download } from "../download";
import { attach, type Attachment } from "../chat/attach";
import { chat } from "../chat/chat";
import { textOf, titleOf, type Message } from "../chat/message";
import { loadOptions, options, setOptions, wrong } from "../chat/options";
import { Facts, Parts, ProblemBox, reasons, Working } from "../chat/parts";
import { announce, Copy, Dialog, Empty, ErrorState, Link, Loading, Time } from "../components/basics";
import { FileView } from "../components/ResultView";
import { useResource } from "../resource";
import { go, path } from "../router";
import { bytes } from "../text/format";
import { visible } from "../text/visible.js";
import { title as documentTitle } from "../title";
import type { ScreenProps } from "./index";

const none: string[] = [];
const tries = ["What is 7 + 35, and what time is it in Tokyo?", "What is 12.5 * 48?", "What time is it in New York?"];

interface Tool { name: string; description: string; effect: string; policy: string; advertised: boolean; origin?: string }
interface ListedChat { session_id: string; title: string; updated: string; status: string; runs: number; pinned?: boolean }

export default function ChatScreen({ params }: ScreenProps) {
  const models = useResource<{ data: { id: string }[] }>("v1/models");
  const tools = useResource<{ data: Tool[] }>("api/tools");
  const limits = useResource<{ max_text: number; max_body_bytes: number }>("api/limits");
  const [turn, setTurn] = useState(0);
  const chats = useResource<{ data: ListedChat[]; next?: string }>(`api/sessions?limit=100`, { every: 30_000 });
  const [more, setMore] = useState(false); // on a narrow screen: all that can be done with the chat
  const [dialog, setDialog] = useState<"" | "options" | "delete" | "chats" | "rename" | "files">("");
  void chat.revision.value;

  useEffect(() => {
    if (params.id && params.id !== chat.id) void chat.open(params.id).then(() => setTurn((n) => n + 1));
    else if (!params.id && chat.messages.length) go(`/chats/${enc(chat.id)}`, { replace: true });
    loadOptions(params.id ?? chat.id);
  }, [params.id]);
  useEffect(() => { if (chat.messages.length && path.value === "/") go(`/chats/${enc(chat.id)}`, { replace: true }); });
  useEffect(() => { chat.onChange = chats.reload; });
  useEffect(() => {
    if (chats.data) chat.durable = true;
    else if (chats.error && isGone(chats.error)) chat.durable = false;
    else return;
    if (!chat.busy.value) void chat.again();
  }, [chats.data !== undefined, chats.error !== undefined]);

  const updated = chats.data?.data.find((c) => c.session_id === chat.id)?.updated;
  useEffect(() => { if (updated) void chat.catchUp(); }, [updated]);

  const effects = new Map(tools.data?.data.map((t) => [t.name, t.effect]));
  const listed = chats.data?.data.find((c) => c.session_id === chat.id);
  const first = chat.messages[0];
  const title = listed?.title || (first && titleOf(first)) || "New chat";
  useEffect(() => { documentTitle.value = first ? `${title} · Lathe` : "Lathe"; }, [title, first]);
  const fresh = () => {
    chat.fresh();
    go("/");
    loadOptions(chat.id);
    document.getElementById("prompt")?.focus();
  };
  const names = models.data?.data.map((m) => m.id) ?? [];
  const labels = useModelLabels();
  const [notice, setNotice] = useState<Error>();
  const take = (file: File) => file.text().then((text) => { chat.adopt(text); go(`/chats/${enc(chat.id)}`); setNotice(undefined); }).catch((e: Error) => setNotice(e));
  const pin = () => send("PATCH", `api/sessions/${enc(chat.id)}`, { pinned: !listed?.pinned }).then(() => { announce(listed?.pinned ? "The chat is not pinned any more." : "The chat is pinned."); chats.reload(); }, setNotice);
  const remove = async () => {
    await send("DELETE", `api/sessions/${enc(chat.id)}`);
    setDialog("");
    fresh();
    chats.reload();
  };

  return <div class="chat" key="chat" data-turn={turn}>
    <aside class="chats" aria-label="Chats"><ChatList chats={chats} /></aside>
    <div class="chat-main">
      <header class={`chat-head${more ? " more" : ""}`}>
        <h1 class="chat-title" title={visible(title)}>{visible(title)}</h1>
        <button type="button" class="quiet small" id="fresh" onClick={fresh}>New chat</button>
        <button type="button" class="quiet small chats-open" onClick={() => setDialog("chats")}>Chats</button>
        <label class="pick"><span class="unseen">Model</span> <select id="model" disabled={names.length === 0} value={names.includes(options.value.model) ? options.value.model : ""} onChange={(e) => setOptions(chat.id, { model: e.currentTarget.value })}>
          <option value="">{names.length ? "default model" : "no models"}</option>{names.map((n) => <option key={n} value={n}>{visible(labels(n))}</option>)}
        </select></label>
        <button type="button" class="quiet small" id="options" onClick={() => setDialog("options")}>Options{options.value.system || options.value.tools || options.value.mode || options.value.temperature || options.value.maxTokens ? " •" : ""}</button>
        <button type="button" class="quiet small chat-more" aria-expanded={more} onClick={() => setMore(!more)}>{more ? "Less" : "More"}</button>
        <div class="chat-acts">
          {first && <Copy text={() => chat.transcript()} label="Copy chat" />}
          {listed && <button type="button" class="quiet small" aria-pressed={listed.pinned ?? false} onClick={() => void pin()}>{listed.pinned ? "Unpin" : "Pin"}</button>}
          <button type="button" class="quiet small" onClick={() => setDialog("files")}>{first ? "Export" : "Import"}</button>
          {listed && <button type="button" class="quiet small" onClick={() => setDialog("rename")}>Rename</button>}
          {listed && <button type="button" class="quiet small" onClick={() => setDialog("delete")}>Delete</button>}
        </div>
      </header>
      <Conversation names={names} effects={effects} simulated={names.length > 0 && names.every((n) => n.startsWith("sim/"))} />
      <Box longest={limits.data?.max_text ?? Infinity} largest={limits.data?.max_body_bytes ?? Infinity} />
    </div>
    {dialog === "files" && <Dialog title={first ? "Export this chat" : "Import a chat"} close={() => setDialog("")}><div class="stack">
      {first && <p>JSON can be imported again, here or on another gateway. Markdown has the texts only.</p>}
      <div class="answers">
        {first && <><button type="button" onClick={() => download(`${title}.json`, "application/json", chat.exported(title))}>Export as JSON</button><button type="button" class="quiet" onClick={() => download(`${title}.md`, "text/markdown", chat.transcript())}>Export as Markdown</button></>}
        <label class="import">Import a chat from JSON<input type="file" accept=".json,application/json" onChange={(e) => { const file = e.currentTarget.files?.[0]; if (file) void take(file).then(() => setDialog("")); }} /></label>
      </div></div></Dialog>}
    {notice && <Dialog title="That did not work" close={() => setNotice(undefined)}><p>{visible(notice.message)}</p></Dialog>}
    {dialog === "options" && <OptionsDialog tools={tools.data?.data ?? []} close={() => setDialog("")} />}
    {dialog === "chats" && <Dialog title="Chats" close={() => setDialog("")}><div onClick={(e) => { if ((e.target as Element).closest("a")) setDialog(""); }}><ChatList chats={chats} /></div></Dialog>}
    {dialog === "rename" && <RenameDialog title={listed?.title ?? ""} close={() => setDialog("")} rename={async (title) => {
      await send("PATCH", `api/sessions/${enc(chat.id)}`, { title });
      setDialog("");
      chats.reload();
    }} />}
    {dialog === "delete" && <Dialog title="Delete this chat?" close={() => setDialog("")}>
      <div class="stack"><p>The gateway deletes “{visible(title)}” with its {listed?.runs === 1 ? "run" : `${listed?.runs ?? ""} runs`}, for good.</p><DeleteButton remove={remove} /></div>
    </Dialog>}
  </div>;
}

// useModelLabels returns how the list of models names each: with the model that its server has, and whether all its calls of the last hour failed.
function useModelLabels(): (name: string) => string {
  const models = useResource<{ data: { name: string; model?: string }[] }>("api/models");
  const stats = useResource<{ models: { name?: string; model_calls?: { calls: number; errors: number } }[] }>("api/stats?since=1h&buckets=1", { every: 60_000 });
  return (name) => {
    const model = models.data?.data.find((m) => m.name === name)?.model, calls = stats.data?.models.find((m) => m.name === name)?.model_calls;
    return `${name}${model && model !== name ? ` (${model})` : ""}${calls && calls.errors === calls.calls ? `, failing: ${calls.errors} of ${calls.calls} calls` : ""}`;
  };
}

function RenameDialog({ title, rename, close }: { title: string; rename: (title: string) => Promise<void>; close: () => void }) {
  const [text, setText] = useState(title);
  const [error, setError] = useState<Error>();
  const long = new TextEncoder().encode(text).length > 120;
  return <Dialog title="Rename this chat" close={close}><form class="stack" onSubmit={(e) => { e.preventDefault(); if (!long) void rename(text.trim()).catch(setError); }}>
    <label for="chat-name">Title. Left empty, it is the first question again.</label>
    <input id="chat-name" autocomplete="off" aria-invalid={long} value={text} onInput={(e) => setText(e.currentTarget.value)} />
    {long && <p class="problem" role="alert">A title has at most 120 bytes.</p>}
    {error && <ErrorState error={error} />}
    <div class="answers"><button type="submit" disabled={long}>Rename</button></div>
  </form></Dialog>;
}

function DeleteButton({ remove }: { remove: () => Promise<void> }) {
  const [error, setError] = useState<Error>();
  return <>{error && <ErrorState error={error} />}<div class="answers"><button type="button" class="danger" onClick={() => void remove().catch(setError)}>Delete for good</button></div></>;
}

function ChatList({ chats }: { chats: ReturnType<typeof useResource<{ data: ListedChat[]; next?: string }>> }) {
  const [search, setSearch] = useState("");
  const found = useResource<{ data: ListedChat[] }>(search ? `api/sessions?limit=100&q=${enc(search)}` : undefined);
  const rows = (search ? found.data : chats.data)?.data;
  return <div class="chat-list">
    <input type="search" aria-label="Search chats" placeholder="Search chats" value={search} onInput={(e) => setSearch(e.currentTarget.value.trim())} />
    {chats.error && !chats.data ? <p class="soft small">{isGone(chats.error) ? "This gateway stores no chats: it has no store." : visible(chats.error.message)}</p>
      : rows === undefined ? <Loading /> : rows.length === 0 ? <p class="soft small">{search ? "No chat has this in its title or its messages." : "Chats appear here."}</p>
      : <ul>{rows.map((c) => <li key={c.session_id}><Link to={`/chats/${enc(c.session_id)}`} aria-current={c.session_id === chat.id ? "page" : undefined}>
        <span class="chat-name">{c.pinned && <span class="pinned" title="pinned">★ <span class="unseen">pinned </span></span>}{visible(c.title || "Untitled")}</span><span class="soft small"><Time at={c.updated} />{c.status === "parked" ? " · waits" : c.status === "running" ? " · working" : c.status === "failed" ? " · failed" : ""}</span></Link></li>)}</ul>}
  </div>;
}

function Conversation({ effects, names, simulated }: { effects: Map<string, string>; names: string[]; simulated: boolean }) {
  const talk = useRef<HTMLElement>(null), atEnd = useRef(true), top = useRef(0);
  void chat.revision.value;
  const asked = chat.messages.filter((m) => m.role === "user").length;
  useLayoutEffect(() => { atEnd.current = true; }, [asked]); // who asks sees the answer, wherever the conversation was scrolled to
  useLayoutEffect(() => { if (atEnd.current && talk.current) talk.current.scrollTop = talk.current.scrollHeight; });
  useEffect(() => { atEnd.current = true; }, [chat.id]);
  const loading = chat.loading.value;
  return <section id="talk" class="talk" role="log" aria-label="Conversation" aria-live="off" tabIndex={0} ref={talk}
    onScroll={(e) => { // what grows below does not end the following, scrolling up does
      const t = e.currentTarget;
      if (t.scrollHeight - t.scrollTop - t.clientHeight < 80) atEnd.current = true;
      else if (t.scrollTop < top.current) atEnd.current = false;
      top.current = t.scrollTop;
    }}>
    {loading === true ? <Loading what="Reading the chat" /> : loading ? <ErrorState error={loading} retry={() => { const id = path.value.split("/")[2]; if (id) void chat.open(decodeURIComponent(id)); }} />
      : chat.messages.length === 0 ? <Welcome simulated={simulated} />
      : chat.messages.map((m, i) => <Turn key={i} message={m} revision={chat.revisions.get(m) ?? 0} last={m === chat.last} effects={effects} names={m === chat.last ? names : none} busy={chat.busy.value} />)}
  </section>;
}

function Welcome({ simulated }: { simulated: boolean }) {
  return <div class="welcome"><Empty title="What should be done?">
    <p>Ask, and watch which tools the model calls, with what, and what they say. Calls that change something wait for your approval.</p>
    {simulated && <p>This gateway has only simulated models. Configure one in lathe.yaml: <code>lathe doctor --base-url URL MODEL --write lathe.yaml</code></p>}
  </Empty><div class="tries">{tries.map((t) => <button key={t} type="button" class="quiet" dir="auto" onClick={() => void chat.say(t)}>{t}</button>)}</div></div>;
}

// Versions leads to the other versions of a message.
function Versions({ message, busy }: { message: Message; busy: boolean }) {
  const [at, of] = chat.branches.place(chat.messages, chat.messages.indexOf(message));
  return of < 2 ? null : <span class="versions" role="group" aria-label="Versions">
    <button type="button" class="quiet small" aria-label="Previous version" disabled={busy || at === 1} onClick={() => chat.turn(message, -1)}>‹</button>
    <span class="num" aria-label={`Version ${at} of ${of}`}>{at}/{of}</span>
    <button type="button" class="quiet small" aria-label="Next version" disabled={busy || at === of} onClick={() => chat.turn(message, 1)}>›</button></span>;
}

// Editor changes a question in its place. Nothing else changes until it is sent.
function Editor({ message }: { message: Message }) {
  const box = useRef<HTMLTextAreaElement>(null);
  const [text, set] = useState(() => message.parts.map((p) => p.filename ? "" : p.text ?? "").join(""));
  useEffect(() => { box.current?.focus(); }, []);
  const submit = () => { if (text.trim()) void chat.replace(message, text.trim()); };
  const later = chat.messages.length - chat.messages.indexOf(message) - 1;
  return <form class="stack own-editor" onSubmit={(e) => { e.preventDefault(); submit(); }}>
    <textarea ref={box} aria-label="Edited question" rows={3} dir="auto" value={text} onInput={(e) => set(e.currentTarget.value)} onKeyDown={(e) => {
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
      if (e.key === "Escape") { e.preventDefault(); chat.endEdit(); document.getElementById("prompt")?.focus(); }
    }} />
    {later > 0 && <p class="meta">{later === 1 ? "The message" : `The ${later} messages`} below stay as another version.</p>}
    <div class="answers"><button type="submit" class="small" disabled={!text.trim()}>Send</button><button type="button" class="quiet small" onClick={() => { chat.endEdit(); document.getElementById("prompt")?.focus(); }}>Cancel</button></div>
  </form>;
}

// A Turn is drawn again when its message has changed: revision says so.
const Turn = memo(({ message: m, revision, last, effects, names, busy }: { message: Message; revision: number; last: boolean; effects: Map<string, string>; names: string[]; busy: boolean }) => {
  const editing = chat.editing.value === m;
  const meta = m.metadata ?? {}, made = m.parts.some((p) => p.state === "output-available");
  return <article class={`turn ${m.role}`} aria-label={m.role === "user" ? "You" : "Assistant"}>
    {editing ? <Editor message={m} /> : <Parts message={m} revision={revision} effects={effects} />}
    {m.working ? <Working message={m} revision={revision} /> : m.role === "assistant" ? <>
      {m.problem ? <ProblemBox {...m.problem}>{last && <>
        <button type="button" onClick={() => void chat.retry()}>Try again</button><button type="button" class="quiet" onClick={() => chat.edit()}>Edit the question</button>
        {made && <small>Calls above were made. They may be made once more.</small>}
      </>}</ProblemBox> : reasons[meta.reason ?? ""] ? <div class="problem note" role="note">{reasons[meta.reason!]}</div> : null}
      <div class="meta"><Versions message={m} busy={busy} /><Facts message={m} revision={revision} />{textOf(m) && <Copy text={() => textOf(m)} />}{last && !busy && !m.problem && meta.reason !== "awaiting_approval" && <><button type="button" class="quiet small" onClick={() => void chat.retry()}>Answer again</button>
        {names.length > 1 && <select class="small" aria-label="Answer again with another model" value="" onChange={(e) => void chat.retry(e.currentTarget.value)}><option value="" disabled>with…</option>{names.map((n) => <option key={n} value={n}>{visible(n)}</option>)}</select>}</>}</div>
    </> : editing ? null : <div class="meta user-actions"><Versions message={m} busy={busy} /><Copy text={() => m.parts.map((p) => p.text ?? "").join("")} />{!busy && <button type="button" class="quiet small" onClick={() => chat.edit(m)}>Edit</button>}</div>}
  </article>;
}, (a, b) => a.message === b.message && a.revision === b.revision && a.last === b.last && a.busy === b.busy && a.names.length === b.names.length && a.effects.size === b.effects.size);

// Box takes a text of any length, and sends one that the server takes.
function Box({ longest, largest }: { longest: number; largest: number }) {
  const box = useRef<HTMLTextAreaElement>(null), file = useRef<HTMLInputElement>(null);
  const [note, setNote] = useState(""), [attached, setAttached] = useState<Attachment[]>([]);
  useEffect(() => setAttached([]), [chat.id]);
  const text = chat.draft.value, busy = chat.busy.value;
  const excessOf = (said: string) => {
    const characters = said.length <= longest ? said.length : [...said].length; // characters are fewer than code units
    return characters > longest ? `The message has ${characters.toLocaleString()} characters; this gateway takes ${longest.toLocaleString()}. Shorten it, or raise the limit (serve.max_text in lathe.yaml). Nothing was cut off or sent.` : "";
  };
  const excess = excessOf(text);
  const submit = () => {
    const said = chat.draft.value.trim();
    if (!said && !attached.length || chat.busy.value || excessOf(said)) return;
    chat.draft.value = "";
    setNote("");
    void chat.send(said, attached.map((a) => a.part)).then((sent) => { if (sent) setAttached([]); });
  };
  const add = async (chosen: Iterable<File>) => { // a file that cannot be added does not keep the others away
    const wrong: string[] = [], good: Attachment[] = [];
    for (const f of chosen) await attach(f, largest).then((a) => good.push(a), (e: Error) => wrong.push(e.message));
    setAttached((all) => [...all, ...good]);
    setNote(wrong.join(" "));
    box.current?.focus();
  };
  useEffect(() => {
    const stop = (e: KeyboardEvent) => { if (e.key === "Escape" && chat.busy.value && !e.defaultPrevented && !document.querySelector("dialog[open]")) chat.stop(); };
    addEventListener("keydown", stop);
    return () => removeEventListener("keydown", stop);
  }, []);
  useEffect(() => { if (document.activeElement === document.body && matchMedia("(hover: hover)").matches) box.current?.focus(); }, [chat.id]); // a keyboard on a screen appears when it is asked for
  return <form id="form" class="box" onSubmit={(e) => { e.preventDefault(); submit(); }} onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); void add(e.dataTransfer?.files ?? []); }}>
    {attached.length > 0 && <ul class="attached" aria-label="Files of the message">{attached.map((a, i) => <li key={i}>{a.part.mediaType?.startsWith("image/") && <FileView file={{ mediaType: a.part.mediaType, url: a.part.url ?? "" }} name={a.name} />}<span><bdi>{visible(a.name)}</bdi> <span class="soft">{bytes(a.size)}</span></span>
      <button type="button" class="quiet small" aria-label={`Remove ${visible(a.name)}`} onClick={() => setAttached((all) => all.filter((o) => o !== a))}>×</button></li>)}</ul>}
    <label for="prompt" class="unseen">Message</label>
    <textarea id="prompt" ref={box} rows={1} dir="auto" placeholder="Ask something…" enterkeyhint="send" aria-describedby="too-long" aria-invalid={excess !== ""} value={text}
      onInput={(e) => { chat.draft.value = e.currentTarget.value; }}
      onPaste={(e) => { const files = e.clipboardData?.files; if (files?.length) { e.preventDefault(); void add(files); } }}
      onKeyDown={(e) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); } }} />
    <div class="box-actions">
      <button type="button" class="quiet attach" title="Add pictures, PDFs and text files" onClick={() => file.current?.click()}>Add file<input ref={file} type="file" multiple hidden aria-label="Files" onClick={(e) => e.stopPropagation()} onChange={(e) => { void add([...(e.currentTarget.files ?? [])]); e.currentTarget.value = ""; }} /></button>
      <button id="send" type="submit" hidden={busy} disabled={excess !== ""}>Send</button>
      <button id="stop" type="button" class="danger" hidden={!busy} onClick={() => chat.stop()}>Stop</button>
    </div>
    <p id="too-long" class="too-long" role="alert">{excess || note || (chat.elsewhere.value ? "This chat went on in another tab or window. Its newest messages are shown above; your message was not sent." : "")}</p>
    <p class="hint">Enter sends, Shift + Enter begins a new line, Esc stops the answer.</p>
  </form>;
}

// OptionsDialog changes what this chat asks of its runs.
function OptionsDialog({ tools, close }: { tools: Tool[]; close: () => void }) {
  const o = options.value, set = (change: Parameters<typeof setOptions>[1]) => setOptions(chat.id, change);
  const usable = tools.filter((t) => t.advertised);
  return <Dialog title="Options of this chat" close={close}>
    <div class="stack chat-options">
      <p class="soft small">They hold for the next messages of this chat, and are kept in this browser.</p>
      <label for="system">System text</label>
      <textarea id="system" rows={4} value={o.system} placeholder="What the model should know before the conversation" onInput={(e) => set({ system: e.currentTarget.value })} />
      <label for="temperature">Temperature, 0 to 2</label>
      <input id="temperature" inputMode="decimal" autocomplete="off" placeholder="as the model has it" value={o.temperature ?? ""} onInput={(e) => set({ temperature: e.currentTarget.value.trim() })} />
      <label for="max-tokens">Longest answer, in tokens</label>
      <input id="max-tokens" inputMode="numeric" autocomplete="off" placeholder="as the model has it" value={o.maxTokens ?? ""} onInput={(e) => set({ maxTokens: e.currentTarget.value.trim() })} />
      {wrong(o) && <p class="problem" role="alert">{wrong(o)} It is not sent.</p>}
      <label for="mode">Tool choice</label>
      <select id="mode" value={o.mode} onChange={(e) => set({ mode: e.currentTarget.value as typeof o.mode })}>
        <option value="">as the gateway has it</option><option value="relaxed">the model may call tools</option><option value="enforced">the model must call a tool</option><option value="disabled">no tools</option>
      </select>
      <fieldset><legend>Tools</legend>
        <label class="check"><input type="checkbox" checked={o.tools === null} onChange={(e) => set({ tools: e.currentTarget.checked ? null : usable.map((t) => t.name) })} /> all that this gateway offers ({usable.length})</label>
        {o.tools !== null && usable.map((t) => <label class="check" key={t.name}><input type="checkbox" checked={o.tools!.includes(t.name)} onChange={(e) => set({ tools: e.currentTarget.checked ? [...o.tools!, t.name] : o.tools!.filter((n) => n !== t.name) })} /> <b class="mono">{visible(t.name)}</b> <span class="soft small">{visible(t.description).slice(0, 100)}</span></label>)}
      </fieldset>
    </div>
  </Dialog>;
}
