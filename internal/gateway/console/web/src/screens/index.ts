// The screens. A screen is one file with a default export, and one entry here. The Go package serves the paths of its
// own list (internal/gateway/console/console.go), which a test compares with this one.

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
  { path: "/approvals", load: () => import("./approvals"), nav: { label: "Approvals", group: "Work", icon: "M4 10l4 4 8-9M3 3h14v14H3z" } },
  { path: "/tools", load: () => import("./tools"), nav: { label: "Tools", group: "Inspect", icon: "M12 3a4 4 0 0 0-4 5l-5 5 4 4 5-5a4 4 0 0 0 5-5l-3 2-2-2z" } },
  { path: "/tools/:name", load: () => import("./tool") },
  { path: "/servers", load: () => import("./servers"), nav: { label: "Servers", group: "Inspect", icon: "M3 4h14v5H3zM3 11h14v5H3zM6 6.5h1M6 13.5h1" } },
  { path: "/pins", load: () => import("./pins"), nav: { label: "Definitions", group: "Inspect", icon: "M5 3h7l3 3v11H5zM8 9h4M8 12h4" } },
  { path: "/limits", load: () => import("./limits"), nav: { label: "Models and keys", group: "Manage", icon: "M9 10a3 3 0 1 0-6 0a3 3 0 0 0 6 0zM9 10h8v3M13.5 10v2" } },
  { path: "/policy", load: () => import("./policy"), nav: { label: "Policy", group: "Manage", icon: "M10 3l6 2v5c0 4-3 6-6 7-3-1-6-3-6-7V5z" } },
  { path: "/audit", load: () => import("./audit"), nav: { label: "Audit log", group: "Manage", icon: "M3 5l1.5 1.5L7 4M3 10l1.5 1.5L7 9M3 15l1.5 1.5L7 14M10 5h7M10 10h7M10 15h7" } },
  { path: "/settings", load: () => import("./settings"), nav: { label: "Settings", group: "Manage", icon: "M3 6h9M15 6h2M3 14h2M8 14h9M12 4v4M5 12v4" } },
  { path: "/health", load: () => import("./health"), nav: { label: "Health", group: "Manage", icon: "M2 10h4l2-5 4 10 2-5h4" } },
  { path: "/runs", load: () => import("./runs"), nav: { label: "Runs", icon: "M3 5h14M3 10h14M3 15h9", group: "Inspect" } },
  { path: "/runs/:id", load: () => import("./run") },
  { path: "/runs/:id/replay", load: () => import("./replay") },
  { path: "/evals", load: () => import("./evals"), nav: { label: "Evaluations", icon: "M4 4h4v4H4zM4 12h4v4H4zM11 6h6M11 14l2 2 4-4", group: "Inspect" } },
  { path: "/evals/:id", load: () => import("./eval") },
  { path: "/stats", load: () => import("./stats"), nav: { label: "Statistics", icon: "M4 16V9M10 16V4M16 16v-5", group: "Inspect" } },
];
