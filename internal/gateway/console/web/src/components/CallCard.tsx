// A call as a card, the same in a chat and in a run: its arguments in one line, its state, how long it took or how far it has come,
// and, when it is open, its arguments and its result.

import type { ComponentChildren, Ref } from "preact";
import { useEffect, useState } from "preact/hooks";
import { effectOf } from "../state";
import { failureOf } from "../text/failure";
import { count, duration, measured } from "../text/format";
import { entries } from "../text/jsontext.js";
import { visible } from "../text/visible.js";
import { JsonView, StateBadge } from "./basics";
import { ResultView, type ResultFile } from "./ResultView";

export { failureOf };

export interface CallView {
  id: string;
  name: string;
  args: string; // as the model wrote them; "" while they are being written
  state: string; // of state.ts
  ms?: number; // that the tool took
  since?: number; // ms since 1970: when it began to run
  progress?: { done: number; total?: number; message?: string };
  effect?: string;
  result?: string;
  files?: ResultFile[];
  why?: string; // what it failed of, in one line
}

const longest = 160; // characters of a line

const inLine = (text: string) => visible(text.length > longest ? `${text.slice(0, longest)}…` : text);

// inOneLine returns the arguments of a call as one line, such as label: "A", seconds: 4.
export const inOneLine = (args: string) => inLine(entries(args)?.of.map(([name, value]) => `${name ?? ""}: ${value.replace(/\s+/g, " ")}`).join(", ") ?? args);

const largest = 1 << 16; // characters of a result whose members are looked at

// preview returns a result as one line: the members of an object, the number of elements of a list and what they have, else the text.
export function preview(result: string): string {
  const of = result.length <= largest ? entries(result)?.of : undefined;
  if (!of?.length) return inLine(result.slice(0, 2 * longest).replace(/\s+/g, " "));
  if (of[0]![0] !== undefined) return inOneLine(result);
  const names = entries(of[0]![1])?.of.flatMap(([name]) => name ?? []) ?? [];
  return names.length ? inLine(`${count(of.length, "element")}: ${names.join(", ")}`) : inLine(of.map(([, value]) => value).join(", "));
}

// Elapsed counts the seconds since a time in ms since 1970.
export function Elapsed({ since, now = Date.now }: { since: number; now?: () => number }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span class="num" aria-hidden="true">{duration(Math.max(1, Math.round((now() - since) / 1000)) * 1000)}</span>;
}

function Progress({ call: { name, progress } }: { call: CallView }) {
  const { done, total, message } = progress!;
  const repeats = message?.match(/\d+/g)?.join() === [done, total].filter(Boolean).join(); // such as "step 3 of 40"
  return <div class="tool-progress">
    <progress aria-label={`Progress of ${visible(name)}`} max={total} value={total ? Math.min(done, total) : undefined} />
    <span class="num">{done.toLocaleString()}{total ? ` of ${total.toLocaleString()}` : ""}</span>{message && !repeats && <span dir="auto">{visible(message)}</span>}
  </div>;
}

export interface CallCardProps {
  call: CallView;
  open: boolean;
  toggle: (open: boolean) => void;
  now?: () => number; // the clock of since
  summary?: Ref<HTMLElement>;
  facts?: ComponentChildren; // what more is known of it
  instead?: ComponentChildren; // takes the place of arguments and result, such as the question for an approval
}

// CallCard is one call.
export function CallCard({ call: c, open, toggle, now, summary, facts, instead }: CallCardProps) {
  const asks = c.state === "awaiting_approval", failed = ["failed", "denied", "expired"].includes(c.state), running = c.state === "running";
  const line = c.args && !instead ? inOneLine(c.args) : "";
  return <details class={`tool${asks ? " asks" : ""}${failed ? " failed" : ""}`} open={open} onToggle={(e) => { if (e.currentTarget.open !== open) toggle(e.currentTarget.open); }}>
    <summary ref={summary}><b>{visible(c.name)}</b>{line && <span class="tool-args" dir="auto">{line}</span>}{c.effect && <span class={`tag ${effectOf(c.effect).name}`} title={effectOf(c.effect).about}>{effectOf(c.effect).name}</span>}
      <span class="state"><StateBadge of={c.state}>{c.ms !== undefined ? ` · ${measured(c.ms)}` : running && c.since ? <> · <Elapsed since={c.since} now={now} /></> : null}</StateBadge></span>
      {failed && c.why && !(open && c.result && failureOf(c.result) === c.why) ? <span class="tool-why">{c.why}</span> : !open && c.result ? <span class="tool-out" dir="auto">{preview(c.result)}</span> : null}
      {running && c.progress && <Progress call={c} />}</summary>
    {open && <div>{instead ?? <>
      {facts}
      <div class="tool-halves"><div><h2 class="label">Arguments</h2>{/^\s*(\{\s*\})?\s*$/.test(c.args) ? <p class="soft small">none</p> : <JsonView text={c.args} label={`Arguments of ${c.id}`} exact />}</div>
        {c.result !== undefined && <div><ResultView text={c.result} files={c.files} failed={failed} label={failed ? "Failure" : "Result"} name={`Result of ${c.id}`} /></div>}</div>
    </>}</div>}
  </details>;
}
