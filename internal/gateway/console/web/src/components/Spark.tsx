// A row of small bars: how something went over time, beside its number.

import type { ComponentChildren } from "preact";

const wide = 4, high = 24, least = 1.5; // of a bar with its gap, of the drawing, of a bar that is not 0; in the drawing's own units

export interface Bar { all: number; bad?: number; title: string } // bad is a part of all

// Bars shows bars, and says in its label what they are.
export function Bars({ label, kind, bars }: { label: string; kind: "model" | "tool" | "tail"; bars: Bar[] }) {
  const most = Math.max(1, ...bars.map((b) => b.all)), size = (n: number) => n > 0 ? Math.max(least, n / most * high) : 0;
  return <svg class="bars" viewBox={`0 0 ${Math.max(1, bars.length) * wide} ${high}`} preserveAspectRatio="none" role="img" aria-label={label}>{bars.map((b, i) => <g key={i}><title>{b.title}</title>
    <rect x={i * wide} y={0} width={wide} height={high} class="bars-ground" /><rect class={`fill as-${kind}`} x={i * wide} y={high - size(b.all)} width={wide - 1} height={size(b.all)} />{b.bad ? <rect class="fill as-bad" x={i * wide} y={high - size(b.bad)} width={wide - 1} height={size(b.bad)} /> : null}</g>)}</svg>;
}

// Spark shows bars below a number, its children.
export const Spark = ({ name, children, ...bars }: Parameters<typeof Bars>[0] & { name: string; children: ComponentChildren }) => <div class="spark"><dt>{name}</dt><dd>{children}<Bars {...bars} /></dd></div>;
