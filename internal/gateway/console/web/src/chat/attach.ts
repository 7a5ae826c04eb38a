// Files that are given to a model: pictures and PDFs as they are, text as text with its name.

import type { Part } from "./message";

export interface Attachment { name: string; size: number; part: Part } // a file part, or a text part with the file in a fence

const passed = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]);
const most = 10 << 20; // bytes of a file that the server takes

const dataURL = (file: File) => new Promise<string>((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
  reader.readAsDataURL(file);
});

// attach reads a file. It throws an error for people if the file cannot be given to a model.
export async function attach(file: File, largest: number): Promise<Attachment> {
  const limit = Math.min(largest, most);
  if (file.size > limit) throw new Error(`${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MiB; a file may have ${(limit / 2 ** 20).toFixed(1)} MiB.`);
  if (passed.has(file.type)) return { name: file.name, size: file.size, part: { type: "file", mediaType: file.type, filename: file.name, url: await dataURL(file) } };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is no picture, PDF or text in UTF-8.`);
  }
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((m) => m[0].length + 1)));
  return { name: file.name, size: file.size, part: { type: "text", filename: file.name, text: `${file.name}:\n${fence}\n${text.replace(/\n$/, "")}\n${fence}` } };
}
