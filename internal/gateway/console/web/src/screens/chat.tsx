// The chat: conversation, message box, what the chat asks of its runs, and the chats that the server keeps.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { enc, isGone, send } from "../api";
import { Box } from "../chat/Box";
import { chat } from "../chat/chat";
import { ChatList, type ListedChat } from "../chat/ChatList";
import { titleOf } from "../chat/message";
import { ModelPicker } from "../chat/ModelPicker";
import { entries, useEntries } from "../chat/models";
import { loadOptions, options, setOptions } from "../chat/options";
import { OptionsDialog, type ChatTool } from "../chat/OptionsDialog";
import { Turn } from "../chat/Turn";
import { announce, copyText, Dialog, Empty, ErrorState, Loading } from "../components/basics";
import { Menu, type Item } from "../components/Drop";
import { Icon } from "../components/Icon";
import { download } from "../download";
import { useResource } from "../resource";
import { go, path } from "../router";
import { count } from "../text/format";
import { visible } from "../text/visible.js";
import { title as documentTitle } from "../title";
import { useWide } from "../wide";
import type { ScreenProps } from "./index";

const mostTries = 3;
const foldedKey = "lathe.chats.folded"; // in localStorage while the list of chats is folded

// triesOf returns questions to begin with: for the tools that the chat has, then general ones.
function triesOf(tools: ChatTool[]): string[] {
  const has = (name: string) => tools.some((t) => t.name === name), sums = has("calculator"), clock = has("get_current_time");
  const more = tools.filter((t) => t.effect === "read_only" && t.name !== "calculator" && t.name !== "get_current_time");
  return [
    sums && clock ? "What is 7 + 35, and what time is it in Tokyo?" : sums ? "What is 12.5 * 48?" : clock && "What time is it in New York?",
    more[0] && `Show me with an example what ${more[0].name} does.`,
    tools.length > 0 && "What can you do with your tools?",
    "Explain step by step how a bicycle stays upright.", "Write a regular expression for dates such as 2026-11-30, with tests.", "Compare three ways to back up a laptop in a table.",
  ].filter((t) => typeof t === "string").slice(0, mostTries);
}

export default function ChatScreen({ params }: ScreenProps) {
  const listedModels = useEntries(), wide = useWide();
  const tools = useResource<{ data: ChatTool[] }>("api/tools");
  const limits = useResource<{ max_text: number; max_body_bytes: number }>("api/limits");
  const [turn, setTurn] = useState(0), [folded, setFolded] = useState(() => localStorage.getItem(foldedKey) !== null), beside = wide && !folded; // beside: the list of chats is beside the chat
  const chats = useResource<{ data: ListedChat[]; next?: string }>(`api/sessions?limit=100`, { every: 30_000 });
  const [dialog, setDialog] = useState<"" | "options" | "delete" | "chats" | "rename" | "files">(""), [target, setTarget] = useState<ListedChat>(); // of delete and rename
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
  const [notice, setNotice] = useState<Error>();
  const take = (file: File) => file.text().then((text) => { chat.adopt(text); go(`/chats/${enc(chat.id)}`); setNotice(undefined); }).catch((e: Error) => setNotice(e));
  const pin = (c: ListedChat) => send("PATCH", `api/sessions/${enc(c.session_id)}`, { pinned: !c.pinned }).then(() => { announce(c.pinned ? "The chat is not pinned any more." : "The chat is pinned."); chats.reload(); }, setNotice);
  const ask = (what: "rename" | "delete", c: ListedChat) => { setTarget(c); setDialog(what); };
  const remove = async (c: ListedChat) => {
    await send("DELETE", `api/sessions/${enc(c.session_id)}`);
    setDialog("");
    if (c.session_id === chat.id) fresh();
    chats.reload();
  };
  const keep = (c: ListedChat): Item[] => [{ name: c.pinned ? "Unpin" : "Pin", act: () => void pin(c) }, { name: "Rename", act: () => ask("rename", c) }];
  const drop = (c: ListedChat): Item => ({ name: "Delete", danger: true, act: () => ask("delete", c) }), itemsOf = (c: ListedChat) => [...keep(c), drop(c)];

  const fold = () => {
    if (folded) localStorage.removeItem(foldedKey);
    else localStorage.setItem(foldedKey, "1");
    setFolded(!folded);
  };
  const freshButton = <button type="button" class={beside ? "quiet" : "icon"} id="fresh" title="New chat" onClick={fresh}><Icon name="fresh" /><span class={beside ? "" : "unseen"}>New chat</span></button>;
  const model = options.value.model, chosen = entries.value.find((e) => model ? e.name === model : e.isDefault);
  const modelName = visible(chosen?.name ?? (model || (listedModels && !entries.value.length ? "No models" : "Default model")));
  return <div class="chat" key="chat" data-turn={turn}>
    {beside && <aside class="chats" id="chats" aria-label="Chats">{freshButton}<ChatList chats={chats} itemsOf={itemsOf} /></aside>}
    <div class={`chat-main${chat.messages.length || chat.loading.value ? "" : " begins"}`}>
      <header class="chat-head">
        {wide ? <button type="button" class="icon chats-fold" title={folded ? "Show the list of chats" : "Fold the list of chats"} aria-expanded={beside} aria-controls={beside ? "chats" : undefined} onClick={fold}><Icon name="chats" /><span class="unseen">List of chats</span></button>
          : <button type="button" class="icon chats-open" title="Chats" onClick={() => setDialog("chats")}><Icon name="chats" /><span class="unseen">Chats</span></button>}
        <h1 class="chat-title" title={visible(title)}>{visible(title)}</h1>
        <ModelPicker id="model" label={`Model: ${modelName}`} class="quiet small pick" chosen={chosen?.isDefault ? "" : model} face={<><span class="pick-name">{modelName}</span><Icon name="down" /></>} take={(name) => setOptions(chat.id, { model: name })} />
        {!beside && freshButton}
        <Menu id="chat-menu" label="More about this chat" face={<Icon name="more" />} items={[
          { id: "options", name: "Options", act: () => setDialog("options") },
          ...listed ? keep(listed) : [],
          first && { name: "Copy chat", act: () => void copyText(chat.transcript()).then(() => announce("Copied.")) },
          { name: first ? "Export or import" : "Import", act: () => setDialog("files") },
          listed && drop(listed),
        ]} />
      </header>
      <Conversation effects={effects} model={modelName} tools={tools.data?.data.filter((t) => t.advertised)} openOptions={() => setDialog("options")} simulated={entries.value.length > 0 && entries.value.every((e) => e.name.startsWith("sim/"))} />
      <Box longest={limits.data?.max_text ?? Infinity} largest={limits.data?.max_body_bytes ?? Infinity} openOptions={() => setDialog("options")} />
    </div>
    {dialog === "files" && <Dialog title={first ? "Export this chat" : "Import a chat"} close={() => setDialog("")}><div class="stack">
      {first && <p>JSON can be imported again, here or on another gateway. Markdown has the texts only.</p>}
      <div class="answers">
        {first && <><button type="button" onClick={() => download(`${title}.json`, "application/json", chat.exported(title))}>Export as JSON</button><button type="button" class="quiet" onClick={() => download(`${title}.md`, "text/markdown", chat.transcript())}>Export as Markdown</button></>}
        <label class="import">Import a chat from JSON<input type="file" accept=".json,application/json" onChange={(e) => { const file = e.currentTarget.files?.[0]; if (file) void take(file).then(() => setDialog("")); }} /></label>
      </div></div></Dialog>}
    {notice && <Dialog title="That did not work" close={() => setNotice(undefined)}><p>{visible(notice.message)}</p></Dialog>}
    {dialog === "options" && <OptionsDialog tools={tools.data?.data ?? []} close={() => setDialog("")} />}
    {dialog === "chats" && <Dialog title="Chats" close={() => setDialog("")}><div onClick={(e) => { if ((e.target as Element).closest("a")) setDialog(""); }}><ChatList chats={chats} itemsOf={itemsOf} /></div></Dialog>}
    {dialog === "rename" && target && <RenameDialog title={target.title} close={() => setDialog("")} rename={async (title) => {
      await send("PATCH", `api/sessions/${enc(target.session_id)}`, { title });
      setDialog("");
      chats.reload();
    }} />}
    {dialog === "delete" && target && <Dialog title="Delete this chat?" close={() => setDialog("")}>
      <div class="stack"><p>The gateway deletes “{visible(target.title || "Untitled")}” with its {target.runs === 1 ? "run" : `${target.runs} runs`}, for good.</p><DeleteButton remove={() => remove(target)} /></div>
    </Dialog>}
  </div>;
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

const near = 80; // px from the end, within which the conversation follows it
const far = (t: HTMLElement) => t.scrollHeight - t.scrollTop - t.clientHeight; // px to the end

interface WelcomeProps { simulated: boolean; model: string; tools?: ChatTool[]; openOptions: () => void }

function Conversation({ effects, ...welcome }: { effects: Map<string, string> } & WelcomeProps) {
  const talk = useRef<HTMLElement>(null), atEnd = useRef(true), top = useRef(0), [away, setAway] = useState(false);
  void chat.revision.value;
  const asked = chat.messages.filter((m) => m.role === "user").length;
  useLayoutEffect(() => { atEnd.current = true; }, [asked]); // who asks sees the answer, wherever the conversation was scrolled to
  const look = (t: HTMLElement) => setAway(far(t) > t.clientHeight / 4);
  useLayoutEffect(() => {
    const t = talk.current!;
    if (t.scrollTop < top.current && far(t) >= near) atEnd.current = false; // scrolled up, and the event of it is still to come
    if (!atEnd.current) return look(t);
    t.scrollTop = t.scrollHeight;
    top.current = t.scrollTop;
  });
  useEffect(() => { atEnd.current = true; }, [chat.id]);
  const newest = () => {
    const t = talk.current!;
    atEnd.current = true;
    t.scrollTop = t.scrollHeight;
    t.focus({ preventScroll: true });
  };
  const loading = chat.loading.value;
  return <><section id="talk" class="talk" role="log" aria-label="Conversation" aria-live="off" tabIndex={0} ref={talk}
    onScroll={(e) => { // what grows below does not end the following, scrolling up does
      const t = e.currentTarget;
      if (far(t) < near) atEnd.current = true;
      else if (t.scrollTop < top.current) atEnd.current = false;
      top.current = t.scrollTop;
      look(t);
    }}>
    {loading === true ? <Loading what="Reading the chat" /> : loading ? <ErrorState error={loading} retry={() => { const id = path.value.split("/")[2]; if (id) void chat.open(decodeURIComponent(id)); }} />
      : chat.messages.length === 0 ? <Welcome {...welcome} />
      : chat.messages.map((m, i) => <Turn key={i} message={m} revision={chat.revisions.get(m) ?? 0} last={m === chat.last} effects={effects} busy={chat.busy.value} />)}
  </section>
    {away && chat.messages.length > 0 && <button type="button" class="quiet small newest" onClick={newest}><Icon name="down" />Newest</button>}</>;
}

function Welcome({ simulated, model, tools, openOptions }: WelcomeProps) {
  const chosen = options.value.tools, used = options.value.mode === "disabled" ? [] : tools?.filter((t) => !chosen || chosen.includes(t.name));
  return <div class="welcome"><Empty title="What should be done?">
    <p>You see which tools the model calls, with which arguments and results. Calls that change something ask for your approval first.</p>
    {used && <p class="small">{model} with <button type="button" class="link" aria-haspopup="dialog" title={visible(used.map((t) => t.name).join(", "))} onClick={openOptions}>{used.length ? count(used.length, "tool") : "no tools"}</button></p>}
  </Empty><div class="tries">{tools && used && triesOf(used).map((t) => <button key={t} type="button" class="quiet" dir="auto" onClick={() => void chat.say(t)}>{visible(t)}</button>)}</div>
    {simulated && <p class="soft small">This gateway has only simulated models. To add one: <code>lathe doctor --base-url URL MODEL --write lathe.yaml</code></p>}
  </div>;
}
