// The frame of the console: navigation, the state of the connection, the sign-in dialog, and the screen of the address.

import { signal } from "@preact/signals";
import { render, type ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { connection, keyWanted, Lost, request, session, signOut, watchConnection } from "./api";
import { Empty, ErrorState, Link, LiveRegion, Loading, PageHeader } from "./components/basics";
import { Notify } from "./components/Notify";
import { KeyDialog } from "./components/KeyDialog";
import { Icon, Logo } from "./components/Icon";
import { finding, Shortcuts } from "./components/Shortcuts";
import { match, path } from "./router";
import { screens, type Screen, type ScreenProps } from "./screens";
import { count } from "./text/format";
import { theme, themes } from "./theme";
import { watchTitle } from "./title";
import { blockedCount, servers, waitingCount, watchServers, watchWaiting } from "./waiting";

const groups = ["Work", "Inspect", "Manage"] as const;

// badges are counts beside entries of the navigation, by path.
export const badges = signal<Record<string, number>>({});

function Navigation({ close }: { close: () => void }) {
  return <nav aria-label="Screens" onClick={close}>
    {groups.map((group) => {
      const of = screens.filter((s) => s.nav?.group === group);
      return of.length > 0 && <section key={group}>
        <h2>{group}</h2>
        <ul>{of.map((s) => {
          const here = path.value === s.path || s.path !== "/" && path.value.startsWith(`${s.path}/`) || s.path === "/" && path.value.startsWith("/chats/");
          const n = badges.value[s.path];
          return <li key={s.path}><Link to={s.path} aria-current={here ? "page" : undefined}>
            <svg viewBox="0 0 20 20" aria-hidden="true"><path d={s.nav!.icon} /></svg>{s.nav!.label}{n ? <span class="count">{n}<span class="unseen"> {s.path === "/servers" ? "failed" : "waiting"}</span></span> : null}
          </Link></li>;
        })}</ul>
      </section>;
    })}
  </nav>;
}

const apple = /Mac|iPhone|iPad/.test(navigator.platform);

const states = { connecting: "connecting…", up: "ready", lost: "Connection lost. Trying again…" };

// Connection says whether the gateway answers, and how many of its MCP servers failed.
function Connection() {
  const { all, failed } = servers.value, warns = connection.value === "up" && failed > 0;
  return <p id="health" class={`health ${connection.value}${warns ? " warns" : ""}`} role="status"><span><span class={warns ? "health-word" : ""}>{states[connection.value]}</span>{warns && <><span class="health-word">, </span><Link to="/servers">{failed} of {count(all, "server")} failed</Link></>}</span></p>;
}

// Away takes the place of a screen that waits for a key while the gateway does not answer.
const Away = () => <div class="page"><PageHeader title="No connection" /><ErrorState error={new Lost()} retry={() => { request("livez").catch(() => {}); }} /></div>;

function Frame() {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  return <>
    <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Go to the content</a>
    <div class={`frame${open ? " nav-open" : ""}`} onKeyDown={(e) => { if (e.key === "Escape" && open) { setOpen(false); button.current?.focus(); } }}>
      <header class="side">
        <div class="brand"><Link to="/"><Logo />Lathe</Link>
          {waitingCount.value > 0 && <Link to="/approvals" class="waiting-link">{waitingCount.value} <span class="waiting-word">waiting</span></Link>}
          <button ref={button} type="button" class="quiet small menu" aria-expanded={open} aria-controls="navigation" onClick={() => setOpen(!open)}>Menu</button></div>
        <div class="side-body" id="navigation">
          <button type="button" class="quiet find" aria-haspopup="dialog" aria-keyshortcuts="Control+K Meta+K" onClick={() => { setOpen(false); finding.value = "find"; }}><Icon name="find" />Find…<kbd class="by-keys">{apple ? "⌘ K" : "Ctrl K"}</kbd></button>
          <Navigation close={() => setOpen(false)} />
          <div class="side-foot">
            {waitingCount.value > 0 && path.value !== "/approvals" && <Notify />}
            <label class="theme">Theme <select value={theme.value} onChange={(e) => { theme.value = e.currentTarget.value; }}>{themes.map((t) => <option key={t}>{t}</option>)}</select></label>
            <button type="button" class="link small by-keys" aria-haspopup="dialog" onClick={() => { finding.value = "keys"; }}>Keyboard</button>
            {session.value?.csrf_token && <><p class="soft small">Signed in as {session.value.name}</p><button type="button" class="quiet small" onClick={signOut}>Sign out</button></>}
          </div>
        </div>
        <Connection />
      </header>
      <main id="main" tabIndex={-1}>{keyWanted.value && connection.value === "lost" ? <Away /> : <Outlet />}</main>
    </div>
    <LiveRegion />
    <KeyDialog />
    <Shortcuts />
  </>;
}

const loaded = new Map<Screen["load"], ComponentType<ScreenProps>>();

// Outlet shows the screen of the address. The code of a screen is loaded when it is first shown.
function Outlet() {
  const [, again] = useState(0);
  const [error, setError] = useState<Error>();
  let params: Record<string, string> | undefined;
  const screen = screens.find((s) => (params = match(s.path, path.value)));
  const Shown = screen && loaded.get(screen.load);
  useEffect(() => {
    if (!screen || Shown) return;
    setError(undefined);
    screen.load().then((m) => { loaded.set(screen.load, m.default); again((n) => n + 1); }, setError);
  }, [screen, Shown]);
  if (!screen) return <div class="page"><PageHeader title="Nothing here" /><Empty title="This address leads to no screen."><Link to="/">Go to the chat</Link></Empty></div>;
  if (error) return <div class="page"><ErrorState error={new Error("This screen could not be loaded. The gateway may have been updated: load the page again.")} retry={() => location.reload()} /></div>;
  return Shown ? <Shown params={params ?? {}} /> : <div class="page"><Loading /></div>;
}

// Their addresses are relative to the first address of the page, which changes.
for (const link of document.querySelectorAll("link")) link.href = new URL(link.href).href;
watchConnection();
watchWaiting();
watchServers();
watchTitle();
blockedCount.subscribe((n) => { badges.value = { ...badges.peek(), "/pins": n }; });
servers.subscribe(({ failed }) => { badges.value = { ...badges.peek(), "/servers": failed }; });
waitingCount.subscribe((n) => { badges.value = { ...badges.peek(), "/approvals": n }; });
request("livez").catch(() => {});
render(<Frame />, document.getElementById("app")!);
document.documentElement.dataset.ready = "yes";
