// Maths in Markdown: $…$, \(…\), and in lines of their own $$…$$ and \[…\]. The tokens math_inline and math_block have the source.

import type { MarkdownIt } from "markdown-it";

const pairs = [["$$", "$$"], ["\\[", "\\]"], ["\\(", "\\)"], ["$", "$"]] as const;

// closing returns where the closing mark is, -1 if there is none. A single $ closes after a character that is no space and before one that is no
// digit, so that prices stay text.
function closing(src: string, from: number, close: string): number {
  for (let at = src.indexOf(close, from); at >= 0; at = src.indexOf(close, at + close.length)) {
    let escapes = 0;
    while (src[at - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0 && (close !== "$" || !/\s/.test(src[at - 1] ?? " ") && !/\d/.test(src[at + 1] ?? "") && at > from)) return at;
  }
  return -1;
}

export function math(md: MarkdownIt) {
  md.inline.ruler.before("escape", "math_inline", (state, silent) => {
    const pair = pairs.find(([open]) => state.src.startsWith(open, state.pos));
    if (!pair) return false;
    const [open, close] = pair, from = state.pos + open.length;
    if (open === "$" && /[\s$]/.test(state.src[from] ?? " ")) return false;
    const end = closing(state.src, from, close), text = state.src.slice(from, end);
    if (end < 0 || end > state.posMax || !text.trim() || /\n\s*\n/.test(text)) return false;
    if (!silent) Object.assign(state.push("math_inline", "math", 0), { content: text.trim(), markup: open });
    state.pos = end + close.length;
    return true;
  });
  md.block.ruler.before("fence", "math_block", (state, begin, last, silent) => {
    const line = (n: number) => state.src.slice(state.bMarks[n]! + state.tShift[n]!, state.eMarks[n]);
    const pair = pairs.slice(0, 2).find(([open]) => line(begin).startsWith(open));
    if (!pair || state.sCount[begin]! - state.blkIndent >= 4) return false;
    const [open, close] = pair;
    let end = begin, text = line(begin).slice(open.length);
    while (closing(text, 0, close) < 0) { // it ends before an empty line, or is none
      if (++end >= last || state.isEmpty(end)) return false;
      text += `\n${line(end)}`;
    }
    const at = closing(text, 0, close);
    if (text.slice(at + close.length).trim()) return false;
    if (silent) return true;
    state.line = end + 1;
    Object.assign(state.push("math_block", "math", 0), { block: true, content: text.slice(0, at).trim(), markup: open, map: [begin, state.line] });
    return true;
  }, { alt: ["paragraph", "blockquote", "list"] });
}
