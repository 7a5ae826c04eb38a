// Elements, made from data. Text from outside becomes text and nothing else.

export const $ = (id) => document.getElementById(id);

// el makes an element. Members of props are properties, but for class and on…, which are what they say;
// children are elements or text.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== "") node.append(child);
  }
  return node;
}

// pretty writes a value for people: JSON with its lines, text as it is.
export function pretty(value) {
  if (value === undefined) return "";
  if (typeof value === "string") {
    try {
      const v = JSON.parse(value);
      if (typeof v === "object" && v !== null) return JSON.stringify(v, null, 2);
    } catch { /* it is text */ }
    return value;
  }
  return JSON.stringify(value, null, 2);
}

export function ago(time) {
  const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (s < 60) return "just now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

export const count = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
