// A formula of TeX as MathML, which the browser draws. Until the library is loaded its place is empty. Without the library, and where the source has a fault,
// the source is shown.

import { memo } from "preact/compat";
import { useLayoutEffect, useRef } from "preact/hooks";
import { prose } from "../text/visible.js";

const longest = 5_000; // characters of a source that is drawn

let katex: typeof import("katex")["default"] | undefined, loading: Promise<void> | undefined;

// loadMath loads the library once. It is called when a text may have a formula, so that the formula is drawn at once when it is complete.
export const loadMath = () => loading ??= import("katex").then((m) => { katex = m.default; }, () => { loading = undefined; });

// mayHaveMath reports whether a text has a mark that begins a formula.
export const mayHaveMath = (text: string) => /\$|\\[([]/.test(text);

// draw shows a formula in an element, its source if it cannot be drawn.
function draw(to: HTMLElement, tex: string, block: boolean) {
  to.removeAttribute("data-waits");
  const drawn = document.createElement("span");
  try {
    katex?.render(tex, drawn, { displayMode: block, output: "mathml", throwOnError: true, strict: "ignore", trust: false, maxSize: 20, maxExpand: 500 });
  } catch {
    return; // the source stays
  }
  if (drawn.firstChild) to.replaceChildren(...drawn.childNodes);
}

export const Formula = memo(({ tex, block }: { tex: string; block: boolean }) => {
  const span = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const el = span.current!;
    let left = false;
    if (tex.length > longest) return;
    if (katex) return draw(el, tex, block);
    el.setAttribute("data-waits", "");
    void loadMath().then(() => { if (!left) draw(el, tex, block); });
    return () => { left = true; };
  }, [tex, block]);
  return <span ref={span} class={block ? "md-math block" : "md-math"} dir="ltr"><code>{prose(tex)}</code></span>;
});
