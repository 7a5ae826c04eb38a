// The choice of a model: a button with the one that is chosen, and a list with a search.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Drop } from "../components/Drop";
import { Picker } from "../components/Picker";
import { visible } from "../text/visible.js";
import { entries, type Entry } from "./models";

const faceOf = (e: Entry) => <><span class="pick-name">{visible(e.name)}</span><span class="soft small">{[e.model !== e.name && visible(e.model), e.isDefault && "default"].filter(Boolean).join(", ")}</span>{e.failing && <span class="bad small">{e.failing}</span>}</>;

function List({ label, chosen, take }: { label: string; chosen: string; take: (name: string) => void }) {
  const [text, setText] = useState("");
  const found = entries.value.filter((e) => `${e.name} ${e.model}`.toLowerCase().includes(text.trim().toLowerCase())).map((e) => ({ key: e.isDefault ? "" : e.name, face: faceOf(e) }));
  if (!text && !entries.value.some((e) => e.isDefault)) found.unshift({ key: "", face: <span class="pick-name">Default model</span> });
  return <Picker label={label} text={text} setText={setText} found={found} chosen={chosen} take={(f) => take(f.key)} />;
}

// ModelPicker calls take with the name of an entry, "" for the default.
export function ModelPicker({ id, label, face, class: name, chosen = "", take }: { id?: string; label: string; face: ComponentChildren; class?: string; chosen?: string; take: (name: string) => void }) {
  return <Drop id={id} label={label} kind="dialog" face={face} class={name} disabled={entries.value.length === 0} content={(close) => <List label="Find a model" chosen={chosen} take={(model) => { close(); take(model); }} />} />;
}
