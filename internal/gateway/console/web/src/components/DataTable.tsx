// A table of any length: only the rows in view are in the document, at most 60.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { href, go } from "../router";
import { useWide } from "../wide";

export interface Column<T> {
  key: string;
  title: string;
  head?: ComponentChildren; // shown in place of the title where there is a head
  cell: (row: T) => ComponentChildren;
  width?: string; // of a grid track, such as "8rem" or "minmax(6rem, 2fr)"; default "minmax(0, 1fr)"
  align?: "end";
  value?: (row: T) => number | string; // by which rows are sorted; without it the column sorts none
  phone?: boolean | 2 | "only"; // shown on narrow screens; default false, but for the first column. 2: in the second line of the row, "only": there and nowhere else
}

export interface DataTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  to?: (row: T) => string; // the path that a row leads to
  choose?: (row: T) => void; // shows the detail of a row that leads nowhere
  heading?: (row: T) => string | undefined; // the text of a row that is the heading of those below it
  pick?: (row: T) => void; // x or Space on a row: it is picked, or no longer
  picked?: (row: T) => boolean;
  chosen?: string; // the key of the row whose detail is shown; it is scrolled into view
  sort?: string; // the key of the column that the rows are sorted by, "-key" for the largest first; "" keeps their order
  order?: string; // how the rows are sorted as they come, in the same form
  sortBy?: (sort: string) => void; // the person asks for another order
  more?: () => void; // called when the end comes into view, if there are further pages
  empty?: ComponentChildren;
  rowHeight?: number; // px; cells of one line need 40. On narrow screens rows of two lines are twoLines high
  lines?: number; // px of such a row; default twoLines
}

const twoLines = 58; // px
const most = 60; // rows in the document
const spare = 6; // rows above and below the view

// sorted returns the rows in the order that is asked for.
function sorted<T>(rows: T[], columns: Column<T>[], sort: string): T[] {
  const value = columns.find((c) => c.key === sort.replace("-", ""))?.value, way = sort.startsWith("-") ? -1 : 1;
  return value ? rows.toSorted((a, b) => { const [x, y] = [value(a), value(b)]; return x < y ? -way : x > y ? way : 0; }) : rows;
}

// sign shows by which column rows are sorted, and that they can be by another one.
const sign = (by: string, key: string) => <span class="sort-sign" aria-hidden="true">{by === key ? " ↑" : by === `-${key}` ? " ↓" : " ↕"}</span>;

// share returns the track of a column on a narrow screen, where all columns share the width that there is.
const share = (width = "") => `minmax(0, ${/^(?:minmax\()?([\d.]+)rem/.exec(width)?.[1] ?? 8}fr)`;

export function DataTable<T>({ label, columns: all, rows: unsorted, rowKey, to, choose, heading, pick, picked, chosen, sort = "", order = "", sortBy, more, empty, rowHeight: high = 40, lines = twoLines }: DataTableProps<T>) {
  const rows = sorted(unsorted, all, sort), by = sort || order;
  const wide = useWide("(min-width: 52.01rem)"), columns = wide ? all.filter((c) => c.phone !== "only") : all, onPhone = (c: Column<T>) => c.phone ?? c === columns[0];
  const two = !wide && columns.some((c) => c.phone === 2), rowHeight = two ? lines : high;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const [active, setActive] = useState<string>();
  const wanted = useRef<string | undefined>(undefined); // the row that gets the focus once it is the active one

  useLayoutEffect(() => {
    const el = box.current!;
    const read = () => setView({ top: el.scrollTop, height: el.clientHeight });
    const observer = new ResizeObserver(read);
    observer.observe(el);
    el.addEventListener("scroll", read, { passive: true });
    return () => { observer.disconnect(); el.removeEventListener("scroll", read); };
  }, []);

  const shownRows = Math.min(most, Math.ceil(view.height / rowHeight) + 2 * spare);
  const first = Math.max(0, Math.min(Math.floor(view.top / rowHeight) - spare, rows.length - shownRows));
  const last = Math.min(rows.length, first + shownRows);
  const at = Math.max(0, rows.findIndex((r) => rowKey(r) === active));

  useEffect(() => { if (more && last >= rows.length) more(); }, [last, rows.length, more]);
  useEffect(() => {
    if (wanted.current === undefined || wanted.current !== active) return; // an effect of an earlier render is not meant
    wanted.current = undefined;
    box.current?.querySelector<HTMLElement>(`[data-index="${at}"]`)?.focus();
  });

  useLayoutEffect(() => {
    const el = box.current!, y = rows.findIndex((r) => rowKey(r) === chosen) * rowHeight, head = el.querySelector<HTMLElement>(".thead")?.offsetHeight ?? 0;
    if (y >= 0 && (y < el.scrollTop || y + rowHeight > el.scrollTop + el.clientHeight - head)) el.scrollTop = y - (el.clientHeight - head) / 2;
  }, [chosen]);

  const move = (e: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const by: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    const step = by[e.key];
    if (step === undefined || e.ctrlKey || e.metaKey || e.altKey || !(e.target as HTMLElement).dataset.index) return;
    e.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, at + step));
    const el = box.current!;
    const y = next * rowHeight, head = el.querySelector<HTMLElement>(".thead")?.offsetHeight ?? 0;
    if (y < el.scrollTop) el.scrollTop = y;
    else if (y + rowHeight > el.scrollTop + el.clientHeight - head) el.scrollTop = y + rowHeight - el.clientHeight + head;
    if (!rows[next]) return;
    wanted.current = rowKey(rows[next]);
    setActive(wanted.current);
    setView({ top: el.scrollTop, height: el.clientHeight });
  };

  const tracks = (phone: boolean) => columns.filter((c) => !phone || onPhone(c)).map((c) => phone ? share(c.width) : c.width ?? "minmax(0, 1fr)").join(" ");
  const cellClass = (c: Column<T>) => `td${c.align ? " end" : ""}${onPhone(c) ? "" : " wide-only"}`;
  const cells = (row: T, of: Column<T>[], grows?: Column<T>) => of.map((c) => <span key={c.key} role="cell" data-col={c.key} class={`${cellClass(c)}${c === grows ? " grows" : ""}`}>{c.cell(row)}</span>);
  const line = (row: T, of: Column<T>[]) => <span role="presentation" class="tr-line">{cells(row, of, of.find((c) => !c.width || c.width.includes("fr")))}</span>;
  if (rows.length === 0) return <div class="table" ref={box} key="table"><div class="table-empty">{empty}</div></div>; // a table needs rows
  return <div class="table" ref={box} key="table" role="table" aria-label={label} aria-rowcount={rows.length + 1} aria-colcount={columns.length} onKeyDown={move}
    style={{ "--tracks": tracks(false), "--tracks-phone": tracks(true), "--row": `${rowHeight}px`, "--rows": rows.length, "--head": two ? "0px" : "2.2rem" }}>
    <div role="rowgroup" class={two ? "unseen" : "thead"}><div role="row" aria-rowindex={1} class="tr">{columns.filter((c) => !two || onPhone(c)).map((c) => <span key={c.key} role="columnheader" class={cellClass(c)} aria-sort={by.replace("-", "") !== c.key ? undefined : by.startsWith("-") ? "descending" : "ascending"}>{c.head && !two ? c.head : c.value && sortBy && !two ? <button type="button" class="link sort" onClick={() => sortBy(by === `-${c.key}` ? c.key : sort === c.key ? "" : `-${c.key}`)}>{c.title}{sign(by, c.key)}</button> : c.title ? <>{c.title}{by.replace("-", "") === c.key && sign(by, c.key)}</> : <span class="unseen">Actions</span>}</span>)}</div></div>
    <div role="rowgroup" class="tbody" style={{ height: `${rows.length * rowHeight}px` }}>
      {rows.slice(first, last).map((row, i) => {
        const index = first + i, key = rowKey(row), head = heading?.(row), path = head === undefined && to?.(row), opens = path || head === undefined && choose;
        return <div key={key} role="row" aria-rowindex={index + 2} class={`tr${two ? " two" : ""}${opens ? " opens" : ""}${head === undefined ? "" : " heading"}${key === chosen || picked?.(row) ? " chosen" : ""}`} data-index={index} data-key={key} tabIndex={index === at ? 0 : -1} style={{ transform: `translateY(${index * rowHeight}px)` }}
          onFocus={() => setActive(key)}
          onClick={(e) => {
            if (!opens || (e.target as HTMLElement).closest("a, button, input, select, label") || String(getSelection())) return;
            if (!path) choose!(row);
            else if (e.ctrlKey || e.metaKey) window.open(href(path), "_blank", "noopener");
            else go(path);
          }}
          onKeyDown={(e) => {
            if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey || head !== undefined) return;
            if (e.key === "Enter" && opens) { if (path) go(path); else choose?.(row); }
            if (pick && (e.key === "x" || e.key === " ")) { e.preventDefault(); pick(row); }
          }}>
          {head !== undefined ? <span role="cell" aria-colspan={columns.length}>{head}</span> : two ? <>{line(row, columns.filter((c) => onPhone(c) === true))}{line(row, columns.filter((c) => c.phone === 2 || c.phone === "only"))}</> : cells(row, columns)}
        </div>;
      })}
    </div>
  </div>;
}
