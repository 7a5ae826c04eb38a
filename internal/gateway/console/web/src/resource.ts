// Data of the server in a component: read when it is shown, again when asked, and again when the server is back.

import { useEffect, useRef, useState } from "preact/hooks";
import { connection, get, isAbort } from "./api";

export interface Resource<T> {
  data: T | undefined; // of the last answer that was good; it stays while a newer one is read
  error: Error | undefined; // of the last attempt
  loading: boolean;
  reload: () => void;
}

// useResource reads a path of the API. undefined reads nothing. every is the time in ms after which it is read again
// while the page is in view.
export function useResource<T>(path: string | undefined, { every }: { every?: number } = {}): Resource<T> {
  const [state, set] = useState<{ path?: string; data?: T; error?: Error; loading: boolean }>({ loading: path !== undefined });
  const [turn, setTurn] = useState(0);
  const aborter = useRef<AbortController | undefined>(undefined);
  const back = connection.value === "lost";
  useEffect(() => {
    if (path === undefined || back) return;
    const { signal } = aborter.current = new AbortController();
    set((s) => ({ ...(s.path === path ? s : {}), path, loading: true }));
    get<T>(path, signal).then(
      (data) => set({ path, data, loading: false }),
      (error: unknown) => { if (!isAbort(error)) set((s) => ({ ...s, path, error: error as Error, loading: false })); },
    );
    return () => aborter.current?.abort();
  }, [path, turn, back]);
  useEffect(() => {
    if (!every || path === undefined) return;
    const again = () => { if (!document.hidden) setTurn((n) => n + 1); };
    const timer = setInterval(again, every);
    document.addEventListener("visibilitychange", again);
    return () => { clearInterval(timer); document.removeEventListener("visibilitychange", again); };
  }, [path, every]);
  const mine = state.path === path;
  return { data: mine ? state.data : undefined, error: mine ? state.error : undefined, loading: path !== undefined && (!mine || state.loading), reload: () => setTurn((n) => n + 1) };
}
