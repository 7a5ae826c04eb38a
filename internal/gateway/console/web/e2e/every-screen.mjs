// Every screen from 320 to 3840 px, by keyboard alone, and with hostile text in every member of every answer.

import { hostile } from "./hostile.mjs";
import { args, files, fill, screens } from "./world.mjs";

export { args, files };
export const views = [
  { name: "narrow-light", width: 320, height: 640, colorScheme: "light" },
  { name: "desktop-dark", width: 1366, height: 860, colorScheme: "dark" },
  { name: "4k-light", width: 3840, height: 2160, colorScheme: "light" },
];

// tooWide names what goes beyond the window and is in nothing that scrolls or is cut.
const tooWide = () => {
  const out = [];
  for (const el of document.querySelectorAll("body *")) {
    const box = el.getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || box.right <= innerWidth + 1 && box.left >= -1) continue;
    let over = true;
    for (let up = el; up && over; up = up.parentElement) if (getComputedStyle(up).overflowX !== "visible" && !["MAIN", "BODY", "HTML"].includes(up.tagName) && !up.classList.contains("page") || up.matches(".unseen, .skip")) over = false;
    if (over) out.push(`${el.tagName}.${el.className} ${Math.round(box.left)}–${Math.round(box.right)}`);
  }
  for (const el of document.querySelectorAll("html, main, .page, .table")) if (el.scrollWidth > el.clientWidth + 1) out.push(`${el.tagName}.${el.className} scrolls sideways: ${el.scrollWidth} in ${el.clientWidth}`);
  for (const el of document.querySelectorAll("main :is(.plain-table, .table, pre, .timeline)")) if (el.checkVisibility() && el.clientHeight < Math.min(el.scrollHeight, 32)) out.push(`${el.tagName}.${el.className} has shrunk to ${el.clientHeight} px`);
  return out.slice(0, 5);
};

// longLines names prose whose lines are too long to read.
const longLines = () => [...document.querySelectorAll("main :is(p, li, dd, .said)")].filter((el) => {
  const lines = el.innerText && el.getClientRects().length && [...el.childNodes].some((n) => n.nodeType === 3 && n.data.length > 160);
  return lines && el.getBoundingClientRect().width > 80 * parseFloat(getComputedStyle(el).fontSize);
}).map((el) => `${el.tagName}.${el.className} ${el.innerText.slice(0, 40)}`);

// walk presses Tab until the focus leaves the page, and names what was not reached or whose focus cannot be seen.
async function walk(page) {
  const want = await page.evaluate(() => {
    document.activeElement?.blur();
    document.querySelectorAll("[data-walk]").forEach((el) => el.removeAttribute("data-walk"));
    const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((el) =>
      el.tabIndex >= 0 && !el.disabled && el.type !== "file" && el.checkVisibility({ visibilityProperty: true }) && !(el.closest("details:not([open])") && !el.matches("details > summary")));
    all.forEach((el, i) => { el.dataset.walk = i; });
    return all.map((el) => `${el.tagName} ${(el.ariaLabel || el.textContent || el.id || el.name || "").trim().slice(0, 40)}`);
  });
  const seen = new Set(), faults = [];
  for (let i = 0; i < want.length + 15; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const el = document.activeElement;
      if (!el || el === document.body) return undefined;
      const style = getComputedStyle(el), box = el.getBoundingClientRect();
      return { walk: el.dataset.walk, name: `${el.tagName} ${(el.ariaLabel || el.textContent || "").trim().slice(0, 40)}`, outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0, inView: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth };
    });
    if (!at) { if (seen.size >= want.length) break; continue; }
    if (at.walk !== undefined && seen.has(Number(at.walk))) { if (seen.size >= want.length) break; continue; }
    if (at.walk !== undefined) seen.add(Number(at.walk));
    if (!at.outline) faults.push(`the focus of ${at.name} cannot be seen`);
    if (!at.inView) faults.push(`${at.name} has the focus outside of the window`);
  }
  want.forEach((name, i) => { if (!seen.has(i)) faults.push(`Tab does not reach ${name}`); });
  return faults;
}

const kept = new Set(["run_id", "session_id", "tool_call_id", "args_digest", "digest", "type", "status", "state", "decision", "effect", "policy", "role", "kind", "name", "event_id", "id", "scenario", "model_id"]);
const isTime = /^\d{4}-\d\d-\d\dT/;

// poison puts hostile text into every string of an answer that is not the name of a state, a thing or a time.
function poison(text, turn) {
  const change = (v, key) => {
    if (typeof v === "string") return kept.has(key) || isTime.test(v) ? v : turn();
    if (Array.isArray(v)) return v.map((e) => change(e, key));
    if (v && typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, m]) => [k, change(m, k)]));
    return v;
  };
  return JSON.stringify(change(JSON.parse(text)));
}

export default async function ({ page, base, view, server, check, axe, shot }) {
  const runs = await fill(base, server), list = screens(runs);
  for (const [path, shown] of list) {
    await page.goto(base + path);
    await page.locator(shown).first().waitFor();
    check(`${path} fits the window`, await page.evaluate(tooWide), []);
    check(`${path} has lines that can be read`, await page.evaluate(longLines), []);
    if (view.width !== 1366) await axe(`${path} at ${view.width} px`);
    if (view.width !== 3840) check(`${path} by keyboard`, await walk(page), []);
    await shot(path.replace(/run_\w+/, "run").replace(/[/?=&]/g, "-"));
  }
  if (view.width === 320) { // the menu
    await page.getByRole("button", { name: "Menu" }).press("Enter");
    await page.locator(".side-body").waitFor();
    check("the menu fits the window", await page.evaluate(tooWide), []);
    check("the menu by keyboard", await walk(page), []);
    await axe("the menu");
    await page.keyboard.press("Escape");
    check("Escape closes the menu", await page.locator(".side-body").isVisible(), false);
  }
  if (view.width !== 1366) return;

  const texts = hostile.filter((t) => t.trim());
  let at = 0, used = 0;
  const turn = () => { used++; return texts[at++ % texts.length]; };
  await page.route(/\/(api|v1)\//, async (route) => {
    const path = new URL(route.request().url()).pathname;
    if (route.request().method() !== "GET" || path === "/api/session") return route.continue();
    const response = await route.fetch();
    const type = response.headers()["content-type"] ?? "", body = await response.text();
    if (type.includes("event-stream")) return route.fulfill({ response, body: body.split("\n").map((l) => l.startsWith("data: {") ? `data: ${poison(l.slice(6), turn)}` : l).join("\n") });
    return route.fulfill({ response, body: type.includes("json") && body ? poison(body, turn) : body });
  });
  const ended = list.filter(([path]) => path !== `runs/${runs.waits}`); // the stream of a run that waits has no end
  for (let round = 0; round < 3; round++) for (const [path, shown] of ended) {
    at = round * 59 + at % texts.length;
    await page.goto(base + path);
    await page.locator(shown).first().waitFor();
    const inert = () => page.evaluate(() => ({
      elements: [...document.querySelectorAll("main :is(img, script, iframe, object, embed, style, link, base, meta, video, audio, math, template, marquee)")].map((el) => el.outerHTML.slice(0, 80)),
      links: [...document.querySelectorAll("main a[href]")].map((a) => a.href).filter((h) => !h.startsWith(location.origin)),
      handlers: [...document.querySelectorAll("main *")].filter((el) => [...el.attributes].some((a) => a.name.startsWith("on"))).length,
      turned: [...document.querySelectorAll("main, main *")].filter((el) => [el.title, el.ariaLabel, ...[...el.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data)].some((t) => /[\u202a-\u202e\u2066-\u2069\u0000\u0007\u009b]|[\u{e0000}-\u{e007f}]/u.test(t ?? ""))).map((el) => el.outerHTML.slice(0, 120)),
    }));
    check(`${path} with hostile text`, await inert(), { elements: [], links: [], handlers: 0, turned: [] });
    check(`${path} with hostile text fits the window`, await page.evaluate(tooWide), []);
    if (round === 0) await shot(`hostile-${path.replace(/run_\w+/, "run").replace(/[/?=&]/g, "-")}`);
  }
  check("all hostile texts were shown", used > 3 * texts.length);
}
