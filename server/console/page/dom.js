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

// put makes children the children of parent. One that is there already is not moved, so that it keeps the focus
// and what is selected in it.
export function put(parent, children) {
  const stay = new Set(children);
  for (const child of [...parent.childNodes]) if (!stay.has(child)) child.remove();
  let at = parent.firstChild;
  for (const child of children) {
    if (child === at) at = at.nextSibling;
    else parent.insertBefore(child, at);
  }
}

// grow shows text in an element of its own. Text that was shown stays the same node, and keeps what is selected.
export function grow(element, text) {
  const shown = element.firstChild;
  if (shown?.nodeType === Node.TEXT_NODE && shown === element.lastChild && text.startsWith(shown.data)) shown.appendData(text.slice(shown.length));
  else element.textContent = text;
}

export function ago(time) {
  const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (s < 60) return "just now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

// clock is a time of today without its date, another one with it.
export function clock(time) {
  const t = new Date(time);
  return t.toDateString() === new Date().toDateString() ? t.toLocaleTimeString() : t.toLocaleString();
}

export const count = (n, one) => `${n.toLocaleString()} ${one}${n === 1 ? "" : "s"}`;
