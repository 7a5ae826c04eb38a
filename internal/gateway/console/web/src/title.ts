// The title of the document: that of the screen, with the number of calls that wait in front.

import { effect, signal } from "@preact/signals";
import { waitingCount } from "./waiting";

export const title = signal("Lathe");

export const watchTitle = () => effect(() => { document.title = `${waitingCount.value ? `(${waitingCount.value}) ` : ""}${title.value}`; });
