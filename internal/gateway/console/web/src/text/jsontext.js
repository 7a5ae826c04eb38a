// JSON as it is written: digits, escapes, the order of keys and repeated keys stay. Nothing here turns a text into
// a value and back. Plain JavaScript, so that a Go test can load it as it is; tsc checks it by its comments.

const space = /[ \t\n\r]*/y;
const word = /[^ \t\n\r{}[\],:"]+/y;

// afterString returns where the string that begins at i has ended, -1 where it has no end.
/** @param {string} text @param {number} i */
function afterString(text, i) {
  for (let j = text.indexOf('"', i + 1); j >= 0; j = text.indexOf('"', j + 1)) {
    let escapes = 0;
    while (text[j - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return j + 1;
  }
  return -1;
}

// tokens yields where each token begins and ends. It ends early where the text cannot be JSON.
/** @param {string} text @returns {Generator<[number, number]>} */
export function* tokens(text) {
  for (let i = 0; ;) {
    space.lastIndex = i;
    space.test(text);
    i = space.lastIndex;
    if (i >= text.length) return;
    let end = i + 1;
    if (text[i] === '"') end = afterString(text, i);
    else if (!"{}[],:".includes(text[i] ?? "")) {
      word.lastIndex = i;
      word.test(text);
      end = word.lastIndex;
    }
    if (end < 0) return;
    yield [i, end];
    i = end;
  }
}

const deepest = 40; // levels that are indented

// layout returns the JSON of an object or an array with a line for each member. It changes white space between
// tokens and nothing else. A text that is no such JSON has no layout.
/** @param {string} text @returns {string | undefined} */
export function layout(text) {
  try {
    if (typeof JSON.parse(text) !== "object") return undefined;
  } catch {
    return undefined;
  }
  /** @type {string[]} */
  const out = [];
  let depth = 0, before = "";
  const line = () => out.push("\n", "  ".repeat(Math.min(depth, deepest)));
  for (const [from, to] of tokens(text)) {
    const c = text[from] ?? "";
    const closes = c === "}" || c === "]";
    if (closes) depth--;
    if (closes ? before !== "{" && before !== "[" : before === "{" || before === "[" || before === ",") line();
    else if (before === ":") out.push(" ");
    out.push(text.slice(from, to));
    if (c === "{" || c === "[") depth++;
    before = c;
  }
  return out.join("");
}

// member returns the text of a member of a JSON object, undefined where it has none; of several, the last.
/** @param {string} text @param {string} name @returns {string | undefined} */
export function member(text, name) {
  let depth = 0, key = '""', from = -1, end = 0, found;
  for (const [s, e] of tokens(text)) {
    const c = text[s];
    if (c === "}" || c === "]") depth--;
    if (from >= 0 && (depth === 0 || depth === 1 && c === ",")) {
      found = text.slice(from, end).trimStart();
      from = -1;
    }
    if (depth === 1 && from < 0) {
      if (c === '"') key = text.slice(s, e);
      else if (c === ":" && JSON.parse(key) === name) from = e;
    }
    if (c === "{" || c === "[") depth++;
    end = e;
  }
  return found;
}

// content returns the text that a JSON value stands for: that of a string, else the JSON itself.
/** @param {string | undefined} raw @returns {string | undefined} */
export const content = (raw) => raw?.[0] === '"' ? JSON.parse(raw) : raw;

// entries returns the members of an object, or the elements of an array with undefined for their names, as the texts that they are; undefined
// for another value and for a text that is no JSON.
/** @param {string} text @returns {{ array: boolean, of: [name: string | undefined, value: string][] } | undefined} */
export function entries(text) {
  try {
    if (typeof (JSON.parse(text) ?? "") !== "object") return undefined;
  } catch {
    return undefined;
  }
  /** @type {[string | undefined, string][]} */
  const of = [];
  let depth = 0, from = -1, end = 0, array = false;
  /** @type {string | undefined} */
  let name;
  for (const [s, e] of tokens(text)) {
    const c = text[s];
    if (depth === 0) array = c === "[";
    const closes = c === "}" || c === "]";
    if (closes) depth--;
    if (from >= 0 && (depth === 0 || depth === 1 && c === ",")) {
      of.push([name, text.slice(from, end)]);
      from = -1;
      name = undefined;
    } else if (depth === 1 && c === ":" && from >= 0 && name === undefined && !array) {
      name = JSON.parse(text.slice(from, end));
      from = -1;
    } else if (depth === 1 && from < 0 && !closes) from = s;
    if (c === "{" || c === "[") depth++;
    end = e;
  }
  return { array, of };
}
