// Code with colours, once it does not change any more and its language is known.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { prose } from "../text/visible.js";

interface Hast { type: string; value?: string; properties?: { className?: string[] }; children?: Hast[] }

const longest = 50_000; // characters that are coloured
const still = 250; // ms without a change

const node = (n: Hast, key: number): ComponentChildren => n.type === "text" ? prose(n.value ?? "") : <span key={key} class={n.properties?.className?.join(" ")}>{n.children?.map(node)}</span>;

export function Highlight({ text, language, plain }: { text: string; language: string; plain: ComponentChildren }) {
  const [tree, set] = useState<{ of: string; root: Hast }>();
  useEffect(() => {
    if (!language || text.length > longest) return;
    const timer = setTimeout(() => void import("./languages").then(({ colour }) => {
      const root = colour(language, text);
      if (root) set({ of: text, root });
    }, () => {}), still);
    return () => clearTimeout(timer);
  }, [text, language]);
  return <>{tree?.of === text ? tree.root.children?.map(node) : plain}</>;
}
