// Nothing that was written is lost: edit in place, versions, drafts, Stop after a restart and after a reload, two tabs of one chat.

import { ask, config, mcp, model } from "./models.mjs";

const { port, release } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "sqlite:runs.db"];

export default async function ({ page, context, base, check, axe, shot, server, watch }) {
  const idle = (p = page) => p.waitForSelector("#stop", { state: "hidden" });
  const own = (p = page) => p.locator(".turn.user .said").allTextContents();
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await ask(page, "first question");
  await ask(page, "second question");
  await page.fill("#prompt", "a draft of mine");
  await page.locator(".user-actions button", { hasText: "Edit" }).first().click();
  const editor = page.getByLabel("Edited question");
  check("nothing is gone", [await page.locator(".turn").count(), await page.inputValue("#prompt")], [4, "a draft of mine"]);
  await shot("edit");
  await editor.press("Escape");
  check("the edit is cancelled", [await editor.count(), await own()], [0, ["first question", "second question"]]);
  await page.locator(".user-actions button", { hasText: "Edit" }).first().click();
  await editor.fill("another question");
  await editor.press("Enter");
  await page.locator(".turn.assistant", { hasText: "You said: another question" }).waitFor();
  await idle();
  check("the other version", [await own(), await page.locator(".turn.user .versions .num").textContent()], [["another question"], "2/2"]);
  await axe("versions");
  await page.getByRole("button", { name: "Previous version" }).click();
  check("the first version", await own(), ["first question", "second question"]);
  await page.locator("button", { hasText: "Answer again" }).click();
  await page.waitForFunction(() => document.querySelector(".turn.assistant:last-child .versions")?.textContent.includes("2/2"));
  await idle();
  await shot("versions");
  const asked = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/api/chat"));
  await page.getByRole("button", { name: "Answer again with another model" }).click();
  await page.getByRole("option", { name: "down" }).click();
  check("another model is asked", JSON.parse((await asked).postData()).model, "down");
  await page.locator(".turn.assistant:last-child .problem").waitFor();
  await idle();
  check("as another version", await page.locator(".turn.assistant:last-child .versions .num").textContent(), "3/3");
  await page.locator(".turn.assistant:last-child").getByRole("button", { name: "Previous version" }).click();
  check("the draft stayed", await page.inputValue("#prompt"), "a draft of mine");
  await page.reload();
  await page.waitForSelector("#health.up");
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 4);
  check("the draft and the versions after a reload", [await page.inputValue("#prompt"), await page.locator(".versions .num").allTextContents()], ["a draft of mine", ["1/2", "2/3"]]);

  const second = await context.newPage();
  await watch(second);
  await second.goto(page.url());
  await second.locator(".turn.user", { hasText: "second question" }).waitFor();
  await idle(second);
  await ask(second, "from the second tab");
  await page.locator(".turn.user", { hasText: "from the second tab" }).waitFor();
  await idle();
  check("the draft is still there", await page.inputValue("#prompt"), "a draft of mine");
  await ask(page, "from the first tab");
  await second.locator(".turn.user", { hasText: "from the first tab" }).waitFor();
  check("both have one chat", await own(second), await own());
  await second.close();

  await page.click("#fresh");
  const text = "the quick brown fox jumps over the lazy dog";
  const shown = page.locator(".turn.assistant .said", { hasText: text });
  await ask(page, "@@slow reload", { end: false });
  await shown.waitFor();
  await page.reload();
  await page.waitForSelector("#health.up");
  await shown.waitFor();
  await page.waitForFunction(() => document.querySelector(".working")?.textContent === "working"); // no text is awaited
  const third = await context.newPage();
  await watch(third);
  await third.goto(page.url());
  await third.locator(".turn.assistant .said", { hasText: text }).waitFor();
  await third.close();
  await page.locator("#stop").click();
  await page.getByText("You stopped the run.").waitFor();
  check("Stop after a reload keeps the text", await shown.count(), 1);

  await page.click("#fresh");
  await ask(page, "@@slow restart", { end: false });
  await shown.waitFor();
  await server.kill();
  await page.waitForSelector("#health.lost");
  await server.start();
  await page.waitForSelector("#health.up");
  await page.waitForFunction(() => !document.querySelector(".working.lost"));
  await page.locator("#stop").click();
  await page.getByText("You stopped the run.").waitFor();
  check("Stop after a restart keeps the text", await shown.count(), 1);
  await shot("stopped");
  release();
}
