// Whether the window is wide enough for a list beside what it leads to.

import { useEffect, useState } from "preact/hooks";

// useWide follows the width of the window.
export function useWide(query = "(min-width: 75rem)"): boolean {
  const [is, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query), on = () => set(media.matches);
    on();
    media.addEventListener("change", on);
    return () => media.removeEventListener("change", on);
  }, [query]);
  return is;
}
