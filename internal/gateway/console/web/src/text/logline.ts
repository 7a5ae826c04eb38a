// Lines of a log that another program writes.

const colour = /\\x1b\[[\d;]*m/g; // as the gateway escapes it
const stamp = /^(?:time=)?["[(]?(\d{4}[-/]\d\d[-/]\d\d[T ](\d\d:\d\d:\d\d)(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)["\])]?[\s:]*/;

// stampOf returns the time with which a line begins, as it is written and without its date, "" if it begins with none, and the rest of the line without codes for colours.
export function stampOf(line: string): { time: string; short: string; rest: string } {
  const plain = line.replace(colour, ""), [whole = "", time = "", short = ""] = stamp.exec(plain) ?? [];
  return { time, short, rest: plain.slice(whole.length) };
}
