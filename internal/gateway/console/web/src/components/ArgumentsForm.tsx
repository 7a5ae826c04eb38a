// The arguments of a call: as a form that the schema of the tool gives, or as JSON.

import { useState } from "preact/hooks";
import { from, initial, problem as problemOf, takesNone, text, type Json } from "../schema";
import { writable } from "../text/visible";
import { Tabs } from "./basics";
import { SchemaField } from "./SchemaForm";

export interface Arguments {
  schema: unknown;
  tab: "form" | "json";
  value: Json; // of the form
  raw: string; // of the JSON
  text: string; // the JSON of what is entered
  fault: () => string; // why it cannot be sent, "" if it can
  put: (args: string) => void; // enters other arguments, in the form if it holds them exactly
  set: (change: { value?: Json; raw?: string; tab?: "form" | "json" }) => void;
}

// same reports whether two texts of JSON are equal but for spaces.
const same = (a: string, b: string) => a.replace(/\s/g, "") === b.replace(/\s/g, "");

// useArguments keeps what is entered. It begins with the required arguments, empty, and without numbers.
export function useArguments(schema: unknown): Arguments {
  const [{ value, raw, tab }, set] = useState(() => ({ value: initial(schema, schema), raw: "", tab: "form" as "form" | "json" }));
  const written = tab === "json" ? raw : text(value);
  return {
    schema, tab, value, raw, text: written, set: (change) => set((s) => ({ ...s, ...change })),
    fault() {
      const wrong = tab === "form" ? problemOf(value) : "";
      if (wrong) return wrong;
      try { JSON.parse(written); } catch (e) { return `This is not valid JSON: ${(e as Error).message}`; }
      return "";
    },
    put(args) {
      let held: Json | undefined;
      try { held = from(JSON.parse(args)); } catch { /* it is no JSON: it is shown as it is */ }
      set(held !== undefined && same(text(held), args) ? { value: held, raw: "", tab: "form" } : { value, raw: writable(args), tab: "json" });
    },
  };
}

// ArgumentsForm shows and changes them. wrong is called with what keeps the form from showing what is entered.
export function ArgumentsForm({ of: a, id, wrong }: { of: Arguments; id: string; wrong: (problem: string) => void }) {
  const choose = (to: "form" | "json") => {
    if (to === a.tab) return;
    if (to === "json") return a.set({ raw: writable(text(a.value)), tab: to });
    try { a.set({ value: from(JSON.parse(a.raw)), tab: to }); } catch (e) { wrong(`The form cannot show this: ${(e as Error).message}`); }
  };
  return <Tabs label="How to enter the arguments" tabs={[{ id: "form", label: "Form" }, { id: "json", label: "JSON" }]} chosen={a.tab} choose={choose}>
    {a.tab === "form" ? takesNone(a.schema) && a.text === "{}" ? <p class="soft">This tool takes no arguments.</p> : <SchemaField label="Arguments" schema={a.schema} root={a.schema} required value={a.value} change={(v) => a.set({ value: v ?? {} })} />
      : <div class="form-field"><label for={id}>Arguments</label><textarea id={id} class="mono" rows={6} spellcheck={false} value={a.raw} onInput={(e) => a.set({ raw: e.currentTarget.value })} /></div>}
  </Tabs>;
}
