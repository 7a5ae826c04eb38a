// The dialog that asks for a key, and helps who has none.

import { useEffect, useState } from "preact/hooks";
import { connection, keyWanted, session, signInAddress } from "../api";
import { visible } from "../text/visible.js";
import { Dialog } from "./basics";
import { Command } from "./ErrorState";
import { Logo } from "./Icon";

const problems: Record<string, string> = {
  wrong: "This key is not valid. Show it, and compare it with the one that you were given.",
  lost: "The gateway did not answer, and the key was not checked. Sign in again.",
};

// providerOf is the host of an issuer, "" if it is an address or a name that says nothing to people.
const providerOf = (issuer = "") => { const host = URL.parse(issuer)?.hostname ?? ""; return /\.[a-z]{2,}$/i.test(host) ? host : ""; };

export function KeyDialog() {
  const wanted = keyWanted.value;
  const [key, setKey] = useState(""), [shown, setShown] = useState(false), [busy, setBusy] = useState(false);
  const provider = signInAddress(), at = providerOf(session.value?.issuer);
  useEffect(() => {
    setBusy(false);
    if (!wanted) setKey("");
  }, [wanted]);
  if (!wanted || connection.value === "lost") return null; // a key is of no use before the gateway is back
  return <Dialog title={provider ? "Sign in to this gateway" : "This gateway asks for a key"} class="sign-in" above={<p class="sign-in-brand"><Logo />Lathe <span class="soft small mono">{location.host}</span></p>} close={() => {}} keep>
    <form class="stack" name="sign-in" onSubmit={(e) => { e.preventDefault(); if (key && !busy) { setBusy(true); wanted.use(key.trim()); } }}>
      {provider && <><a class="button main" href={provider}>Sign in with your organisation</a>{at && <p class="soft small sign-in-at">You continue at <bdi>{visible(at)}</bdi>, and come back here.</p>}<p class="or soft small"><span>or with a key</span></p></>}
      <input class="unseen" type="text" name="username" autocomplete="username" tabIndex={-1} aria-hidden="true" readOnly value={location.host} />
      <label for="key-text">Key</label>
      <div class="key-field"><input id="key-text" autoFocus name="password" type={(shown ? "text" : "password") as "password"} autocomplete="current-password" autocapitalize="none" spellcheck={false} required aria-describedby="key-about" aria-invalid={wanted.problem === "wrong"} value={key} onInput={(e) => setKey(e.currentTarget.value)} />
        <button type="button" class="quiet small" aria-pressed={shown} onClick={() => setShown(!shown)}>{shown ? "Hide" : "Show"}<span class="unseen"> the key</span></button></div>
      <p class="soft small" id="key-about">A key is a secret text, such as <code>lathe_…</code>, that the operator of this gateway gave you.</p>
      {wanted.problem && <p class="problem" role="alert">{problems[wanted.problem] ?? visible(wanted.problem)}</p>}
      <div class="answers"><button type="submit" class={provider ? "quiet" : ""} disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button></div>
      <p class="soft small">This browser stays signed in until you sign out, at most as long as the gateway allows.</p>
      <details class="small"><summary>No key, or lost it?</summary><ul class="next">
        <li>A key cannot be shown again. <Command>lathe keys new</Command> prints a new one with its hash, which the operator puts into lathe.yaml as <code>keys.NAME.sha256</code>.</li>
        <li>On a machine that has the key in a file, <Command>lathe open --key-file FILE</Command> opens this page signed in.</li>
        <li>On the terminal in which it was started, <code>lathe serve</code> prints a link that signs in once.</li>
      </ul></details>
    </form>
  </Dialog>;
}
