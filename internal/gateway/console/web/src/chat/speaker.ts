// What is read aloud of a conversation: each stretch of text once, whole sentences at a time.

import { announce } from "../components/basics";
import type { Message } from "./message";

export class Speaker {
  private readonly said = new Map<string, number>(); // characters, by part

  // skip counts what is shown of a message as said.
  skip(message: Message) {
    message.parts.forEach((p, i) => this.said.set(`${message.id} ${i}`, p.text?.length ?? 1));
  }

  // follow says what is new of a message; of a text that is not over, up to its last whole sentence.
  follow(message: Message) {
    message.parts.forEach((p, i) => {
      const key = `${message.id} ${i}`;
      if (p.type === "text") this.text(key, p.text ?? "", p.state !== "streaming" || !message.working);
      if (p.state === "approval-requested" && !this.said.has(key)) {
        this.said.set(key, 1);
        announce(`The call of ${p.type.slice("tool-".length)} awaits your approval.`);
      }
    });
  }

  private text(key: string, text: string, over: boolean) {
    const from = this.said.get(key) ?? 0;
    let to = text.length;
    if (!over) to = from + (text.slice(from).match(/^[^]*[.!?:\n](?=\s)/)?.[0].length ?? 0);
    if (to <= from) return;
    this.said.set(key, to);
    announce(text.slice(from, to));
  }
}
