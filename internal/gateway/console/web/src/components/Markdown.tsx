// Markdown as elements: the tokens of markdown-it become Preact nodes, never markup. Raw HTML is text, images are text with
// their address, and a link shows its whole address before it is opened.

import MarkdownIt, { type Token } from "markdown-it";
import footnote from "markdown-it-footnote";
import { Component, createRef, Fragment, h, type ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { prose, visible } from "../text/visible.js";
import { Copy } from "./basics";
import { Formula, loadMath, mayHaveMath } from "./Formula";
import { Highlight } from "./Highlight";
import { math } from "./math";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true, typographer: false }).use(footnote).use(math);
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // only what has a scheme is a link
parser.validateLink = () => true; // no link is followed without its address having been shown

// Grow shows a text that gets longer. Its node stays the same and is appended to, so that what is selected in it stays.
class Grow extends Component<{ text: string }> {
  private readonly span = createRef<HTMLSpanElement>();
  override shouldComponentUpdate({ text }: { text: string }) {
    const shown = this.span.current?.firstChild;
    if (shown instanceof Text && text.startsWith(shown.data)) shown.appendData(text.slice(shown.length));
    else if (this.span.current) this.span.current.textContent = text;
    return false;
  }
  override render() { return <span ref={this.span}>{this.props.text}</span>; }
}

// OutsideLink is the text of a link. Activating it shows the whole address, with a link that opens it.
function OutsideLink({ to, children }: { to: string; children: ComponentChildren }) {
  const [open, set] = useState(false);
  const web = /^https?:\/\//i.test(to);
  return <span class="outside"><button type="button" class="link" aria-expanded={open} title={visible(to)} onClick={() => set(!open)}>{children}</button>
    {open && <span class="outside-address"> <span class="mono">{visible(to)}</span> {web ? <a href={to} target="_blank" rel="noopener noreferrer nofollow">open</a> : <span class="soft">no web address</span>}</span>}
  </span>;
}

interface Tree { token: Token; children: Tree[] }

// nest makes a tree of the flat list of tokens.
function nest(tokens: Token[]): Tree[] {
  const root: Tree[] = [], stack = [root];
  for (const token of tokens) {
    if (token.nesting < 0) {
      stack.pop();
      continue;
    }
    const node: Tree = { token, children: [] };
    stack.at(-1)!.push(node);
    if (token.nesting > 0) stack.push(node.children);
  }
  return root;
}

const plainTags = new Set(["p", "ul", "ol", "li", "blockquote", "strong", "em", "s", "thead", "tbody", "tr", "hr", "br"]);
const directed = new Set(["p", "ul", "ol", "li", "blockquote"]); // whose direction is that of their first letter

// taskOf takes the mark of a task off a list item and returns whether it is done, undefined if the item is no task.
function taskOf(item: Tree): boolean | undefined {
  let first: Tree | undefined = item;
  while (first && first.token.type !== "inline") first = first.children[0];
  const text = first?.token.children?.[0], mark = text?.type === "text" && /^\[([ xX])\] /.exec(text.content);
  if (!mark) return undefined;
  text.content = text.content.slice(mark[0].length);
  return mark[1] !== " ";
}

// Note is the mark of a footnote. Activating it leads to the note, and back.
function Note({ id, back, children }: { id: string; back?: boolean; children: ComponentChildren }) {
  const find = (e: MouseEvent) => (e.currentTarget as Element).closest(".md")?.querySelector<HTMLElement>(`[data-note="${back ? "ref" : "note"}-${id}"]`);
  return <button type="button" class="link note" data-note={back ? undefined : `ref-${id}`} aria-label={back ? `Back to note ${id}` : `Note ${id}`} onClick={(e) => { const to = find(e); to?.scrollIntoView({ block: "nearest" }); to?.focus(); }}>{children}</button>;
}

function node({ token, children }: Tree, key: number): ComponentChildren {
  const inner = () => children.map(node), note = String(Number(token.meta?.id ?? 0) + 1);
  switch (token.type) {
    case "inline":
      return <Fragment key={key}>{nest(token.children ?? []).map(node)}</Fragment>;
    case "text":
    case "html_inline":
    case "html_block":
      return <Grow key={key} text={prose(token.content)} />;
    case "softbreak":
    case "hardbreak":
      return <br key={key} />;
    case "code_inline":
      return <code key={key}>{prose(token.content)}</code>;
    case "code_block":
    case "fence":
      return <Code key={key} text={token.content} language={token.info.trim().split(/\s/)[0] ?? ""} />;
    case "image":
      return <OutsideLink key={key} to={String(token.attrGet("src") ?? "")}>[image{token.content ? `: ${prose(token.content)}` : ""}]</OutsideLink>;
    case "link_open":
      return <OutsideLink key={key} to={String(token.attrGet("href") ?? "")}>{inner()}</OutsideLink>;
    case "math_inline":
    case "math_block":
      return <Formula key={key} tex={token.content} block={token.type === "math_block" || token.markup === "$$" || token.markup === "\\["} />;
    case "footnote_ref":
      return <sup key={key}><Note id={note}>{note}</Note></sup>;
    case "footnote_block_open":
      return <ol key={key} class="md-notes">{inner()}</ol>;
    case "footnote_open":
      return <li key={key} dir="auto" tabIndex={-1} data-note={`note-${note}`}>{inner()}</li>;
    case "footnote_anchor":
      return <Fragment key={key}> <Note id={note} back>↩</Note></Fragment>;
    case "list_item_open": {
      const done = taskOf({ token, children });
      return <li key={key} dir="auto" class={done === undefined ? undefined : "task"}>{done !== undefined && <input type="checkbox" checked={done} disabled aria-label={done ? "Done" : "To do"} />}{inner()}</li>;
    }
    case "table_open":
      return <div class="md-table" key={key} tabIndex={0} role="region" aria-label="Table"><table>{inner()}</table></div>;
    case "heading_open": // the conversation has its own h1
      return h(`h${Math.min(6, Number(token.tag.slice(1)) + 1)}`, { key, dir: "auto" }, inner());
    case "th_open":
    case "td_open":
      return h(token.tag, { key, dir: "auto", class: { right: "end", center: "middle" }[/right|center/.exec(String(token.attrGet("style")))?.[0] ?? ""] }, inner());
    case "paragraph_open":
      return token.hidden ? <Fragment key={key}>{inner()}</Fragment> : <p key={key} dir="auto">{inner()}</p>;
    case "ordered_list_open":
      return <ol key={key} dir="auto" start={Number(token.attrGet("start") ?? 1)}>{inner()}</ol>;
  }
  if (plainTags.has(token.tag)) return h(token.tag, { key, dir: directed.has(token.tag) ? "auto" : undefined }, token.nesting === 0 ? null : inner());
  return <Fragment key={key}>{token.content ? <Grow text={prose(token.content)} /> : inner()}</Fragment>;
}

function Code({ text, language }: { text: string; language: string }) {
  return <figure class="code" dir="ltr"><figcaption><span>{visible(language) || "text"}</span><Copy text={text} /></figcaption><pre tabIndex={0} role="region" aria-label="Code"><code><Highlight text={text} language={language} plain={<Grow text={prose(text)} />} /></code></pre></figure>;
}

// A Block is what one parse made of a stretch of the text that does not change any more, or of its end.
const Block = memo(({ text }: { text: string }) => <>{nest(parser.parse(text, {})).map(node)}</>);

// cut returns the stretches of a text that can be parsed by themselves: its blocks at the top level. Blocks that were cut
// before are not parsed again while the text gets longer.
function cut(text: string, before: string[]): string[] {
  const sure = before.slice(0, -2);
  let from = 0;
  for (const [i, s] of sure.entries()) {
    if (!text.startsWith(s, from)) {
      sure.length = i;
      break;
    }
    from += s.length;
  }
  const rest = text.slice(from), starts = [0];
  const lines: number[] = [0];
  for (let i = rest.indexOf("\n"); i >= 0; i = rest.indexOf("\n", i + 1)) lines.push(i + 1);
  for (const t of parser.parse(rest, {})) if (t.level === 0 && t.nesting >= 0 && t.map && t.map[0] > 0) starts.push(lines[t.map[0]] ?? rest.length);
  return [...sure, ...starts.map((s, i) => rest.slice(s, starts[i + 1]))];
}

// Markdown shows a text. While it gets longer, what is shown of it stays as it is.
export function Markdown({ text }: { text: string }) {
  const formulas = mayHaveMath(text);
  useEffect(() => { if (formulas) void loadMath(); }, [formulas]);
  const blocks = useRef<string[]>([]);
  blocks.current = /^\[[^\]]+\]:/m.test(text) ? [text] : cut(text, blocks.current); // definitions of links hold for all blocks
  return <div class="md">{blocks.current.map((b, i) => <Block key={i} text={b} />)}</div>;
}
