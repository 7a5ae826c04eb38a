// Why a call failed, from the text that its model got.

import { content, entries } from "./jsontext.js";
import { visible } from "./visible.js";

export interface Failure {
  code: string; // such as execution_failed, "" if the text has none
  said: string; // the message of the tool, else that of the gateway
  wrong: string[]; // what is wrong with the arguments
  data?: string; // JSON that the tool returned with the error
  more: [name: string, value: string][]; // the other members of the error, as JSON
}

const longest = 160; // characters of a line

// textIn returns the text of a JSON string, the text itself if it is none.
export function textIn(text: string): string {
  try {
    return content(text) ?? text;
  } catch {
    return text;
  }
}

// failureIn returns the parts of {"ok":false,"error":{…},"data":…} and of an envelope with a list of errors. If the call is known to have failed, it also
// reads `code: message`, and takes any other text as the message. It returns undefined for a text that is no failure.
export function failureIn(text: string, failed = false): Failure | undefined {
  const of = new Map(entries(text)?.of), error = of.get("error") ?? entries(of.get("errors") ?? "")?.of[0]?.[1];
  if (error !== undefined && (failed || of.get("ok") === "false")) {
    const members = entries(error)?.of ?? [["message", error]], get = (list: typeof members | undefined, ...names: string[]) => list?.find(([name, value]) => names.includes(name!) && value[0] === '"')?.[1];
    const wrapped = of.get("data") ?? "", value = entries(wrapped)?.of, data = value?.length === 1 && value[0]![0] === "value" ? value[0]![1] : value?.length === 0 ? "" : wrapped;
    const said = data[0] === '"' ? data : get(entries(data)?.of, "message", "error", "detail") ?? get(members, "detail") ?? get(members, "message") ?? error;
    const wrong = (entries(members.find(([name]) => name === "errors")?.[1] ?? "")?.of ?? []).map(([, e]) => { const of = entries(e)?.of; return of ? `${content(get(of, "pointer")) || "the arguments"}: ${content(get(of, "message")) ?? e}` : e; });
    return { code: content(get(members, "code")) ?? "", said: content(said)!, wrong, data: data[0] === '"' ? "" : data, more: members.filter(([name]) => !["code", "message", "detail", "errors"].includes(name!)) as Failure["more"] };
  }
  if (!failed) return undefined;
  const [, code = "", said = textIn(text)] = /^(timeout|cancelled|interrupted|unavailable|[a-z]+(?:_[a-z]+)+): (.+)$/s.exec(text) ?? [];
  return { code, said, wrong: [], more: [] };
}

// failureOf returns what a call failed of in one line.
export function failureOf(text: string): string {
  const { said, wrong } = failureIn(text, true)!;
  return visible((wrong[0] ?? said).trim().split("\n", 1)[0]!.slice(0, longest));
}
