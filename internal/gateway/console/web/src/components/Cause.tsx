// Why a model server failed, for people.

import type { Cause } from "../chat/cause";
import { failureName } from "../state";
import { visible } from "../text/visible.js";

// what a person may do about a failure of a model server, by its code.
const mend: Record<string, string> = {
  connection: "Start the model server, or correct its address (base_url) in lathe.yaml, then try again.",
  rate_limited: "Wait a moment, then try again.",
  auth: "Check the key of the model server in lathe.yaml, then try again.",
  context_length_exceeded: "Begin a new chat, or choose a model with a longer context.",
};
const mendOf = (c: Cause) => mend[c.code] ?? (/connect|refused|no such host|timeout/i.test(`${c.code} ${c.said ?? ""}`) && !c.status ? mend.connection : c.status === 401 || c.status === 403 ? mend.auth : "Look at the log of the model server, then try again.");

// CauseLines says which model server failed, with what, and what can be done.
export function CauseLines({ cause: c }: { cause: Cause }) {
  return <>
    <span>{c.server ? `The model server ${visible(c.server)}` : `The model server of ${visible(c.model)}`}{c.server && c.model && c.model !== c.server ? ` (model ${visible(c.model)})` : ""}{c.attempts > 1 ? ` failed ${c.attempts} times` : " failed"}{c.status || c.code ? `: ${[c.status && `HTTP ${c.status}`, c.code && failureName(c.code)].filter(Boolean).join(", ")}` : ""}.</span>
    {c.said && <span class="cause-said" dir="auto">{visible(c.said)}</span>}
    <span>{mendOf(c)}</span>
  </>;
}
