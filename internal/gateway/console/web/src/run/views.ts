// Selections of runs that a person has named, kept in this browser.

import { signal } from "@preact/signals";

export interface View { name: string; to: string } // to: the query of the list, without "?"

const saved = "lathe.runs.views", most = 30;

function read(): View[] {
  try {
    const kept = JSON.parse(localStorage.getItem(saved) ?? "[]") as View[];
    return kept.filter((v) => typeof v?.name === "string" && typeof v.to === "string").slice(0, most);
  } catch {
    return [];
  }
}

// views are the selections in the order in which they were named.
export const views = signal(read());

function keep(all: View[]) {
  views.value = all.slice(-most);
  try {
    localStorage.setItem(saved, JSON.stringify(views.value));
  } catch { /* the browser has no room: they are kept until the page is left */ }
}

// keepView names a selection. One of the same name is replaced.
export const keepView = (view: View) => keep([...views.value.filter((v) => v.name !== view.name), view]);

export const dropView = (name: string) => keep(views.value.filter((v) => v.name !== name));
