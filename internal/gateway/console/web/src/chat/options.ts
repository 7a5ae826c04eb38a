// What a chat asks of its runs beside its messages. It is kept in this browser for each chat.

import { signal } from "@preact/signals";

export interface Options {
  model: string; // "": the server's default
  system: string;
  mode: "" | "relaxed" | "enforced" | "disabled"; // whether a model may, must, or cannot call tools; "": as the server has it
  tools: string[] | null; // null: all
  temperature?: string; // as it was typed; absent or "": as the model has it
  maxTokens?: string;
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

// wrong says what cannot be sent of the options, "" if nothing: then the parameters are left out.
export function wrong({ temperature = "", maxTokens = "" }: Options): string {
  if (temperature && !(Number(temperature) >= 0 && Number(temperature) <= 2)) return "The temperature is a number from 0 to 2.";
  if (maxTokens && !(/^\d+$/.test(maxTokens) && Number(maxTokens) >= 1 && Number(maxTokens) <= 1_000_000)) return "The longest answer is a number of tokens from 1 to 1,000,000.";
  return "";
}

// optionsOf adds them to the body of a request.
export function optionsOf(id: string, body: object, durable: boolean): object {
  loadOptions(id);
  const { model, system, mode, tools, temperature, maxTokens } = options.value;
  const lathe = { ...(wrong(options.value) ? {} : { ...(temperature ? { temperature: Number(temperature) } : {}), ...(maxTokens ? { max_tokens: Number(maxTokens) } : {}) }), ...(durable ? { detach: true } : {}), ...(mode ? { tool_use_mode: mode } : {}), ...(tools ? { tools } : {}) };
  return { ...body, ...(model ? { model } : {}), ...(system ? { system } : {}), ...(Object.keys(lathe).length ? { lathe } : {}) };
}
