// The entries of models that a chat may ask, as lists and answers name them.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useResource } from "../resource";

export interface Entry {
  name: string; // of the entry in the configuration
  model: string; // that its server has, "" if it is not known
  isDefault: boolean;
  failing: string; // what is said of an entry whose calls of the last hour all failed, else ""
}

// entries are those that the gateway listed last.
export const entries = signal<Entry[]>([]);

// useEntries reads them. It reports whether the gateway has answered.
export function useEntries(): boolean {
  const list = useResource<{ data: { id: string }[] }>("v1/models");
  const models = useResource<{ data: { name: string; model?: string; default: boolean }[] }>("api/models");
  const stats = useResource<{ models: { name?: string; model_calls?: { calls: number; errors: number } }[] }>("api/stats?since=1h&buckets=1", { every: 60_000 });
  useEffect(() => {
    entries.value = list.data?.data.map(({ id }) => {
      const m = models.data?.data.find((o) => o.name === id), calls = stats.data?.models.find((o) => o.name === id)?.model_calls;
      return { name: id, model: m?.model ?? "", isDefault: m?.default ?? false, failing: calls?.calls && calls.errors === calls.calls ? `failing: ${calls.errors} of ${calls.calls} calls` : "" };
    }) ?? [];
  }, [list.data, models.data, stats.data]);
  return list.data !== undefined;
}

// answeredBy names what answered, or was asked: the entry, and the model of its server where that has another name. asked is "" for the default.
export function answeredBy(asked: string | undefined, model = ""): string {
  const entry = entries.value.find((e) => asked ? e.name === asked : e.isDefault && (!model || e.name === model || e.model === model));
  const name = asked || entry?.name, of = model || entry?.model;
  return !name || name === of ? of ?? "" : of ? `${name} (${of})` : name;
}
