// A formula of TeX as MathML, which the browser draws. Without the library, and where the source has a fault, the source is shown.

import { memo } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";
import { prose } from "../text/visible.js";

const longest = 5_000; // characters of a source that is drawn

export const Formula = memo(({ tex, block }: { tex: string; block: boolean }) => {
  const span = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    let left = false;
    if (tex.length <= longest) void import("katex").then(({ default: katex }) => {
      if (left || !span.current) return;
      const drawn = document.createElement("span");
      try {
        katex.render(tex, drawn, { displayMode: block, output: "mathml", throwOnError: true, strict: "ignore", trust: false, maxSize: 20, maxExpand: 500 });
      } catch {
        return; // the source stays
      }
      span.current.replaceChildren(...drawn.childNodes);
    }, () => {});
    return () => { left = true; };
  }, [tex, block]);
  return <span ref={span} class={block ? "md-math block" : "md-math"} dir="ltr"><code>{prose(tex)}</code></span>;
});
