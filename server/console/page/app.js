// The page: it asks what there is, and puts the parts together.

import { $, el } from "./dom.js";
import { ask, delay, isReached, json, onConnection, onKeyWanted, pause } from "./server.js";
import { Chat } from "./chat.js";
import { Runs } from "./runs.js";
import { showRun } from "./run.js";

const effects = new Map();
const chosen = "lathe.model";
const beat = 30_000; // ms between looks at whether the server is there

onKeyWanted((refused) => new Promise((resolve) => {
  const dialog = $("key");
  $("key-refused").hidden = !refused;
  $("key-text").value = "";
  if (!dialog.open) dialog.showModal();
  const again = () => dialog.showModal(); // without a key there is nothing to show
  dialog.addEventListener("close", again);
  $("key-form").addEventListener("submit", () => {
    dialog.removeEventListener("close", again);
    resolve($("key-text").value);
  }, { once: true });
}));

function health(state, text) {
  $("health").className = `health ${state}`;
  $("health").textContent = text;
}

async function models() {
  const select = $("model");
  try {
    const { data } = await json("v1/models");
    const names = data.map((m) => m.id);
    const before = select.value || localStorage.getItem(chosen);
    select.replaceChildren(el("option", { value: "" }, "the server's default"), ...names.map((n) => el("option", { value: n }, n)));
    select.disabled = names.length === 0;
    if (names.includes(before)) select.value = before;
    const simulated = names.length && names.every((n) => n.startsWith("sim/"));
    health("up", simulated ? "ready · only simulated models: configure one in lathe.yaml" : names.length ? "ready" : "no models are configured");
  } catch (e) {
    health("down", e.status ? e.message : "The server cannot be reached. Trying again…");
  }
}

// policyTag says what becomes of calls of a tool.
function policyTag(t) {
  if (!t.advertised || t.policy === "deny") return el("span", { class: "tag denied" }, "denied");
  if (t.policy === "ask") return el("span", { class: "tag asks" }, "asks first");
  return t.policy === "allow" ? el("span", { class: "tag allowed" }, "allowed") : "";
}

async function tools() {
  const list = $("tools");
  try {
    const { data } = await json("api/tools");
    $("tools-count").textContent = data.length;
    for (const t of data) effects.set(t.name, t.effect);
    list.replaceChildren(...(data.length ? data.map((t) => el("li", { class: `row ${t.advertised ? "" : "off"}` },
      el("span", { class: "top" }, el("b", {}, t.name), el("span", { class: `tag ${t.effect}` }, t.effect.replace("_", " ")),
        policyTag(t),
        t.origin ? el("span", { class: "right" }, t.origin) : ""),
      el("small", { title: t.description }, t.description))) : [el("li", { class: "none" }, "No tools are configured.")]));
  } catch (e) {
    list.replaceChildren(el("li", { class: "none" }, e.message));
  }
}

// The box takes a text of any length, and sends one that the server takes.
let longest = Infinity;

async function limits() {
  try {
    longest = (await json("api/limits")).max_text;
  } catch { /* the server refuses what is too long */ }
}

// excess says by how much the text in the box is too long; "": it is not.
function excess() {
  const text = $("prompt").value;
  if (text.length <= longest) return ""; // characters are fewer than code units
  const n = [...text].length;
  return n <= longest ? "" : `The message has ${n.toLocaleString()} characters; this server takes ${longest.toLocaleString()}. Shorten it, or raise serve.max_text. Nothing was cut off or sent.`;
}

function checkLength() {
  const text = excess();
  if ($("too-long").textContent !== text) $("too-long").textContent = text;
  $("send").disabled = text !== "";
  $("prompt").setAttribute("aria-invalid", String(text !== ""));
}

const chat = new Chat({
  model: () => $("model").value || undefined,
  effects, showRun,
  onChange: () => { if (chat.durable) runs.refresh(); },
});
const runs = new Runs({ showRun, session: () => chat.id });

$("model").addEventListener("change", (e) => localStorage.setItem(chosen, e.target.value));
$("fresh").addEventListener("click", () => chat.fresh());
$("stop").addEventListener("click", () => chat.stop());
$("prompt").addEventListener("input", checkLength);
$("form").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("prompt").value.trim();
  checkLength();
  if (!text || chat.aborter || excess()) return;
  $("prompt").value = "";
  chat.say(text);
});
$("prompt").addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  $("form").requestSubmit();
});

// all asks for everything that is shown beside the chat.
async function all() {
  await models();
  const [, durable] = await Promise.all([tools(), runs.refresh(), limits()]).then(([a, b]) => [a, b]);
  chat.durable = durable ?? true;
}

// The mark at the top says whether the server is there. One that is gone is looked for until it is back.
let looking = false;
onConnection(async (reached) => {
  if (reached || looking) return;
  looking = true;
  health("down", "Connection lost. Trying again…");
  for (let attempt = 0; !isReached() || attempt === 0; attempt++) {
    await pause(delay(attempt));
    await ask("livez").catch(() => {});
  }
  looking = false;
  await all();
});
setInterval(() => { if (!document.hidden && !looking) ask("livez").catch(() => {}); }, beat);

await all();
chat.draw();
document.documentElement.dataset.ready = "yes";
await chat.again();
