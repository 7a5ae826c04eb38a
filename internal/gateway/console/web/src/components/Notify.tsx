import { useState } from "preact/hooks";

// Notify asks whether the browser may show a notification while another window is in front; never unasked.
export function Notify() {
  const has = "Notification" in window && isSecureContext;
  const [state, set] = useState(has ? Notification.permission : "denied");
  if (!has || state === "denied") return null;
  if (state === "granted") return <span class="soft small">The browser notifies you when a call waits.</span>;
  return <button type="button" class="quiet small" onClick={() => { void Notification.requestPermission().then(set); }}>Notify me</button>;
}
