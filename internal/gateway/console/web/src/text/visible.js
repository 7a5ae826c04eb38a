// What cannot be seen, or changes how the rest is seen, is shown as an escape: control, direction, tag and other
// invisible characters. The set is that of the server. Plain JavaScript, as jsontext.js.

import { hidden as written } from "./hidden.js";
import { layout } from "./jsontext.js";

// edges are the code points at which characters begin to be hidden, and to be seen again.
/** @type {number[]} */
const edges = [];
for (const step of written.split(" ")) edges.push((edges.at(-1) ?? 0) + parseInt(step, 36));

// hidden reports whether a code point is shown as an escape.
/** @param {number} point */
export function hidden(point) {
  let low = 0, high = edges.length; // the first edge beyond point
  while (low < high) {
    const middle = (low + high) >> 1;
    if (/** @type {number} */ (edges[middle]) <= point) low = middle + 1;
    else high = middle;
  }
  return low % 2 === 1;
}

const plain = /^[ -~]*$/;
/** @param {number} n @param {number} digits */
const hex = (n, digits) => n.toString(16).padStart(digits, "0");
/** @param {number} point */
const escape = (point) => point <= 0xFFFF ? `\\u${hex(point, 4)}` : `\\U${hex(point, 8)}`;

// A Piece is a stretch of text, with whether it was hidden and is an escape now.
/** @typedef {[text: string, escaped: boolean]} Piece */

// pieces cuts a text into stretches. Characters of keep stay.
/** @param {string} text @returns {Piece[]} */
export function pieces(text, keep = "") {
  if (plain.test(text)) return [[text, false]];
  /** @type {Piece[]} */
  const out = [];
  let now = "", was = false;
  for (const c of text) {
    const point = c.codePointAt(0) ?? 0;
    const is = hidden(point) && !keep.includes(c);
    if (is !== was && now) {
      out.push([now, was]);
      now = "";
    }
    was = is;
    now += is ? escape(point) : c;
  }
  out.push([now, was]);
  return out;
}

// visible returns the text on one line, with escapes. Names and titles from outside are shown with it.
/** @param {string} text */
export const visible = (text) => pieces(text).map(([s]) => s).join("");

// prose returns text that people write in any script: it has escapes only for what turns the order of other characters
// around, controls and tags. Joiners and marks of a script stay.
/** @param {string} text */
export const prose = (text) => plain.test(text) ? text : text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu, (c) => escape(c.codePointAt(0) ?? 0));

// escapes counts the stretches of a text that are shown as escapes; white space between the tokens of JSON is none.
/** @param {string} text */
export const escapes = (text) => pieces(text, layout(text) === undefined ? "" : "\n\r\t").filter(([, is]) => is).length;

// exactly returns the pieces of a text of which every character counts: JSON with its lines, and nothing hidden.
/** @param {string} text @returns {Piece[]} */
export function exactly(text) {
  const laid = layout(text);
  return laid === undefined ? pieces(text) : pieces(laid, "\n");
}

// shown returns the pieces of a value for people: JSON with its lines, text as it is; nothing is hidden.
/** @param {string} text @returns {Piece[]} */
export function shown(text) {
  const laid = layout(text);
  return pieces(laid ?? text, laid === undefined ? "\n\t" : "\n");
}

// writable returns JSON for a box in which it is edited: with its lines, and with JSON's own escapes for what
// cannot be seen.
/** @param {string} text */
export function writable(text) {
  let out = "";
  for (const c of layout(text) ?? text) {
    if (c === "\n" || !hidden(c.codePointAt(0) ?? 0)) out += c;
    else for (let i = 0; i < c.length; i++) out += `\\u${hex(c.charCodeAt(i), 4)}`;
  }
  return out;
}
