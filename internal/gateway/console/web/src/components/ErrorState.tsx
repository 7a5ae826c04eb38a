// What takes the place of content that could not be read: what failed, why, and what can be done.

import type { ComponentChildren } from "preact";
import { Lost, Refusal, session, signOut } from "../api";
import { visible } from "../text/visible.js";
import { Copy, Seen } from "./basics";

// rights are the settings of a key that give what a refusal names as missing, by its code.
const rights: Record<string, [what: string, setting: (key: string) => string]> = {
  admin_required: ["the rights of an admin key", (key) => `keys.${key}.admin: true`],
  model_forbidden: ["the right to use this model", (key) => `keys.${key}.models`],
  tool_forbidden: ["the right to use this tool", (key) => `keys.${key}.tools`],
  approval_forbidden: ["the right to decide about calls of other keys", (key) => `keys.${key}.approve`],
};

// Command is a text for a terminal or a file, with a button that copies it.
export const Command = ({ children: text }: { children: string }) => <span class="command"><code>{visible(text)}</code> <Copy icon text={text} label={`Copy ${visible(text)}`} /></span>;

function Box({ title, calm = false, retry, children }: { title: string; calm?: boolean; retry?: ComponentChildren; children: ComponentChildren }) {
  return <div class={`problem${calm ? " refusal" : ""}`} role="alert"><b>{title}</b>{children}{retry && <div class="answers">{retry}</div>}</div>;
}

function Refused({ error, retry }: { error: Refusal; retry?: () => void }) {
  const s = session.value, name = s?.name ?? "", [what, setting] = rights[error.code] ?? [];
  return <Box calm title="Your key may not do this" retry={<>{s?.csrf_token && <button type="button" onClick={() => void signOut()}>Sign in with another key</button>}{retry && <button type="button" class="quiet" onClick={retry}>Try again</button>}</>}>
    <span>{visible(error.message)}</span>
    <dl class="facts">
      {name && <><dt>Your key</dt><dd><Seen text={name} />{s?.role && <>, {s.role === "user" ? "an ordinary key" : s.role}</>}</dd></>}
      {what && <><dt>It lacks</dt><dd>{what}</dd></>}
      <dt>Refused</dt><dd class="mono"><Seen text={error.path} /> ({error.status}{error.code && <>, <Seen text={error.code} /></>})</dd>
    </dl>
    {setting && <ul class="next">
      <li>Sign in with a key that has the right.</li>
      <li>Or ask the operator of the gateway to give it to your key, in lathe.yaml: <Command>{setting(name || "NAME")}</Command></li>
      <li>Or have the operator make another key; this prints one with its hash: <Command>lathe keys new</Command></li>
    </ul>}
  </Box>;
}

// ErrorState says what a request failed of. A refusal names the key and the right that it lacks, a lost gateway how it is started.
export function ErrorState({ error, retry }: { error: Error; retry?: () => void }) {
  if (error instanceof Refusal && error.status === 403) return <Refused error={error} retry={retry} />;
  if (error instanceof Lost) return <Box calm title="The gateway does not answer" retry={retry && <button type="button" onClick={retry}>Try again now</button>}>
    <span>{location.host} gave no answer. This page tries again by itself, and loads its data as soon as the gateway is back.</span>
    <ul class="next"><li>Start it on its machine, if it has ended: <Command>lathe serve</Command></li><li>If it runs, check the network between this browser and it.</li></ul>
  </Box>;
  return <Box title="That did not work" retry={retry && <button type="button" onClick={retry}>Try again</button>}><span>{visible(error.message)}</span></Box>;
}
