// The chat against a real server: a question by keyboard, a tool's call, Markdown, copy, edit, options, the list of chats.

import { readFileSync } from "node:fs";

export const args = ["--store", "memory"];

export default async function ({ page, base, check, axe, shot, view }) {
  const choose = async (name) => { // of the menu of the chat, by keyboard
    await page.locator("#chat-menu").press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "options"); // the first entry has the focus
    await page.getByRole("menuitem", { name, exact: true }).press("Enter");
  };
  await page.goto(base);
  await page.waitForSelector("#health.up");
  await page.waitForSelector(".welcome");
  await axe("welcome");
  await shot("welcome");
  await page.focus("#prompt");
  await page.keyboard.type("What is 7 + 35, and what time is it in Tokyo?");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".turn.assistant .meta >> text=model call");
  await page.waitForSelector("#stop", { state: "hidden" });
  check("its address", new URL(page.url()).pathname.startsWith("/chats/"));
  check("the calls", await page.locator(".tool").count() >= 2);
  await page.locator(".tool summary").first().click();
  await page.waitForSelector(".tool .json pre");
  await axe("answered");
  await shot("answered");

  const address = page.url();
  await page.click("#fresh");
  await page.waitForSelector(".welcome");
  await page.fill("#prompt", "say **bold**");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".turn.assistant .meta >> text=model call");
  if (view.width > 1300) {
    await page.waitForFunction(() => document.querySelectorAll(".chats li").length === 2);
    check("titles", (await page.locator(".chats .chat-name").allTextContents()).sort(), ["What is 7 + 35, and what time is it in Tokyo?", "say **bold**"]);
    await page.fill(".chats input", "= 42"); // of an answer
    await page.waitForFunction(() => document.querySelectorAll(".chats li").length === 1);
    await page.fill(".chats input", "");
    await page.waitForFunction(() => document.querySelectorAll(".chats li").length === 2);
    check("the days of the list", await page.locator(".chats h3").allTextContents(), ["Today"]);
    await page.getByRole("button", { name: "List of chats" }).press("Enter");
    await page.waitForSelector(".chats", { state: "detached" });
    await page.reload();
    await page.locator(".chats-fold[aria-expanded=false]").waitFor();
    check("the list stays folded", await page.locator(".chats").count(), 0);
    await axe("a folded list of chats");
    await shot("folded");
    await page.getByRole("button", { name: "List of chats" }).press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".chats li").length === 2);
    check("the focus stays", await page.evaluate(() => document.activeElement.className.includes("chats-fold")));
    await choose("Pin");
    await page.locator(".chats li .pinned").waitFor();
    check("the pinned chat is the first", (await page.locator(".chats .chat-name").first().textContent()).endsWith("say **bold**"));
    await axe("pinned");
    check("its place", await page.locator(".chats h3").allTextContents(), ["Pinned", "Today"]);
    await choose("Unpin");
    await page.waitForSelector(".pinned", { state: "detached" });
    const rename = async (to) => { // a chat of the list that is not open
      await page.getByRole("button", { name: /^More about (say|Bold)/ }).press("Enter");
      await page.getByRole("menuitem", { name: "Rename" }).press("Enter");
      await page.getByLabel("Title.").fill(to);
      await page.keyboard.press("Enter");
    };
    await rename("Bold words");
    await page.locator(".chats .chat-name", { hasText: "Bold words" }).waitFor();
    await axe("a chat of the list");
    await rename("");
    await page.locator(".chats .chat-name", { hasText: "say **bold**" }).waitFor();
    await page.fill(".chats input", "TOKYO");
    await page.waitForFunction(() => document.querySelectorAll(".chats li").length === 1);
    await page.locator(".chats li a").click();
  } else {
    await page.locator(".chats-open").click();
    await page.locator("dialog li a", { hasText: "Tokyo" }).click();
  }
  await page.waitForFunction((want) => location.href === want && document.querySelectorAll(".tool").length >= 2, address);
  check("the question that the server kept", await page.locator(".turn.user .said").textContent(), "What is 7 + 35, and what time is it in Tokyo?");
  await page.waitForSelector("#stop", { state: "hidden" });

  await page.evaluate(() => sessionStorage.clear());
  await page.goto("about:blank"); // a page that is left saves its chat
  await page.goto(address);
  await page.waitForFunction(() => document.querySelectorAll(".tool").length >= 2);
  await page.waitForSelector("#stop", { state: "hidden" });
  await page.locator(".user-actions button", { hasText: "Edit" }).click();
  const editor = page.getByLabel("Edited question");
  check("the question is in its editor", await editor.inputValue(), "What is 7 + 35, and what time is it in Tokyo?");
  await axe("edit");
  await editor.fill("What is 2 * 21?");
  await editor.press("Enter");
  await page.waitForSelector(".turn.assistant .meta >> text=1 tool call");
  check("one question", await page.locator(".turn.user").count(), 1);

  check("the head of the chat takes one line", await page.evaluate(() => document.querySelector(".chat-head").offsetHeight < 60));
  check("the answer has its time", /\d m?s/.test(await page.locator(".turn.assistant > .meta").textContent()));
  await page.locator("#chat-menu").click();
  await page.getByRole("menu").waitFor();
  await page.waitForFunction(() => document.activeElement.id === "options"); // the first entry has the focus
  await page.keyboard.press("End");
  check("End leads to the last", await page.evaluate(() => document.activeElement.textContent), "Delete");
  await axe("the menu of the chat");
  await shot("menu");
  await page.keyboard.press("Escape");
  check("Escape leaves the menu", await page.evaluate(() => [document.activeElement.id, document.querySelectorAll("[role=menu]").length]), ["chat-menu", 0]);
  await page.locator("#model").press("Enter");
  await page.getByRole("combobox", { name: "Find a model" }).fill("careful");
  check("the list of models fits the window", await page.evaluate(() => { const box = document.querySelector(".drop:popover-open").getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; }));
  await axe("the list of models");
  check("what is found", await page.getByRole("listbox").getByRole("option").allTextContents(), ["sim/careful"]);
  await page.keyboard.press("Enter");
  check("the model is chosen", await page.locator("#model").textContent(), "sim/careful");
  // A chat that was exported is a chat of its own once it is imported, and goes on.
  await choose("Export or import");
  await axe("export");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export as JSON" }).click()]);
  const exported = await file.path(), was = page.url();
  await page.getByLabel("Import a chat from JSON").setInputFiles({ name: "chat.json", mimeType: "application/json", buffer: Buffer.from("{}") });
  await page.getByText("This file is no chat that was exported as JSON.").waitFor();
  await page.getByRole("button", { name: "Close" }).last().click();
  await choose("Export or import");
  await page.getByLabel("Import a chat from JSON").setInputFiles({ name: "chat.json", mimeType: "application/json", buffer: readFileSync(exported) });
  await page.waitForFunction((old) => location.href !== old, was);
  check("the imported chat", [await page.locator(".turn.user .said").allTextContents(), await page.locator(".tool").count()], [["What is 2 * 21?"], 1]);
  await page.goto(was);
  await page.waitForSelector(".turn.assistant .meta >> text=1 tool call");
  await page.waitForSelector("#stop", { state: "hidden" });

  await choose("Options");
  await page.waitForSelector("dialog #system");
  await axe("options");
  await shot("options");
  await page.fill("#system", "Answer briefly.");
  await page.fill("#temperature", "hot");
  await page.getByRole("alert").getByText("The temperature is a number from 0 to 2.").waitFor();
  await axe("a wrong option");
  await page.fill("#temperature", "0.5");
  await page.fill("#max-tokens", "500");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement.id === "chat-menu"); // the focus returns
  check("what is set", await page.locator(".hint").textContent(), "Sent with system text, temperature 0.5, at most 500 tokens. Change");
  await page.fill("#prompt", "What is 3 * 3?");
  const sent = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/api/chat"));
  await page.keyboard.press("Enter");
  const asked = JSON.parse((await sent).postData());
  check("the options are sent", [asked.model, asked.system, asked.lathe.temperature, asked.lathe.max_tokens], ["sim/careful", "Answer briefly.", 0.5, 500]);
  await page.waitForSelector("#stop", { state: "hidden" });

  await choose("Rename");
  await page.getByLabel("Title.").fill("Sums, renamed");
  await axe("rename");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "Sums, renamed" }).waitFor();
  check("the server has the title", await page.evaluate(async () => (await (await fetch("/api/sessions")).json()).data.some((s) => s.title === "Sums, renamed")));
  await choose("Delete");
  await axe("delete");
  await page.locator("dialog button", { hasText: "Delete for good" }).click();
  await page.waitForSelector(".welcome");
  const left = await page.evaluate(async () => (await (await fetch("/api/sessions")).json()).data.map((s) => s.title));
  check("the chats that are left", left, ["say **bold**"]);
}
