// A call that waits is approved by keyboard; the run goes on in the same message. The address also opens elsewhere.

export const args = ["--store", "memory"];
export const files = { "lathe.yaml": "policy:\n  tools: {calculator: ask}\n" };

export default async function ({ page, view, base, check, axe, shot, context, watch }) {
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await page.fill("#prompt", "What is 7 + 35?");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#talk .card .approve");
  await axe("card");
  await shot("card");
  if (view.width > 1300) await page.locator(".chats .chat-state.wait", { hasText: "waits" }).waitFor();
  const other = await context.newPage();
  await watch(other);
  await other.goto(page.url());
  await other.waitForSelector("#talk .card .approve");
  await page.focus("#talk .card .approve");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".assistant .said >> text=42");
  await page.waitForFunction(() => document.activeElement.tagName === "SUMMARY"); // the focus stays at the call
  await other.waitForSelector(".assistant .said >> text=42");
  await other.waitForSelector(".card .approve", { state: "detached" });
  await page.waitForSelector("#stop", { state: "hidden" });
  const run = await page.evaluate(async () => (await (await fetch("/api/runs")).json()).data[0]), took = Date.parse(run.ended) - Date.parse(run.started);
  await page.waitForFunction((want) => [...document.querySelectorAll(".turn.assistant > .meta .num")].some((el) => el.textContent === want), took < 1000 ? `${took} ms` : `${Number((took / 1000).toFixed(1))} s`); // the time of the run, not of the page
  if (view.width > 1300) await page.locator(".chats .chat-state.wait").waitFor({ state: "detached" });
  await axe("approved");
  await shot("approved");
}
