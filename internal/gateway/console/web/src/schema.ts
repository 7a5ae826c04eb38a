// A form from a JSON Schema: which control a schema gets, and the exact JSON of what was entered.

export type Json = null | boolean | string | Raw | Json[] | { [name: string]: Json };
export type Schema = { [keyword: string]: unknown };

// A Raw is a text of JSON as it stands, such as a number with all its digits.
export class Raw { constructor(readonly text: string, readonly number = false) {} } // number: entered where a number is wanted

const isObject = (v: unknown): v is Schema => typeof v === "object" && v !== null && !Array.isArray(v);
const maxRefs = 16;

// resolve follows references within the document. It returns an empty schema, which takes any JSON, for what it cannot follow.
export function resolve(schema: unknown, root: unknown): Schema {
  let s = schema;
  for (let i = 0; i < maxRefs && isObject(s) && typeof s.$ref === "string"; i++) {
    const { $ref, ...beside } = s;
    let at: unknown = root;
    for (const part of ($ref as string).replace(/^#\/?/, "").split("/").filter(Boolean)) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      at = (isObject(at) || Array.isArray(at)) && Object.hasOwn(at, name) ? (at as Schema)[name] : undefined;
    }
    s = isObject(at) && ($ref as string).startsWith("#") ? { ...at, ...beside } : {};
  }
  return isObject(s) ? s : {};
}

export type Kind = "object" | "array" | "string" | "number" | "boolean" | "choice" | "variants" | "any";

// A Shape is what a form shows for a schema.
export interface Shape {
  kind: Kind;
  nullable: boolean;
  schema: Schema; // without the part that is null
  choices: unknown[]; // of a choice
  variants: Schema[]; // of variants
}

// shape decides how a schema is entered. What has no form of its own is entered as JSON.
export function shape(given: unknown, root: unknown): Shape {
  let schema = resolve(given, root);
  let nullable = false;
  const all = schema.allOf;
  if (Array.isArray(all)) {
    const { allOf: _, ...rest } = schema;
    schema = all.map((s) => resolve(s, root)).reduce<Schema>((a, b) => ({ ...a, ...b, properties: { ...(a.properties as object), ...(b.properties as object) }, required: [...(a.required as string[] ?? []), ...(b.required as string[] ?? [])] }), rest);
  }
  for (const key of ["oneOf", "anyOf"]) {
    const of = schema[key];
    if (!Array.isArray(of)) continue;
    const list = of.map((s) => resolve(s, root));
    const some = list.filter((s) => s.type !== "null" && s.const !== null);
    nullable ||= some.length < list.length;
    const { [key]: _, ...beside } = schema;
    if (some.length === 1) { schema = { ...beside, ...some[0] }; break; }
    if (some.every((s) => "const" in s)) { schema = { ...beside, enum: some.map((s) => s.const) }; break; }
    return { kind: "variants", nullable, schema: beside, choices: [], variants: some.map((s) => ({ ...beside, ...s })) };
  }
  let type = schema.type;
  if (Array.isArray(type)) {
    nullable ||= type.includes("null");
    const rest = type.filter((t) => t !== "null");
    type = rest.length === 1 ? rest[0] : undefined;
  }
  const make = (kind: Kind, choices: unknown[] = []): Shape => ({ kind, nullable, schema, choices, variants: [] });
  if ("const" in schema) return make("choice", [schema.const]);
  if (Array.isArray(schema.enum)) {
    nullable ||= schema.enum.includes(null);
    return make("choice", schema.enum.filter((v) => v !== null));
  }
  if (type === undefined && isObject(schema.properties)) type = "object";
  switch (type) {
    case "object": return make(isObject(schema.properties) && Object.keys(schema.properties).length ? "object" : "any");
    case "array": return make(isObject(schema.items) ? "array" : "any");
    case "string": case "boolean": return make(type);
    case "number": case "integer": return make("number");
    default: return make("any");
  }
}

// takesNone reports whether a schema of arguments names none and allows no others by a schema of their own.
export function takesNone(given: unknown): boolean {
  const { kind, schema: s } = shape(given, given);
  return kind === "any" && (s.type === "object" || isObject(s.properties)) && !s.additionalProperties && !s.patternProperties;
}

const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

// text returns the JSON of a value. Members that are undefined are left out.
export function text(v: Json | undefined, indent = ""): string {
  if (v === undefined || v === null) return "null";
  if (v instanceof Raw) return v.text;
  const inner = `${indent}  `;
  if (Array.isArray(v)) return v.length ? `[\n${v.map((e) => inner + text(e, inner)).join(",\n")}\n${indent}]` : "[]";
  if (typeof v === "object") {
    const members = Object.entries(v).filter(([, m]) => m !== undefined);
    return members.length ? `{\n${members.map(([k, m]) => `${inner}${JSON.stringify(k)}: ${text(m, inner)}`).join(",\n")}\n${indent}}` : "{}";
  }
  return JSON.stringify(v);
}

// problem says what cannot be sent of a value, with its path; "" if nothing. The server checks the rest.
export function problem(v: Json | undefined, path = ""): string {
  if (v instanceof Raw) {
    if (number.test(v.text)) return "";
    try { JSON.parse(v.text); return ""; } catch { return `${path.slice(1) || "The value"} ${/^[-\d.]/.test(v.text) || v.number ? "is not a number" : "is not valid JSON"}`; }
  }
  if (Array.isArray(v)) return v.map((e, i) => problem(e, `${path}/${i}`)).find(Boolean) ?? "";
  if (typeof v === "object" && v !== null) return Object.entries(v).map(([k, m]) => problem(m, `${path}/${k}`)).find(Boolean) ?? "";
  return "";
}

// from returns the value of parsed JSON. Digits of numbers that a script cannot hold are lost: keep the text where that matters.
export function from(v: unknown): Json {
  if (typeof v === "number") return new Raw(JSON.stringify(v));
  if (Array.isArray(v)) return v.map(from);
  if (isObject(v)) return Object.fromEntries(Object.entries(v).map(([k, m]) => [k, from(m)]));
  return v as Json;
}

// range says what a number may be, or how many of something there may be.
function range(least: unknown, most: unknown): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}`;
  return least !== undefined ? `${least} or more` : most !== undefined ? `at most ${most}` : "";
}

// limitsOf says for people what a schema asks of a value beside its type.
export function limitsOf(s: Schema): string {
  const some = (text: string, unit: string) => text && `${text} ${unit}`;
  return [
    range(s.minimum, s.maximum), s.exclusiveMinimum !== undefined && `more than ${s.exclusiveMinimum}`, s.exclusiveMaximum !== undefined && `less than ${s.exclusiveMaximum}`,
    s.multipleOf !== undefined && `a multiple of ${s.multipleOf}`, some(range(s.minLength, s.maxLength), "characters"), some(range(s.minItems, s.maxItems), "items"),
    typeof s.pattern === "string" && `pattern ${s.pattern}`, typeof s.format === "string" && `format ${s.format}`,
  ].filter(Boolean).join(", ");
}

// near returns the number nearest to 0 that the limits of a schema allow, as far as one is easily found.
function near(s: Schema): number {
  const n = (key: string) => typeof s[key] === "number" ? s[key] as number : undefined;
  const least = Math.max(n("minimum") ?? -Infinity, (n("exclusiveMinimum") ?? -Infinity) + 1), most = Math.min(n("maximum") ?? Infinity, (n("exclusiveMaximum") ?? Infinity) - 1);
  const at = Math.max(least, Math.min(most, 0)), step = n("multipleOf") ?? (s.type === "integer" ? 1 : 0);
  return step > 0 ? (at < 0 ? Math.floor(at / step) : Math.ceil(at / step)) * step : at;
}

const mostItems = 20; // that a form begins with

// begins reports whether a form begins with a value of a required member. A number without a default is left to the person.
function begins(given: unknown, root: unknown): boolean {
  const s = shape(given, root);
  return s.kind !== "number" || s.nullable || s.schema.default !== undefined;
}

// initial returns the value with which the form of a required schema begins.
export function initial(given: unknown, root: unknown, depth = 0): Json {
  const s = shape(given, root);
  if (s.schema.default !== undefined) return from(s.schema.default);
  if (s.nullable) return null;
  if (depth > 8) return {};
  switch (s.kind) {
    case "object": {
      const required = new Set(s.schema.required as string[] ?? []);
      return Object.fromEntries(Object.entries(s.schema.properties as Schema).filter(([k, m]) => required.has(k) && begins(m, root)).map(([k, m]) => [k, initial(m, root, depth + 1)]));
    }
    case "array": return items(s.schema, root, depth);
    case "string": return "";
    case "number": return new Raw(String(near(s.schema)));
    case "boolean": return false;
    case "choice": return from(s.choices[0]);
    case "variants": return initial(s.variants[0], root, depth + 1);
    case "any": return s.schema.type === "array" ? items(s.schema, root, depth) : {};
  }
}

// items returns as many items as an array must have.
function items(s: Schema, root: unknown, depth: number): Json[] {
  const first = Array.isArray(s.prefixItems) ? s.prefixItems : [], many = Math.min(mostItems, Number(s.minItems) || 0);
  return Array.from({ length: many }, (_, i) => initial(first[i] ?? s.items, root, depth + 1));
}
