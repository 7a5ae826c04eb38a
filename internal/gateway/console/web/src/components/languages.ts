// The grammars of the languages that models write most, and the trees of coloured code.

import { common, createLowlight } from "lowlight";

const lowlight = createLowlight(common);

// colour returns the tree of a text, undefined if its language has no grammar here.
export const colour = (language: string, text: string) => lowlight.registered(language.toLowerCase()) ? lowlight.highlight(language.toLowerCase(), text) : undefined;
