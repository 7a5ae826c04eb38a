// What a chat asks of its runs beside its messages. It is kept in this browser for each chat.

import { signal } from "@preact/signals";

export interface Options {
  model: string; // "": the server's default
  system: string;
  mode: "" | "relaxed" | "enforced" | "disabled"; // whether a model may, must, or cannot call tools; "": as the server has it
  tools: string[] | null; // null: all
}

const none: Options = { model: "", system: "", mode: "", tools: null };
const saved = "lathe.chat.options", most = 100; // chats

type Kept = [id: string, options: Options][];
const read = () => JSON.parse(localStorage.getItem(saved) ?? "[]") as Kept;

export const options = signal<Options>(none);

// loadOptions has options be those of a chat; a new one begins with the model that was chosen last.
export function loadOptions(id: string) {
  const kept = read();
  options.value = kept.find(([k]) => k === id)?.[1] ?? { ...none, model: kept[0]?.[1].model ?? "" };
}

export function setOptions(id: string, change: Partial<Options>) {
  options.value = { ...options.value, ...change };
  try {
    localStorage.setItem(saved, JSON.stringify([[id, options.value], ...read().filter(([k]) => k !== id)].slice(0, most)));
  } catch { /* the browser has no room: they hold until the page is left */ }
}

// optionsOf adds them to the body of a request.
export function optionsOf(id: string, body: object, durable: boolean): object {
  loadOptions(id);
  const { model, system, mode, tools } = options.value;
  const lathe = { ...(durable ? { detach: true } : {}), ...(mode ? { tool_use_mode: mode } : {}), ...(tools ? { tools } : {}) };
  return { ...body, ...(model ? { model } : {}), ...(system ? { system } : {}), ...(Object.keys(lathe).length ? { lathe } : {}) };
}
