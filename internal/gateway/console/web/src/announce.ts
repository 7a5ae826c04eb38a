// What is read aloud by screen readers, wherever it is said.

import { signal } from "@preact/signals";

// announcements are read aloud, each once.
export const announcements = signal<{ id: number; text: string }[]>([]);
let announced = 0;
const kept = 20;

// announce has a text read aloud after what is being read.
export function announce(text: string) {
  if (text.trim()) announcements.value = [...announcements.value.slice(1 - kept), { id: announced++, text }];
}
