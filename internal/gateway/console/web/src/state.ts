// The states of runs, calls and approvals. Every screen takes their names and colours from here.

import { words } from "./text/format";

export type Kind = "" | "ok" | "wait" | "bad" | "run";
export interface State { kind: Kind; sign: string; name: string }

const states = new Map<string, [kind: Kind, sign: string, name?: string]>(Object.entries({
  running: ["run", "◌"], writing: ["run", "◌", "writing the call"],
  parked: ["wait", "●", "waiting"], awaiting_approval: ["wait", "●"], awaiting_tool_results: ["wait", "●", "awaiting results"],
  completed: ["ok", "✓"], ok: ["ok", "✓"], limited: ["wait", "△"], cancelled: ["", "■"], failed: ["bad", "✗"],
  approved: ["ok", "✓"], edited: ["ok", "✓", "approved, edited"], answered: ["ok", "✓", "answered instead"], denied: ["bad", "⊘"], expired: ["bad", "⊘"], withdrawn: ["", "■"],
}));

// stateOf returns how a state is shown. The name of an unknown one is its code.
export function stateOf(code: string): State {
  const [kind, sign, name] = states.get(code) ?? ["", ""];
  return { kind, sign, name: name ?? words(code) };
}

const failures: Record<string, string> = { aborted: "connection failed", protocol: "unreadable answer", upstream_4xx: "request refused", upstream_5xx: "server error", loading: "model not loaded in time" };

// failureName is what people call the code of a failure, such as that of a model server.
export const failureName = (code: string) => failures[code] ?? words(code);

// ofRun is the state of a run: what it waits for, if it waits, else its status.
export const ofRun = (r: { status: string; reason?: string }) => r.status === "parked" && r.reason && states.has(r.reason) ? r.reason : r.status;

// ofResult is the state of a call that has ended with an error type, "" for none.
export function ofResult(error: string): string {
  if (!error) return "completed";
  if (error === "policy_denied" || error === "approval_denied") return "denied";
  return error === "approval_expired" ? "expired" : error === "cancelled" ? error : "failed";
}

const effects = new Map<string, [name: string, about: string]>(Object.entries({
  read_only: ["read only", "It changes nothing."], idempotent: ["repeatable", "It changes something; an equal call again changes nothing more."],
  writes: ["writes", "It changes something, and is not repeated by itself."], undeclared: ["writes", "Not declared what it changes: it counts as a tool that changes something."],
}));

// effectOf returns the word for what a tool may change, and a sentence about it.
export function effectOf(code: string): { name: string; about: string } {
  const [name, about] = effects.get(code) ?? [words(code), ""];
  return { name, about };
}
