// A JSON Schema for people: its members with their types, limits and descriptions. The schema itself is one click away.

import { useState } from "preact/hooks";
import { limitsOf, shape, takesNone, type Schema, type Shape } from "../schema";
import { JsonView, Seen } from "./basics";

const deepest = 6, mostChoices = 12;

// typeOf names what a shape takes, such as "array of string" or "a, b or null".
function typeOf(s: Shape, root: unknown, deep = 0): string {
  const or = s.nullable ? " or null" : "";
  switch (s.kind) {
    case "choice": return `${s.choices.slice(0, mostChoices).map((c) => JSON.stringify(c)).join(", ")}${s.choices.length > mostChoices ? ", …" : ""}${or}`;
    case "array": return `array${deep < deepest ? ` of ${typeOf(shape(s.schema.items, root), root, deep + 1)}` : ""}${or}`;
    case "variants": return `${deep < deepest ? [...new Set(s.variants.map((v) => typeOf(shape(v, root), root, deep + 1)))].join(" or ") : "one of several forms"}${or}`;
    case "number": case "any": return `${typeof s.schema.type === "string" ? s.schema.type : s.kind === "any" ? "any JSON" : s.kind}${or}`;
    default: return s.kind + or;
  }
}

// objectIn returns the object that a shape is, or is an array of, undefined for another one.
function objectIn(s: Shape, root: unknown): Schema | undefined {
  for (let i = 0; s.kind === "array" && i < deepest; i++) s = shape(s.schema.items, root);
  return s.kind === "object" ? s.schema : undefined;
}

function Members({ of, root, deep }: { of: Schema; root: unknown; deep: number }) {
  const required = new Set(Array.isArray(of.required) ? of.required : []);
  return <ul class="schema">{Object.entries(of.properties as Schema).map(([name, given]) => {
    const s = shape(given, root), inner = deep < deepest ? objectIn(s, root) : undefined;
    const limits = [limitsOf(s.schema), s.schema.default !== undefined && `default ${JSON.stringify(s.schema.default)}`].filter(Boolean).join(", ");
    return <li key={name}><p><b class="mono"><Seen text={name} /></b> <span class="schema-type"><Seen text={typeOf(s, root)} /></span>{required.has(name) && <span class="schema-required"> required</span>}{limits && <span class="soft"> · <Seen text={limits} /></span>}</p>
      {typeof s.schema.description === "string" && <p class="soft"><Seen text={s.schema.description} /></p>}
      {inner && <Members of={inner} root={root} deep={deep + 1} />}</li>;
  })}</ul>;
}

// SchemaView shows a schema. label is its heading.
export function SchemaView({ schema, label }: { schema: unknown; label: string }) {
  const [raw, set] = useState(false);
  const none = takesNone(schema), of = objectIn(shape(schema, schema), schema);
  return <section class="card-box" aria-label={label}>
    <div class="result-head"><h2 class="label">{label}</h2>{(of || none) && <button type="button" class="quiet small" aria-pressed={raw} onClick={() => set(!raw)}>{raw ? "As a list" : "Raw"}<span class="unseen"> {label}</span></button>}</div>
    {raw || !of && !none ? <JsonView text={JSON.stringify(schema)} label={`${label}, raw`} /> : of ? <Members of={of} root={schema} deep={0} /> : <p class="soft">It names no members.</p>}
  </section>;
}
