// The message box: text, files, and what the chat asks of its runs beside them.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../components/Icon";
import { FileView } from "../components/ResultView";
import { bytes, count } from "../text/format";
import { visible } from "../text/visible.js";
import { attach, type Attachment } from "./attach";
import { chat } from "./chat";
import { options } from "./options";

// asked says which options of the chat are set, "" if none is.
function asked(): string {
  const { system, tools, mode, temperature, maxTokens } = options.value, modes: Record<string, string> = { relaxed: "tools allowed", enforced: "must call a tool", disabled: "no tools" };
  return [system && "system text", tools && count(tools.length, "tool"), mode && modes[mode], temperature && `temperature ${temperature}`, maxTokens && `at most ${maxTokens} tokens`].filter(Boolean).join(", ");
}

// Box takes a text of any length, and sends one that the server takes.
export function Box({ longest, largest, openOptions }: { longest: number; largest: number; openOptions: () => void }) {
  const box = useRef<HTMLTextAreaElement>(null), file = useRef<HTMLInputElement>(null);
  const [note, setNote] = useState(""), [attached, setAttached] = useState<Attachment[]>([]);
  useEffect(() => setAttached([]), [chat.id]);
  const text = chat.draft.value, busy = chat.busy.value, set = asked();
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
    <div class="composer">
      {attached.length > 0 && <ul class="attached" aria-label="Files of the message">{attached.map((a, i) => <li key={i}>{a.part.mediaType?.startsWith("image/") && <FileView file={{ mediaType: a.part.mediaType, url: a.part.url ?? "" }} name={a.name} />}<span><bdi>{visible(a.name)}</bdi> <span class="soft">{bytes(a.size)}</span></span>
        <button type="button" class="icon" aria-label={`Remove ${visible(a.name)}`} onClick={() => setAttached((all) => all.filter((o) => o !== a))}>×</button></li>)}</ul>}
      <button type="button" class="icon attach" title="Add pictures, PDFs and text files" onClick={() => file.current?.click()}><Icon name="add" /><span class="unseen">Add file</span><input ref={file} type="file" multiple hidden aria-label="Files" onClick={(e) => e.stopPropagation()} onChange={(e) => { void add([...(e.currentTarget.files ?? [])]); e.currentTarget.value = ""; }} /></button>
      <label for="prompt" class="unseen">Message</label>
      <textarea id="prompt" ref={box} rows={1} dir="auto" placeholder="Ask something…" enterkeyhint="send" aria-describedby="too-long" aria-invalid={excess !== ""} value={text}
        onInput={(e) => { chat.draft.value = e.currentTarget.value; }}
        onPaste={(e) => { const files = e.clipboardData?.files; if (files?.length) { e.preventDefault(); void add(files); } }}
        onKeyDown={(e) => {
          if (e.key === "ArrowUp" && !text && !busy && !attached.length && chat.messages.length) { e.preventDefault(); chat.edit(); }
          if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
        }} />
      <button id="send" type="submit" class="round" title="Send" hidden={busy} disabled={excess !== "" || !text.trim() && !attached.length}><Icon name="send" /><span class="unseen">Send</span></button>
      <button id="stop" type="button" class="quiet" hidden={!busy} onClick={() => chat.stop()}><Icon name="stop" />Stop</button>
    </div>
    <p id="too-long" class="too-long" role="alert">{excess || note || (chat.elsewhere.value ? "This chat went on in another tab or window. Its newest messages are shown above; your message was not sent." : "")}</p>
    <p class="hint">{set ? <>Sent with {visible(set)}. <button type="button" class="link" onClick={openOptions}>Change</button></> : <span class="by-keys">{busy ? "Esc stops the answer" : "Enter sends, Shift + Enter begins a new line"}</span>}</p>
  </form>;
}
