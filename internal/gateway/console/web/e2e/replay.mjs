// A run again with another model, and both beside each other.

import { begin, call, settle } from "./runs.mjs";

export const args = ["--store", "memory"];
export const files = { "lathe.yaml": "default_model: sim/demo\nsim: {scripts: {other: other.script}}\n", "other.script": "-- turn --\ncall: calculator {\"expression\":\"35 + 7\"}\n-- turn --\ntext: It is <b>42</b>\u202e, I think.\n" };

export default async function ({ page, base, check, axe, shot }) {
  const id = await begin(base, "What is 7 + 35?");
  await settle(base, id);
  await page.goto(`${base}runs/${id}`);
  await page.getByRole("link", { name: "Run again…" }).press("Enter");
  await page.getByRole("heading", { name: "Run again" }).waitFor();
  await axe("the form");

  // The same model gives the same run, and no tool is called.
  await page.getByRole("button", { name: "Run again" }).press("Enter");
  await page.getByText(/None of \d+ items? differ\./).waitFor();
  await page.getByText(/^The new run gives the same answer\./).waitFor();
  const first = new URL(page.url()).searchParams.get("with");
  check("the new run names the recorded one", JSON.parse(await call(base, "GET", `api/runs/${first}`)).replays, id);
  const events = async (id) => (await call(base, "GET", `api/runs/${id}/export`)).trim().split("\n").map((l) => JSON.parse(l)).filter((e) => ["ToolCallResult", "ModelCallFinished"].includes(e.type)).map((e) => JSON.stringify(e.content));
  check("its answers and results are byte for byte those of the record", await events(first), await events(id));
  await axe("two equal runs");
  await shot("same");

  // Another model: the call with other arguments stands beside the recorded one.
  await page.getByRole("combobox", { name: /^Model/ }).selectOption("sim/script-other");
  await page.getByLabel("Temperature").fill("0.5");
  const sent = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/replay"));
  await page.getByRole("button", { name: "Run again" }).press("Enter");
  check("what is sent", JSON.parse((await sent).postData()), { tools: "recorded", model: "sim/script-other", settings: { temperature: 0.5 } });
  await page.getByText(/\d+ of \d+ items? differs?\./).waitFor();
  await page.getByRole("region", { name: /^New \d+: calculator, Arguments/ }).waitFor();
  const part = (name) => page.getByRole("region", { name }).locator("ins, del").allTextContents();
  check("what is new", (await part(/^New \d+: calculator, Arguments/)).join(""), "357");
  check("what is gone", (await part(/^Recorded \d+: calculator, Arguments/)).join(""), "735");
  check("a call that is not recorded", await page.getByText("unavailable").first().count(), 1);
  check("hostile text stays text", [await page.locator("main :is(img, b b)").count(), (await page.locator(".compare").textContent()).includes("<b>42</b>\\u202e, I think.")], [0, true]);
  await page.getByText(/^The new run gives another answer.*calls? with other arguments|^The new run gives another answer/).waitFor();
  const listed = page.getByRole("region", { name: "Runs of this conversation" });
  await listed.locator("tbody tr").nth(2).waitFor();
  check("all runs of the conversation", await listed.locator("tbody tr").count(), 3);
  await page.goto(`${base}runs`);
  check("a repeated run is marked", await page.locator(".tbody .tr", { hasText: "↻ again" }).first().waitFor().then(() => page.locator(".tbody .tr .badge", { hasText: "again" }).count()), 2);
  await page.goBack();
  await page.getByRole("region", { name: /^New \d+: calculator, Arguments/ }).waitFor();
  await axe("two runs that differ");
  await shot("differ");
  await page.getByLabel("Only what differs").check();
  check("equal items are left out", await page.locator(".compare-row:not(.changed)").count(), 0);
  const address = page.url();
  await page.reload();
  await page.getByText(/\d+ of \d+ items? differs?\./).waitFor();
  check("the address shows the same again", page.url(), address);
  await page.getByRole("link", { name: new URL(address).searchParams.get("with") }).press("Enter");
  await page.getByRole("link", { name: "Compare with the recorded run" }).press("Enter");
  await page.locator(".compare-row").first().waitFor();
  await page.goto(`${base}runs/${id}/replay?with=run_none`);
  await page.getByRole("alert").waitFor();
  await axe("a run that is not there");
}
