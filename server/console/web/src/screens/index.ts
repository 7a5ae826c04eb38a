// The screens. A screen is one file with a default export, and one entry here. The Go package serves the paths of its
// own list (server/console/console.go), which a test compares with this one.

import type { ComponentType } from "preact";

export interface ScreenProps {
  params: Record<string, string>; // members of the path
}

export interface Screen {
  path: string; // /runs/:id
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  nav?: { label: string; icon: string; group: "Work" | "Inspect" | "Manage" }; // icon is the d of an SVG path in a 20 × 20 box
}

const chat = () => import("./chat");

export const screens: Screen[] = [
  { path: "/", load: chat, nav: { label: "Chat", group: "Work", icon: "M3 4h14v9H9l-4 3v-3H3z" } },
  { path: "/chats/:id", load: chat },
];
