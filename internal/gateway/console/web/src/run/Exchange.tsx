// What is known of the requests to model servers.

import { useState } from "preact/hooks";
import { Badge, Copy, Empty, Seen, StateBadge } from "../components/basics";
import { count, inAndOut, measured, words } from "../text/format";
import { failureName } from "../state";
import { Given, Made } from "./SpanDetail";
import type { RunEvent } from "./types";

// Messages are what a model call was sent and what it answered, as the run has them.
function Messages({ events, at, over, shown }: { events: RunEvent[]; at: number; over?: RunEvent; shown: boolean }) {
  const [open, set] = useState(shown);
  return <details open={open} onToggle={(e) => set(e.currentTarget.open)}><summary class="small">Messages and answer</summary>{open && <div class="stack"><Given events={events} at={at} of={` of model call ${at}`} /><Made over={over} open="" of={` of model call ${at}`} /></div>}</details>;
}

const mostShown = 10; // calls whose messages are shown at first; of more, those of the last

export function Exchange({ events }: { events: RunEvent[] }) {
  const calls: { started: RunEvent; finished?: RunEvent }[] = [];
  for (const e of events) {
    if (e.type === "ModelCallStarted") calls.push({ started: e });
    else if (e.type === "ModelCallFinished" && calls.length) calls.at(-1)!.finished = e;
  }
  return <div class="stack">
    {calls.length === 0 && <Empty title="No model was called." />}
    {calls.map(({ started, finished }) => {
      const d = finished?.data;
      return <article key={started.event_id} class="card-box" aria-label={`Model call ${started.event_id}`}>
        <div class="run-who"><b><Seen text={`${started.data.provider ?? ""} ${started.data.model ?? ""}`} /></b><Badge>turn {started.turn}, attempt {started.data.attempt}</Badge>
          {d && <StateBadge of={d.status === "success" ? "completed" : "failed"}>{d.error_code && `: ${failureName(d.error_code)}`}</StateBadge>}{d?.upstream_status ? <Badge kind="bad">HTTP {d.upstream_status}</Badge> : null}</div>
        <dl class="facts">
          <dt>Sent</dt><dd>{count(started.data.messages ?? 0, "message")}, {count(Number(started.data.tools ?? 0), "tool")}</dd>
          {d && <><dt>Answered</dt><dd>{words(d.finish_reason ?? "")} after {measured(d.latency_ms ?? 0)}{d.first_token_ms ? `, first token after ${measured(d.first_token_ms)}` : ""}</dd>
            <dt>Tokens</dt><dd class="num">{inAndOut(d.usage)}</dd></>}
          {d?.upstream_request_id && <><dt>Request id there</dt><dd class="mono"><Seen text={d.upstream_request_id} /> <Copy text={d.upstream_request_id} /></dd></>}
          {d?.dropped?.length ? <><dt>Not sent</dt><dd><Seen text={d.dropped.join(", ")} /></dd></> : null}
          {d?.faults?.length ? <><dt>Faults</dt><dd><Seen text={d.faults.map((f) => f.kind).join(", ")} /></dd></> : null}
          <dt>Prompt hash</dt><dd class="mono"><Seen text={started.data.prompt_hash_v2 ?? ""} /> <Copy text={started.data.prompt_hash_v2 ?? ""} /></dd>
          {finished?.content?.error_message && <><dt>It said</dt><dd><Seen text={finished.content.error_message} /></dd></>}
        </dl>
        <Messages events={events} at={started.event_id ?? 0} over={finished} shown={calls.length <= mostShown || started === calls.at(-1)!.started} />
      </article>;
    })}
    <p class="soft small">The gateway stores no bytes of requests to model servers: these are the messages as the run has them. <code>lathe doctor --base-url URL MODEL</code> shows how a model server answers.</p>
  </div>;
}
