// The controls of a value that a JSON Schema describes.

import { useId, useState } from "preact/hooks";
import { visible } from "../text/visible";
import { from, initial, limitsOf, Raw, shape, text, type Json, type Schema } from "../schema";

interface Props { label: string; schema: unknown; root: unknown; value: Json | undefined; required: boolean; change: (v: Json | undefined) => void; depth?: number }

const maxDepth = 8;

export function SchemaField(p: Props) {
  const id = useId();
  const s = shape(p.schema, p.root);
  const depth = p.depth ?? 0;
  const about = visible([typeof s.schema.description === "string" ? s.schema.description : "", limitsOf(s.schema)].filter(Boolean).join(" · "));
  const hint = about && <span id={`${id}-d`} class="soft small">{about}</span>;
  const described = about ? `${id}-d` : undefined;
  const label = <label for={id}>{visible(p.label)}{p.required && <span class="soft"> required</span>}</label>;
  const absent = p.value === undefined;
  const kind = depth >= maxDepth ? "any" : s.kind;
  const group = kind === "object" || kind === "array" || kind === "variants";

  if (absent && (group || kind === "any")) return <div class="form-field"><span class="small">{visible(p.label)}</span>{hint}
    <div><button type="button" class="quiet small" onClick={() => p.change(s.schema.default !== undefined ? from(s.schema.default) : initial(s.kind === "variants" ? s.variants[0] : { ...s.schema, default: undefined }, p.root))}>Add {visible(p.label)}</button></div></div>;
  const asNull = s.nullable && <label class="small form-null"><input type="checkbox" checked={p.value === null} onChange={(e) => p.change(e.currentTarget.checked ? null : initial(s.kind === "variants" ? s.variants[0] : { ...s.schema, type: s.kind === "any" || s.kind === "choice" ? s.schema.type : s.kind === "number" ? "number" : s.kind, ...(s.kind === "choice" ? { enum: s.choices } : {}) }, p.root))} /> null</label>;
  if (p.value === null && s.nullable) return <div class="form-field"><span class="small">{visible(p.label)}</span>{hint}{asNull}{!p.required && <Remove {...p} />}</div>;

  if (group) return <fieldset class="form-group"><legend>{visible(p.label)}{p.required && depth > 0 && <span class="soft"> required</span>}</legend>{hint}{asNull}
    {kind === "object" && <Members {...p} of={s.schema} depth={depth} />}
    {kind === "array" && <Items {...p} of={s.schema} depth={depth} />}
    {kind === "variants" && <Variants {...p} of={s.variants} depth={depth} />}
    {!p.required && depth > 0 && <Remove {...p} />}
  </fieldset>;

  if (kind === "choice") {
    const at = s.choices.findIndex((c) => !absent && text(from(c)) === text(p.value));
    return <div class="form-field">{label}<select id={id} aria-describedby={described} value={String(at)} onChange={(e) => { const n = Number(e.currentTarget.value); p.change(n < 0 ? undefined : from(s.choices[n])); }}>
      {(!p.required || at < 0) && <option value="-1">not given</option>}
      {s.choices.map((c, i) => <option key={i} value={String(i)}>{visible(typeof c === "string" ? c : JSON.stringify(c))}</option>)}</select>{hint}{asNull}</div>;
  }
  if (kind === "boolean") return <div class="form-field">{label}<select id={id} aria-describedby={described} value={absent ? "" : String(p.value)} onChange={(e) => p.change(e.currentTarget.value === "" ? undefined : e.currentTarget.value === "true")}>
    {(!p.required || absent) && <option value="">not given</option>}<option value="true">true</option><option value="false">false</option></select>{hint}{asNull}</div>;
  if (kind === "number") return <div class="form-field">{label}<input id={id} inputMode="decimal" autocomplete="off" required={p.required} aria-describedby={described} value={p.value instanceof Raw ? p.value.text : ""} onInput={(e) => { const t = e.currentTarget.value.trim(); p.change(t === "" && !p.required ? undefined : new Raw(t, true)); }} />{hint}{asNull}</div>;
  if (kind === "string") {
    const value = typeof p.value === "string" ? p.value : "";
    const set = (t: string) => p.change(t === "" && !p.required ? undefined : t);
    const long = value.length > 60 || value.includes("\n") || Number(s.schema.maxLength) > 200;
    return <div class="form-field">{label}{long ? <textarea id={id} rows={4} aria-describedby={described} value={value} onInput={(e) => set(e.currentTarget.value)} />
      : <input id={id} autocomplete="off" aria-describedby={described} value={value} onInput={(e) => set(e.currentTarget.value)} />}{hint}{asNull}</div>;
  }
  return <AnyJson {...p} id={id} described={described} label={<>{label}{hint}{asNull}</>} />;
}

const Remove = ({ change, label }: Props) => <div><button type="button" class="quiet small" onClick={() => change(undefined)}>Leave {visible(label)} out</button></div>;

function AnyJson({ id, described, label, value, change, required }: Omit<Props, "label"> & { id: string; described?: string; label: preact.ComponentChildren }) {
  const [typed, setTyped] = useState<string>();
  return <div class="form-field">{label}<textarea id={id} class="mono" rows={3} spellcheck={false} aria-describedby={described} value={typed ?? (value === undefined ? "" : text(value))}
    onInput={(e) => { const t = e.currentTarget.value; setTyped(t); change(t.trim() === "" && !required ? undefined : new Raw(t)); }} /><span class="soft small">JSON</span></div>;
}

function Members({ of, root, value, change, depth }: Props & { of: Schema; depth: number }) {
  const members = typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Raw) ? value : {};
  const required = new Set(of.required as string[] ?? []);
  return <>{Object.entries(of.properties as Schema).map(([name, schema]) => <SchemaField key={name} label={name} schema={schema} root={root} required={required.has(name)} depth={depth + 1}
    value={Object.hasOwn(members, name) ? members[name] : undefined}
    change={(v) => { const next = { ...members }; if (v === undefined) delete next[name]; else Object.defineProperty(next, name, { value: v, enumerable: true, configurable: true, writable: true }); change(next); }} />)}</>;
}

function Items({ of, root, value, change, depth, label }: Props & { of: Schema; depth: number }) {
  const items = Array.isArray(value) ? value : [];
  return <>{items.map((item, i) => <div class="form-item" key={i}>
    <SchemaField label={`${label} ${i + 1}`} schema={of.items} root={root} required value={item} depth={depth + 1} change={(v) => change(items.map((o, at) => at === i ? v ?? null : o))} />
    <button type="button" class="quiet small" aria-label={`Remove ${visible(label)} ${i + 1}`} onClick={() => change(items.filter((_, at) => at !== i))}>Remove</button></div>)}
    <div><button type="button" class="quiet small" onClick={() => change([...items, initial(of.items, root)])}>Add an item to {visible(label)}</button></div></>;
}

function Variants({ of, root, value, change, depth, label }: Props & { of: Schema[]; depth: number }) {
  const [at, set] = useState(0);
  const id = useId();
  const named = (s: Schema) => typeof s.title === "string" ? s.title : typeof s.type === "string" ? s.type : "form";
  const name = (s: Schema, i: number) => visible(of.filter((o) => named(o) === named(s)).length > 1 ? `${named(s)} ${i + 1}` : named(s));
  return <><div class="form-field"><label for={id}>Form of {visible(label)}</label><select id={id} value={String(at)} onChange={(e) => { const n = Number(e.currentTarget.value); set(n); change(initial(of[n], root)); }}>
    {of.map((s, i) => <option key={i} value={String(i)}>{name(s, i)}</option>)}</select></div>
    <SchemaField key={at} label={label} schema={of[at]} root={root} required value={value} depth={depth + 1} change={change} /></>;
}
