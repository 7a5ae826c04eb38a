// Requests to the server, always under the console's own address and only to documented paths of /api and /v1.

import { signal } from "@preact/signals";
import { base } from "./router";

let ahead = 0; // ms by which the server's clock is ahead of this one

// connection says whether the last request got an answer.
export const connection = signal<"connecting" | "up" | "lost">("connecting");

// keyWanted is set while the server wants a key; problem says what became of the last one: wrong, lost, or what the server said of it.
export const keyWanted = signal<{ problem: string; use: (key: string) => void } | undefined>(undefined);

// now is the time of the server in ms.
export const now = () => Date.now() + ahead;

export interface Problem {
  status?: number;
  code?: string;
  title?: string;
  detail?: string;
  error?: { message?: string; code?: string };
  [member: string]: unknown;
}

// A Refusal is an answer that is no success. Its message is the server's, problem is the whole problem document.
export class Refusal extends Error {
  readonly code: string;
  constructor(readonly status: number, readonly problem: Problem, readonly path = "") {
    super(problem.detail ?? problem.error?.message ?? problem.title ?? `The gateway answered ${status}.`);
    this.name = "Refusal";
    this.code = problem.code ?? problem.error?.code ?? "";
  }
}

// A Lost is a connection that could not be made or that ended before its answer.
export class Lost extends Error {
  constructor() {
    super("The gateway cannot be reached. Check that it runs, then try again.");
    this.name = "Lost";
  }
}

export const isAbort = (e: unknown) => e instanceof DOMException && e.name === "AbortError";
// isGone reports whether the server answered that there is no such thing, such as runs on a server without a store.
export const isGone = (e: unknown) => e instanceof Refusal && (e.status === 404 || e.status === 410);

function lost(e: unknown): unknown {
  if (isAbort(e)) return e;
  connection.value = "lost";
  return new Lost();
}

// A Session says who the caller is: GET /api/session.
export interface Session {
  signed_in: boolean;
  keys_required: boolean;
  name?: string;
  role?: "user" | "approver" | "admin";
  approve?: string[];
  csrf_token?: string;
  expires_at?: string;
  sign_in_url?: string; // where a browser signs in with the identity provider
  issuer?: string;
}

// signInAddress is the address at which the browser signs in with the identity provider; undefined: there is none.
export const signInAddress = () => {
  const path = session.value?.sign_in_url;
  return path ? base + path.replace(/^\//, "") : undefined;
};

// session is undefined until the server has said it.
export const session = signal<Session | undefined>(undefined);

let asking: Promise<void> | undefined; // several requests wait for one key

// signIn asks for keys until the server takes one. The key becomes a cookie that scripts cannot read.
function signIn(): Promise<void> {
  return asking ??= (async () => {
    for (let problem = ""; ;) {
      const key = await new Promise<string>((resolve) => { keyWanted.value = { problem, use: resolve }; });
      const response = await raw("api/session", { method: "POST", body: JSON.stringify({ key }) }).catch(() => undefined);
      if (!response?.ok) {
        problem = !response ? "lost" : response.status === 401 ? "wrong" : (await refusal(response)).message;
        continue;
      }
      session.value = await response.json() as Session;
      keyWanted.value = undefined;
      asking = undefined;
      return;
    }
  })();
}

export async function signOut() {
  await request("api/session", { method: "DELETE" }).catch(() => {});
  location.reload();
}

// begin learns who the caller is. The token of a sign-in link is removed from the address bar before it is used.
async function begin() {
  const token = location.hash.match(/^#signin=(.+)$/)?.[1];
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    const response = await raw("api/session", { method: "POST", body: JSON.stringify({ link_token: token }) });
    if (response.ok) {
      session.value = await response.json() as Session;
      return;
    }
  }
  const response = await raw("api/session");
  session.value = response.ok ? await response.json() as Session : { signed_in: true, keys_required: false };
}

let begun: Promise<void> | undefined;

// raw makes one request. It throws Lost if there is no answer.
async function raw(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers), csrf = session.value?.csrf_token;
  if (csrf && init.method && init.method !== "GET") headers.set("X-Lathe-Csrf", csrf);
  if (init.body) headers.set("Content-Type", "application/json");
  const response = await fetch(base + path.replace(/^\//, ""), { credentials: "same-origin", ...init, headers }).catch((e: unknown) => { throw lost(e); });
  connection.value = "up";
  const difference = Date.parse(response.headers.get("Date") ?? "") - Date.now();
  if (Math.abs(difference) > 5000) ahead = difference; // less is the way and the rounding
  return response;
}

// request makes a request to a path such as "api/runs". It waits for a key if the server wants one. It throws Lost if there
// is no answer, and an AbortError if the signal is aborted; every answer is returned.
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  if (path === "livez") return raw(path, init);
  await (begun ??= begin().catch((e: unknown) => { begun = undefined; throw e; }));
  for (;;) {
    const response = await raw(path, init);
    if (response.status !== 401) return response;
    await signIn();
  }
}

// refusal reads the problem document of an answer that is no success.
export async function refusal(response: Response): Promise<Refusal> {
  let problem: Problem = {};
  try {
    problem = (await response.json()) as Problem;
  } catch { /* no problem document */ }
  return new Refusal(response.status, problem, new URL(response.url).pathname);
}

// getText returns the body of a GET. Use it with JsonView where numbers and repeated keys must stay as they are.
export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  const response = await request(path, { signal });
  if (!response.ok) throw await refusal(response);
  return response.text().catch((e: unknown) => { throw lost(e); });
}

// get returns the JSON of a GET.
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return JSON.parse(await getText(path, signal)) as T;
}

// send writes: body is JSON text (exact numbers), or a value that becomes JSON. It returns the JSON of the answer,
// undefined if that is empty.
export async function send<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const response = await request(path, { method, body: text, signal });
  if (!response.ok) throw await refusal(response);
  const answer = await response.text().catch((e: unknown) => { throw lost(e); });
  return (answer ? JSON.parse(answer) : undefined) as T;
}

// query returns a path with members of a query; empty members are left out.
export function query(path: string, values: Record<string, string | number | undefined>): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== "") q.set(name, String(value));
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}

export const enc = encodeURIComponent;

export interface ServerEvent {
  id: string | undefined;
  data: string;
}

// events yields the server-sent events of a response. Leaving the loop closes the stream.
export async function* events(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  let held = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((e: unknown) => { throw lost(e); });
      held += value ?? "";
      const blocks = held.split("\n\n");
      held = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = block.split("\n");
        const data = lines.filter((l) => l.startsWith("data: ")).map((l) => l.slice(6));
        if (data.length) yield { id: lines.find((l) => l.startsWith("id: "))?.slice(4), data: data.join("\n") };
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {}); // it is over, or was left
  }
}

// follow reads an event stream to its end and resumes it after the last stored event when the connection breaks off. It
// calls on for each event; if on returns true, it stops. It returns when the server says that there is no more (204), and
// throws a Refusal that is no failure of the server, and an AbortError.
export async function follow(path: string, { after, signal, on }: { after?: string; signal: AbortSignal; on: (e: ServerEvent) => boolean | void }) {
  let last = after;
  for (let attempt = 0; ;) {
    try {
      const response = await request(path, { signal, headers: last === undefined ? {} : { "Last-Event-ID": last } });
      if (response.status === 204) return;
      if (!response.ok) {
        if (response.status < 500) throw await refusal(response);
      } else {
        for await (const e of events(response)) {
          if (e.id !== undefined) last = e.id;
          attempt = 0;
          if (on(e)) return;
        }
      }
    } catch (e) {
      if (!(e instanceof Lost)) throw e;
    }
    await pause(delay(attempt++), signal);
  }
}

// pause waits. It throws an AbortError when the signal is aborted.
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = () => reject(new DOMException("left", "AbortError"));
    if (signal?.aborted) return over();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    const abort = () => { clearTimeout(timer); over(); };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

// delay returns the ms before an attempt to reach the server.
export const delay = (attempt: number) => Math.min(500 * 2 ** attempt, 8000);

// watchConnection looks for a server that was lost until it is back, and looks now and then whether it is there.
export function watchConnection() {
  let looking = false;
  const every = 30_000; // ms
  const look = async () => {
    if (looking) return;
    looking = true;
    for (let attempt = 0; connection.value === "lost"; attempt++) {
      await pause(delay(attempt));
      await request("livez").catch(() => {});
    }
    looking = false;
  };
  connection.subscribe((state) => { if (state === "lost") void look(); });
  setInterval(() => { if (!document.hidden && !looking) request("livez").catch(() => {}); }, every);
}
