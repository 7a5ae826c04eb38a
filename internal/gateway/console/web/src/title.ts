// The title of the document: that of the screen, with the number of calls that wait in front. While one waits, the icon has a mark.

import { effect, signal } from "@preact/signals";
import { waitingCount } from "./waiting";

export const title = signal("Lathe");

export function watchTitle() {
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]")!, plain = icon.href, marked = new URL(icon.dataset.waiting!, plain.replace(/assets\/[^/]*$/, "")).href;
  effect(() => {
    document.title = `${waitingCount.value ? `(${waitingCount.value}) ` : ""}${title.value}`;
    icon.href = waitingCount.value ? marked : plain;
  });
}
