// The page: it asks what there is, and puts the parts together.

import { $, el } from "./dom.js";
import { json, onKeyWanted } from "./server.js";
import { Chat } from "./chat.js";
import { listRuns, showRun } from "./runs.js";

const effects = new Map();
const chosen = "lathe.model";

onKeyWanted((refused) => new Promise((resolve) => {
  const dialog = $("key");
  $("key-refused").hidden = !refused;
  $("key-text").value = "";
  if (!dialog.open) dialog.showModal();
  dialog.addEventListener("cancel", (e) => e.preventDefault());
  $("key-form").addEventListener("submit", () => resolve($("key-text").value), { once: true });
}));

const chat = new Chat({
  model: () => $("model").value || undefined,
  effects, showRun,
  onChange: () => { if (chat.durable) listRuns(); },
});

async function models() {
  const health = $("health"), select = $("model");
  try {
    const { data } = await json("v1/models");
    const names = data.map((m) => m.id);
    select.replaceChildren(el("option", { value: "" }, "the server's default"), ...names.map((n) => el("option", { value: n }, n)));
    select.disabled = names.length === 0;
    const before = localStorage.getItem(chosen);
    if (names.includes(before)) select.value = before;
    health.className = "health up";
    health.textContent = names.length ? "ready" : "no models are configured";
    if (names.length && names.every((n) => n.startsWith("sim/"))) health.textContent = "ready · only simulated models: configure one in lathe.yaml";
  } catch (e) {
    health.className = "health down";
    health.textContent = e.status ? e.message : "the server cannot be reached";
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

$("model").addEventListener("change", (e) => localStorage.setItem(chosen, e.target.value));
$("fresh").addEventListener("click", () => chat.fresh());
$("again").addEventListener("click", () => listRuns());
$("stop").addEventListener("click", () => chat.stop());
$("form").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("prompt").value.trim();
  if (!text || chat.aborter) return;
  $("prompt").value = "";
  chat.say(text);
});
$("prompt").addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  $("form").requestSubmit();
});

await models();
const [, durable] = await Promise.all([tools(), listRuns()]);
chat.durable = durable;
chat.draw();
document.documentElement.dataset.ready = "yes";
await chat.again();
