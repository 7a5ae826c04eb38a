// Why a run failed, from its events: which model server answered what.

import { enc, getText } from "../api";
import { readEvent, type RunEvent } from "../run/types";

export interface Cause {
  server: string; // name of the entry of models that was asked for, "" for the default
  model: string;
  attempts: number;
  code: string;
  status?: number; // of the answer over HTTP
  said?: string; // the server's words, without what looks like a secret
}

const secrets = /\b(?:sk|pk|rk|key|ghp|xox[bp])[-_][\w-]{8,}|\bBearer\s+\S+|\b[A-Za-z0-9+/_-]{40,}={0,2}/g;
const longest = 600; // characters of a server's words

// causeIn returns the last model call that failed, undefined if the last one did not.
export function causeIn(events: RunEvent[]): Cause | undefined {
  const last = events.findLast((e) => e.type === "ModelCallFinished");
  if (!last || last.data.status === "success") return undefined;
  const begun = events.find((e) => e.type === "RunStarted"), d = last.data, said = last.content?.error_message;
  return { server: begun?.content?.target ?? "", model: d.model ?? "", attempts: d.attempt ?? 1, code: d.error_code ?? "", status: (d.upstream_status ?? 0) >= 400 ? d.upstream_status : undefined,
    said: said && said.replace(secrets, "[removed]").slice(0, longest) };
}

// storedEvents returns the events that the server has stored of a run.
export async function storedEvents(runId: string): Promise<RunEvent[]> {
  const text = await getText(`api/runs/${enc(runId)}/events?after=0&follow=false`);
  return [...text.matchAll(/^data: (.*)$/gm)].map((m) => readEvent(m[1]!));
}
