// A run and its events as the API has them.

import type { Events } from "../../events";
import { failureName, ofRun } from "../state";
import { words } from "../text/format";

export interface Run {
  run_id: string;
  session_id?: string;
  principal?: string;
  target?: string;
  parent_run_id?: string;
  replays?: string; // the run whose conversation it repeats
  provider: string;
  model: string;
  status: "running" | "parked" | "completed" | "limited" | "cancelled" | "failed";
  reason?: string;
  error_code?: string;
  started: string;
  updated: string;
  ended?: string;
  last_event_id: number;
  turns: number;
  tool_calls: number;
  tools?: string[];
  usage: { input_tokens: number; output_tokens: number; total_tokens: number };
  cost?: number;
  question?: string; // in lists: its first line
  answer?: string; // in lists: its beginning
}

export interface RunPage { data: Run[]; next?: string; truncated?: boolean }

export interface Part {
  type: string;
  text?: string;
  commentary?: boolean;
  media_type?: string;
  id?: string;
  name?: string;
  arguments?: string;
  content?: string;
  is_error?: boolean;
  blobs?: StoredBlob[];
}

export interface StoredBlob { media_type?: string; data?: string; url?: string } // data in base64

// filesOf returns the files of a result, with data URLs.
export const filesOf = (blobs: unknown) => (blobs as StoredBlob[] | undefined)?.map((b) => ({ mediaType: b.media_type ?? "", url: b.data ? `data:${b.media_type ?? ""};base64,${b.data}` : b.url ?? "" }));

export interface Message { role: string; parts: Part[] }

// AnyOf has the members of all types of a union, each of which may be missing.
type AnyOf<U> = { [K in U extends unknown ? keyof U : never]?: U extends unknown ? K extends keyof U ? U[K] : never : never };

export interface RunEvent {
  event_id?: number; // deltas have none
  after?: number; // of a delta: the stored event before it
  n?: number; // of a delta: its number within the model call, from 1
  time: string;
  turn: number;
  type: keyof Events | "server_draining";
  data: AnyOf<Events[keyof Events]["data"]>;
  content?: AnyOf<Events[keyof Events]["content"]>;
  removed_bytes?: number;
  raw: string; // as the server wrote it
}

export function readEvent(raw: string): RunEvent {
  const e = JSON.parse(raw) as Omit<RunEvent, "raw">;
  return { ...e, data: e.data ?? {}, raw };
}

// micros is the time in µs since 1970: times of events have more digits than a Date keeps.
export function micros(time: string): number {
  const m = /^(.{19})(?:\.(\d+))?Z$/.exec(time);
  return m ? Date.parse(`${m[1]}Z`) * 1000 + Number(`${m[2] ?? ""}000000`.slice(0, 6)) : Date.parse(time) * 1000;
}

// newer orders runs as the server lists them.
export function newer(a: Run, b: Run): number {
  return micros(b.started) - micros(a.started) || (a.run_id < b.run_id ? 1 : a.run_id > b.run_id ? -1 : 0);
}

// lasted is how long a run took, or has taken so far, in ms.
export function lasted(r: Run, now: number): number {
  const end = r.ended ?? (r.status === "running" || r.status === "parked" ? undefined : r.updated);
  return Math.max(0, (end ? micros(end) / 1000 : now) - micros(r.started) / 1000);
}

export const money = (n: number) => `$${n < 0.01 ? n.toFixed(5) : n.toFixed(2)}`;

// reasonOf is why a run ended or waits, as far as its state does not say it.
export const reasonOf = (r: Run) => [r.reason !== "answered" && r.reason !== ofRun(r) && r.reason !== r.status && words(r.reason ?? ""), r.error_code !== r.status && failureName(r.error_code ?? "")].filter(Boolean).join(": ");
