// Drawings of actions, in a box of 20 × 20.

const paths = {
  add: "M10 4v12M4 10h12", again: "M15.5 8A6 6 0 1 0 16 11M16 4v4h-4", chats: "M3 5h14M3 10h14M3 15h9", check: "M4 10.5l4 4 8-9", copy: "M7 7h9v9H7zM4 13V4h9", down: "M5.5 8l4.5 4.5L14.5 8",
  edit: "M4 16l1-4 8.5-8.5 3 3L8 15z", find: "M13 13l4 4M8.5 14.5a6 6 0 1 1 0-12 6 6 0 0 1 0 12z", fresh: "M9 4H4v12h12v-5M9 11l7-7", more: "M4.5 10h.01M10 10h.01M15.5 10h.01", send: "M10 16V4M5 9l5-5 5 5", stop: "M6 6h8v8H6z",
};

export const Logo = () => <svg viewBox="0 0 32 32" aria-hidden="true"><rect class="plate" width="32" height="32" rx="8" /><path class="mark" d="M9 11h3l2-2h4l2 2h3v10h-3l-2 2h-4l-2-2H9zM5 15h4v2H5zM23 15h4v2h-4z" /></svg>;

export type IconName = keyof typeof paths;

export const Icon = ({ name }: { name: IconName }) => <svg class={`glyph glyph-${name}`} viewBox="0 0 20 20" aria-hidden="true"><path d={paths[name]} /></svg>;
