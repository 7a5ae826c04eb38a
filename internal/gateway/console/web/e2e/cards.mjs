// The cards of calls: parallel calls told apart, their progress and time, why one failed, and results by what they are.

import { ask, config, mcp, model } from "./models.mjs";
import { begin, settle } from "./runs.mjs";

const { port } = await model();
export const files = { "lathe.yaml": config(port), "mcp.cjs": mcp };
export const args = ["--store", "memory"];

export default async function ({ page, base, check, axe, shot, view }) {
  await settle(base, await begin(base, "Hello!", { model: "down", session: "chat-down" }));
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await page.locator(".tries button").first().waitFor();
  check("questions for the tools that there are", (await page.locator(".tries button").allTextContents()).slice(0, 2), ["What is 7 + 35, and what time is it in Tokyo?", "Show me with an example what t__fail does."]);
  if (!view.isMobile) {
    await page.locator(".chats li", { hasText: "Hello!" }).locator(".chat-state").waitFor();
    check("the state of a chat in words", [await page.locator(".chats .chat-state").innerText(), await page.locator(".chats li a").getAttribute("title")], ["✗ failed", "Hello! · The newest answer failed."]);
  }
  await ask(page, "@@three", { end: false });
  const card = (label) => page.locator(".tool", { hasText: `label: "${label}"` });
  await card("A").locator("progress").waitFor();
  await page.waitForFunction(() => /[4-9] of 40/.test(document.querySelector(".tool-progress")?.textContent ?? ""));
  check("the calls are told apart", (await page.locator(".tool .tool-args").allTextContents()).slice(0, 2), ['steps: 40, label: "A"', 'steps: 8, label: "B"']);
  check("the step, once", /^\d+ of 40$/.test(await card("A").locator(".tool-progress").textContent()));
  check("the seconds", /running · \d+ s/.test(await card("A").locator(".state").textContent()));
  await axe("running");
  await shot("running");
  await page.waitForSelector("#stop", { state: "hidden" });
  check("what a tool may change, with its meaning", [await card("A").locator(".tag").innerText(), await card("A").locator(".tag").getAttribute("title")], ["read only", "It changes nothing."]);
  check("how long they took", /completed · [\d.]+ s/.test(await card("A").locator(".state").textContent()));
  check("the group", /3 calls in one step: 2 completed, 1 failed/.test(await page.locator(".tool-group > .meta").textContent()));
  check("why it failed", (await page.locator(".tool.failed").textContent()).includes("disk full"));
  const failure = page.locator(".tool.failed .failure");
  check("it is folded", await failure.count(), 0);
  if (!view.isMobile) check("to one line", await page.locator(".tool.failed > summary").evaluate((el) => el.offsetHeight < 50));
  await axe("folded");
  await shot("folded");
  await page.locator(".tool.failed > summary").press("Enter");
  check("its message and its code in words", (await failure.innerText()).replace(/\s+/g, " "), "Error: disk full at /srv/tool.py:42 execution failed");
  await page.locator(".tool.failed").getByRole("button", { name: "Raw" }).click();
  check("as the model got it", (await page.locator(".tool.failed .json pre").last().textContent()).includes('"code": "execution_failed"'));
  await page.locator(".tool.failed").getByRole("button", { name: "As a message" }).click();
  await failure.waitFor();
  await axe("done");
  await shot("done");

  await page.click("#fresh");
  await ask(page, "@@image");
  const picture = page.locator(".tool .file img");
  await picture.waitFor();
  check("the picture is drawn", await picture.evaluate(async (img) => { await img.decode(); return [img.naturalWidth, img.src.startsWith("blob:")]; }), [5, true]);
  await axe("picture");
  await shot("picture");

  await page.click("#fresh");
  await ask(page, "@@rows");
  await page.locator(".tool summary").click();
  await page.waitForSelector(".result-view table");
  check("the columns", await page.locator(".result-view th").allTextContents(), ["id", "name", "city", "revenue"]);
  check("rows at first", await page.locator(".result-view tbody tr").count(), 50);
  await page.locator(".tool button", { hasText: "Show all 60 rows" }).click();
  check("all rows", await page.locator(".result-view tbody tr").count(), 60);
  check("one frame", await page.locator(".result-view").evaluate((el) => [el, el.firstElementChild].map((e) => getComputedStyle(e).borderTopWidth)), ["0px", "1px"]);
  check("digits stay", await page.locator(".result-view tbody tr").nth(3).locator("td").last().textContent(), "3703.5");
  await axe("table");
  await shot("table");
  await page.locator(".tool button", { hasText: "Raw" }).click();
  check("as the server wrote it", (await page.locator(".tool .json pre").last().textContent()).includes('"name": "Customer 1"'));

  // The same call in the page of its run, while it goes on: what it does, how far it is, and how to stop it.
  const run = await begin(base, "@@long", { model: "local" });
  await page.goto(`${base}runs/${run}`);
  await page.locator(".run-call progress").first().waitFor();
  check("what the run is doing", /t__slow( \(.* of .*\))? runs/.test(await page.locator(".run-doing").textContent()));
  check("the arguments in one line", await page.locator(".run-call .tool-args").first().textContent(), 'steps: 5000, label: "A"');
  check("the time so far", /running · [\d.]+ s/.test(await page.locator(".run-call .state").first().textContent()));
  await axe("a live run");
  await shot("live");
  await page.getByRole("button", { name: "Stop the run" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Stop the run" }).press("Enter");
  await page.locator(".run-facts").getByText("cancelled").first().waitFor();
}
