// What the page asks its server, always under the page's own address.

const keyName = "lathe.key";
let askForKey = async () => "";
const listeners = [];
let ahead = 0; // ms by which the server's clock is ahead of this one
let reached; // whether the last request got an answer

export function onKeyWanted(ask) { askForKey = ask; }

// onConnection has f called when the server is reached after it was not, and the other way round.
export function onConnection(f) { listeners.push(f); }

function reach(now) {
  if (reached === now) return;
  reached = now;
  for (const f of listeners) f(now);
}

// now is the time of the server.
export const now = () => Date.now() + ahead;

export const isReached = () => reached !== false;

// A Refusal is an answer that is no success. Its message is what the server says, problem the document about it.
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.error?.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = problem.code ?? problem.error?.code ?? "";
    this.problem = problem;
  }
}

// A Lost is a connection that could not be made, or that ended before its answer.
export class Lost extends Error {
  constructor() { super("The server cannot be reached. Check that it runs, then try again."); }
}

// lost turns the failure of a connection into a Lost. An abort is none.
function lost(e) {
  if (e.name === "AbortError") return e;
  reach(false);
  return new Lost();
}

// ask makes a request. It asks the person for a key where the server wants one.
export async function ask(path, init = {}) {
  for (;;) {
    const headers = new Headers(init.headers);
    const key = sessionStorage.getItem(keyName);
    if (key) headers.set("Authorization", `Bearer ${key}`);
    if (init.body) headers.set("Content-Type", "application/json");
    const response = await fetch(path, { ...init, headers }).catch((e) => { throw lost(e); });
    reach(true);
    const time = Date.parse(response.headers.get("Date") ?? "") - Date.now();
    if (Math.abs(time) > 5000) ahead = time; // less is the way and the rounding
    if (response.status !== 401) return response;
    sessionStorage.setItem(keyName, await askForKey(Boolean(key)));
  }
}

// json asks for JSON. What is no success is thrown.
export async function json(path, init) {
  const response = await ask(path, init);
  if (!response.ok) throw await refusal(response);
  return response.json();
}

export async function refusal(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch { /* no problem document */ }
  return new Refusal(response.status, problem);
}

// events yields the id and the data of the server-sent events of a response.
export async function* events(response) {
  let held = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((e) => { throw lost(e); });
      held += value ?? "";
      const blocks = held.split("\n\n");
      held = blocks.pop();
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

// pause waits, or until the signal is aborted: then it throws.
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const over = () => reject(new DOMException("left", "AbortError"));
    if (signal?.aborted) return over();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", over);
      resolve();
    }, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); over(); }, { once: true });
  });
}

// delays are those between attempts to reach the server.
export const delay = (attempt) => Math.min(500 * 2 ** attempt, 8000);
