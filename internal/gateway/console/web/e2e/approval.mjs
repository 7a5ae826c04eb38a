// A call that waits is approved by keyboard; the run goes on in the same message. The address also opens elsewhere.

export const args = ["--store", "memory"];
export const files = { "lathe.yaml": "policy:\n  tools: {calculator: ask}\n" };

export default async function ({ page, base, check, axe, shot, context, watch }) {
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await page.fill("#prompt", "What is 7 + 35?");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#talk .card .approve");
  await axe("card");
  await shot("card");
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
  await axe("approved");
  await shot("approved");
}
