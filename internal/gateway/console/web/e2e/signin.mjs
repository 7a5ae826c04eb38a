// Sign-in with a key and with a link, what a key sees, and sign-out.

import { call } from "./runs.mjs";

process.env.E2E_TEAM_KEY = "team-key-0123456789abcdef0123456789";
process.env.E2E_BOSS_KEY = "boss-key-0123456789abcdef0123456789";
const { E2E_TEAM_KEY: team, E2E_BOSS_KEY: boss } = process.env;

export const args = ["--store", "memory"];
export const files = { "lathe.yaml": "default_model: sim/demo\nkeys:\n  team: {key: '${E2E_TEAM_KEY}'}\n  boss: {key: '${E2E_BOSS_KEY}', admin: true}\n" +
  "serve: {oidc: {issuer: 'http://127.0.0.1:9', audience: [lathe], default_profile: team, client_id: console}}\n" };

const api = async (base, key, method, path, body) => {
  const response = await fetch(base + path, { method, headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
};

export default async function ({ page, context, base, server, view, check, axe, shot }) {
  const key = page.getByRole("dialog").getByLabel("Key", { exact: true });
  const row = (id) => page.locator(`[data-key="${id}"]`);
  const menu = async () => { if (view.isMobile) await page.getByRole("button", { name: "Menu" }).press("Enter"); };

  await page.goto(`${base}runs`);
  await page.getByRole("dialog", { name: "Sign in to this gateway" }).waitFor();
  await axe("the key dialog");
  await shot("dialog");
  check("the identity provider is offered", await page.getByRole("link", { name: "Sign in with your organisation" }).getAttribute("href"), "/api/session/oidc");
  await page.keyboard.press("Escape");
  check("Escape leaves the question open", await page.getByRole("dialog").isVisible());
  check("the key is not shown", await key.getAttribute("type"), "password");
  check("the key can be typed at once", await page.evaluate(() => document.activeElement.id), "key-text");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("This key is not valid.").waitFor();
  check("a wrong key stays to be mended", await key.inputValue(), "wrong");
  await page.getByRole("button", { name: "Show the key" }).press("Enter");
  check("it can be looked at", await key.getAttribute("type"), "text");
  await page.getByRole("button", { name: "Hide the key" }).press("Enter");
  await page.locator("summary", { hasText: "No key, or lost it?" }).press("Enter");
  check("a password manager finds its fields", await page.locator("form[name=sign-in] input").evaluateAll((all) => all.map((i) => i.autocomplete)), ["username", "current-password"]);
  await axe("a wrong key");
  await shot("wrong");
  await server.kill();
  await key.press("Enter");
  await page.getByRole("alert").getByText("The gateway does not answer").waitFor();
  check("a gateway that is away asks for no key", await page.getByRole("dialog").count(), 0);
  await axe("no gateway");
  await shot("away");
  await server.start();
  await page.getByRole("alert").getByText("the key was not checked").waitFor();
  check("the key is still there", await key.inputValue(), "wrong");
  const [own, other] = await Promise.all([team, boss].map(async (k) => (await api(base, k, "POST", "api/runs", { model: "sim/demo", prompt: "Hello!" })).run_id));
  await key.fill(team);
  await page.keyboard.press("Enter");
  await row(own).waitFor();
  check("a key sees its own runs", await row(other).count(), 0);
  const cookies = (await context.cookies()).map((c) => [c.httpOnly, c.sameSite, c.value.includes(team)]);
  check("one cookie that scripts cannot read and other sites cannot send", cookies, [[true, "Strict", false]]);
  check("the page keeps no key", await page.evaluate((k) => [JSON.stringify({ ...sessionStorage, ...localStorage }), document.documentElement.outerHTML, location.href].some((t) => t.includes(k)), team), false);
  check("a write without the header is refused", await page.evaluate(async () => (await fetch("/api/runs", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } })).status), 403);
  await page.reload();
  await row(own).waitFor();
  await page.goto(`${base}settings`);
  await page.getByRole("alert").or(page.locator(".state-box:not([role=status])")).first().waitFor();
  check("a key that is no admin's does not see the settings", await page.locator(".tbody .tr").count(), 0);
  const refusal = await page.getByRole("alert").innerText();
  for (const part of ["Your key may not do this", "team, an ordinary key", "the rights of an admin key", "/api/config (403, admin_required)", "keys.team.admin: true", "lathe keys new"]) check(`the refusal has ${part}`, refusal.includes(part));
  await axe("a screen that a key may not see");
  await shot("refused");
  await menu();
  await page.getByText("Signed in as team").waitFor();
  if (view.isMobile) await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Sign in with another key" }).press("Enter");
  await page.getByRole("dialog", { name: "Sign in to this gateway" }).waitFor();
  check("no cookie is left", (await context.cookies()).length, 0);

  const { fragment } = await api(base, boss, "POST", "api/session/links");
  await page.goto("about:blank");
  await page.goto(`${base}runs#${fragment}`);
  await row(other).waitFor();
  check("an admin sees the runs of all keys", await row(own).count(), 1);
  check("the token is gone from the address", page.url(), `${base}runs`);
  await menu();
  await page.getByText("Signed in as boss").waitFor();
  await shot("signed-in");
  await page.getByRole("button", { name: "Sign out" }).press("Enter");
  await page.getByRole("dialog", { name: "Sign in to this gateway" }).waitFor();
  await page.goto("about:blank");
  await page.goto(`${base}runs#${fragment}`);
  await page.getByRole("dialog", { name: "Sign in to this gateway" }).waitFor();
  check("the link signs in once", await row(other).count(), 0);
}
