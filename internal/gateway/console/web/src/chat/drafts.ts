// What stands in the box of each chat and is not sent. It stays in this tab until it is.

const saved = "lathe.chat.drafts";
const read = () => JSON.parse(sessionStorage.getItem(saved) ?? "{}") as Record<string, string>;

export const draftOf = (id: string) => read()[id] ?? "";

export function keepDraft(id: string, text: string) {
  const drafts = read();
  if (drafts[id] === text || !text && !(id in drafts)) return;
  if (text) drafts[id] = text;
  else delete drafts[id];
  try {
    sessionStorage.setItem(saved, JSON.stringify(drafts));
  } catch { /* the browser has no room: it is kept until the page is left */ }
}
