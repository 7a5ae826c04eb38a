// Whether the page is light or dark: as the system, unless the person has chosen.

import { signal } from "@preact/signals";

const saved = "lathe.theme";

export const themes = ["system", "light", "dark"] as const;
export const theme = signal(localStorage.getItem(saved) ?? "system");

theme.subscribe((t) => {
  document.documentElement.style.colorScheme = t === "light" || t === "dark" ? t : "";
  if (t === "system") localStorage.removeItem(saved);
  else localStorage.setItem(saved, t);
});
