// Versions of the messages after one message: what was asked or answered there before, and what is shown now.

import type { Message } from "./message";

export interface Fork { tails: Message[][]; at: number } // tails[at] is what is shown, and is empty here

export class Branches {
  forks: Record<string, Fork> = {}; // by the id of the message before, "" for the first

  private of(messages: Message[], index: number): Fork | undefined { return this.forks[messages[index - 1]?.id ?? ""]; }

  // fork puts the messages from an index on aside, so that others take their place.
  fork(messages: Message[], index: number) {
    const fork = this.forks[messages[index - 1]?.id ?? ""] ??= { tails: [[]], at: 0 };
    fork.tails[fork.at] = messages.splice(index);
    fork.at = fork.tails.push([]) - 1;
  }

  // place returns which version of how many is shown from an index on.
  place(messages: Message[], index: number): [number, number] {
    const fork = this.of(messages, index);
    return fork ? [fork.at + 1, fork.tails.length] : [1, 1];
  }

  // turn shows another version from an index on.
  turn(messages: Message[], index: number, by: number) {
    const fork = this.of(messages, index), to = fork ? fork.at + by : -1;
    if (!fork?.tails[to]) return;
    fork.tails[fork.at] = messages.splice(index);
    messages.push(...fork.tails[to]!);
    fork.tails[to] = [];
    fork.at = to;
  }
}
