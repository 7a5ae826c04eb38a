// Addresses of the console: the History API under any path prefix.

import { computed, signal } from "@preact/signals";

// base is the path under which the console is served. It ends in "/". The built files lie in base + "assets/".
export const base = new URL("../", import.meta.url).pathname;

export interface Place {
  path: string; // begins with "/", without the prefix
  query: URLSearchParams;
  hash: string;
}

const read = (): Place => ({
  path: `/${location.pathname.startsWith(base) ? location.pathname.slice(base.length) : ""}`,
  query: new URLSearchParams(location.search),
  hash: location.hash,
});

// place is the address that is shown.
export const place = signal<Place>(read());
export const path = computed(() => place.value.path);
addEventListener("popstate", () => { place.value = read(); });

// href returns the address of a path of the console, for a link.
export const href = (to: string) => base + to.replace(/^\//, "");

// go shows another address. With replace it takes the place of the present one in the history.
export function go(to: string, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", href(to));
  place.value = read();
}

// param returns one member of the query, "" if it is absent.
export const param = (name: string) => place.value.query.get(name) ?? "";

// setParams writes members of the query into the address, so that a reload and a shared link show the same. An empty
// value removes the member. The address is replaced: filters are no steps of the history.
export function setParams(values: Record<string, string>) {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(place.value.path + (text ? `?${text}` : "") + place.value.hash, { replace: true });
}

// match compares a path with a pattern such as /runs/:id. It returns the members, undefined if they do not match.
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const want = pattern.split("/"), have = path.replace(/(.)\/$/, "$1").split("/");
  if (want.length !== have.length) return undefined;
  const out: Record<string, string> = {};
  for (const [i, part] of want.entries()) {
    const value = have[i] ?? "";
    if (part.startsWith(":") && value) {
      try {
        out[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
    } else if (part !== value) return undefined;
  }
  return out;
}
