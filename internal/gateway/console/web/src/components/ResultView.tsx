// A result by what it is: rows as a table, objects as a tree, a unified diff by its lines, text as text, a failure as its message, with its pictures. The text as the server wrote it is one click away.

import { useEffect, useMemo, useState } from "preact/hooks";
import { content, entries } from "../text/jsontext.js";
import { failureIn, textIn, type Failure } from "../text/failure";
import { bytes, count, words } from "../text/format";
import { pieces, prose, visible } from "../text/visible.js";
import { Badge, JsonView, Pieces, PlainTable } from "./basics";

export interface ResultFile { mediaType: string; url: string } // a data URL

const mostRows = 50, mostColumns = 20, mostMembers = 100; // shown at first
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

type Entries = NonNullable<ReturnType<typeof entries>>;

// rowsOf returns the rows of a table: objects that have mostly the same members, two or more.
function rowsOf(value: Entries | undefined): { columns: string[]; rows: Map<string, string>[] } | undefined {
  if (!value?.array || value.of.length < 2) return undefined;
  const rows: Map<string, string>[] = [], columns = new Set<string>();
  for (const [, text] of value.of) {
    const row = text[0] === "{" ? entries(text) : undefined;
    if (!row) return undefined;
    rows.push(new Map(row.of as [string, string][]));
    for (const [name] of row.of) columns.add(name ?? "");
    if (columns.size > mostColumns) return undefined;
  }
  const cells = rows.reduce((n, r) => n + r.size, 0);
  return columns.size > 0 && cells * 2 >= rows.length * columns.size ? { columns: [...columns], rows } : undefined;
}

const number = /^-?\d/, short = 28; // characters of a cell that stays in one line

function Table({ columns, rows, name }: NonNullable<ReturnType<typeof rowsOf>> & { name: string }) {
  const [most, set] = useState(mostRows);
  return <>
    <PlainTable label={`${name}, ${count(rows.length, "row")}`} head={columns.map(visible)} ends={columns.map((c) => rows.every((r) => number.test(r.get(c) ?? "0")))}>
      {rows.slice(0, most).map((r, i) => <tr key={i}>{columns.map((c) => { const v = r.get(c) ?? ""; return <td key={c} dir="auto" class={number.test(v) ? "num end" : v.length < short ? "short" : undefined}>{visible(content(v) ?? "")}</td>; })}</tr>)}
    </PlainTable>
    {rows.length > most && <button type="button" class="quiet small" onClick={() => set(Infinity)}>Show all {count(rows.length, "row")}</button>}
  </>;
}

// Tree shows the members of a value. Those that are objects or arrays are closed below the first level.
function Tree({ value, deep }: { value: Entries; deep: number }) {
  const [most, set] = useState(mostMembers);
  return <><ul class="tree">{value.of.slice(0, most).map(([name, text], i) => <li key={i}><Branch name={name === undefined ? String(i) : name} text={text} deep={deep} /></li>)}</ul>
    {value.of.length > most && <button type="button" class="quiet small" onClick={() => set(Infinity)}>Show all {count(value.of.length, "member")}</button>}</>;
}

function Branch({ name, text, deep }: { name: string; text: string; deep: number }) {
  const [open, set] = useState(deep < 1);
  const inner = useMemo(() => text[0] === "{" || text[0] === "[" ? entries(text) : undefined, [text]);
  const label = <span class="tree-name">{visible(name)}</span>;
  if (!inner?.of.length) return <>{label} <span class={text[0] === '"' ? "tree-text" : "mono"} dir="auto"><Pieces cut={pieces(content(text) ?? "", "\n\t")} /></span></>;
  return <details open={open} onToggle={(e) => { if (e.target === e.currentTarget) set(e.currentTarget.open); }}>
    <summary>{label} <span class="soft small">{count(inner.of.length, inner.array ? "element" : "member")}</span></summary>{open && <Tree value={inner} deep={deep + 1} />}
  </details>;
}

// blobOf returns the bytes of a data URL in base64, undefined for another URL.
export function blobOf(file: ResultFile): Blob | undefined {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(file.url)?.[1];
  if (data === undefined) return undefined;
  try {
    return new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type: pictures.has(file.mediaType) ? file.mediaType : "application/octet-stream" });
  } catch {
    return undefined; // it is no base64
  }
}

// FileView shows a picture, and offers each file for download. Nothing is loaded from elsewhere.
export function FileView({ file, name: called }: { file: ResultFile; name?: string }) {
  const blob = useMemo(() => blobOf(file), [file.url]);
  const [address, set] = useState("");
  useEffect(() => {
    if (!blob) return;
    const url = URL.createObjectURL(blob);
    set(url);
    return () => URL.revokeObjectURL(url);
  }, [blob]);
  const name = visible(called || file.mediaType);
  if (!blob) return <p class="meta">A file of type {name}</p>;
  return <figure class="file">
    {address && pictures.has(file.mediaType) && <img src={address} alt={called ? name : `Picture of type ${name}`} />}
    <figcaption class="meta">{name}, {bytes(blob.size)} {address && <a href={address} download={`file.${/^\w+\/(\w+)/.exec(file.mediaType)?.[1] ?? "bin"}`}>Download</a>}</figcaption>
  </figure>;
}

// textOf returns the text of a result that an MCP server sent as blocks of text and files, undefined for another one.
function textOf(value: Entries | undefined): string | undefined {
  const [name, list] = value?.of.length === 1 ? value.of[0]! : [];
  const blocks = name === "content" && list ? entries(list) : undefined;
  if (!blocks?.array) return undefined;
  const texts: string[] = [];
  for (const [, block] of blocks.of) {
    const members = new Map(entries(block)?.of), type = content(members.get("type"));
    if (type === "text") texts.push(content(members.get("text")) ?? "");
    else if (type !== "image" && type !== "audio") return undefined;
  }
  return texts.join("\n");
}

const diff = /^(?:diff --git .*|--- .*\n\+\+\+ .*|@@ -\d.*)$/m;

// Diff marks the lines of a unified diff that are added and removed.
const Diff = ({ text, name }: { text: string; name: string }) => <pre class="diff-lines" tabIndex={0} role="region" aria-label={name}>{text.split("\n").map((line, i) => <span key={i} class={/^\+(?!\+\+ )/.test(line) ? "added" : /^-(?!-- )/.test(line) ? "removed" : /^@@|^diff |^(\+\+\+|---) /.test(line) ? "soft" : ""}><Pieces cut={pieces(line, "\t")} />{"\n"}</span>)}</pre>;

// FailureView shows the message of a failed call with its code in words, and what else the error has.
function FailureView({ of: f, name }: { of: Failure; name: string }) {
  return <div class="failure" tabIndex={0} role="region" aria-label={name}>
    <p dir="auto"><b>Error:</b> <Pieces cut={pieces(f.said.replace(/^\s*error:\s*/i, "").trimEnd(), "\n\t")} /></p>
    {f.wrong.length > 0 && <ul class="mono">{f.wrong.map((w, i) => <li key={i}>{visible(w)}</li>)}</ul>}
    {f.code && <p><Badge kind="bad">{words(f.code)}</Badge></p>}
    {f.more.length > 0 && <Tree value={{ array: false, of: f.more }} deep={0} />}
    {f.data && (entries(f.data) ? <Tree value={entries(f.data)!} deep={0} /> : <p class="mono">{visible(f.data)}</p>)}
  </div>;
}

// ResultView shows a result, a failed one as its message. label is its heading, name what screen readers call the text.
export function ResultView({ text, files = [], failed, label, name = label }: { text: string; files?: ResultFile[]; failed?: boolean; label: string; name?: string }) {
  const value = useMemo(() => entries(text), [text]), rows = useMemo(() => rowsOf(value), [value]), failure = useMemo(() => failureIn(text, failed), [text, failed]);
  const [raw, set] = useState(false);
  const said = files.length ? textOf(value) : undefined;
  const plain = value ? "" : text[0] === '"' ? textIn(text) : text;
  const kind = failure ? "message" : said !== undefined ? "picture" : rows ? "table" : value?.of.length ? "tree" : diff.test(plain) ? "diff" : "text";
  return <>
    <div class="result-head"><h2 class="label">{label}</h2>{kind !== "text" && <button type="button" class="quiet small" aria-pressed={raw} onClick={() => set(!raw)}>{raw ? `As a ${kind}` : "Raw"}</button>}</div>
    {raw || kind === "text" ? <JsonView text={text} label={name} class="result" /> : failure ? <FailureView of={failure} name={name} /> : kind === "diff" ? <Diff text={plain} name={name} /> : said !== undefined ? said && <p dir="auto">{prose(said)}</p> : <div class="result-view">{rows ? <Table {...rows} name={name} /> : <Tree value={value!} deep={0} />}</div>}
    {files.map((f, i) => <FileView key={i} file={f} />)}
  </>;
}
