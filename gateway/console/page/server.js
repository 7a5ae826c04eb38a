// What the page asks its server, always under the page's own address.

const keyName = "lathe.key";
let askForKey = async () => "";

export function onKeyWanted(ask) { askForKey = ask; }

// A Refusal is an answer that is no success; detail is what the server says of it.
export class Refusal extends Error {
  constructor(status, detail, code) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

// ask makes a request. It asks the person for a key where the server wants one.
export async function ask(path, init = {}) {
  for (;;) {
    const headers = new Headers(init.headers);
    const key = sessionStorage.getItem(keyName);
    if (key) headers.set("Authorization", `Bearer ${key}`);
    if (init.body) headers.set("Content-Type", "application/json");
    const response = await fetch(path, { ...init, headers });
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
  let detail = `The server answered ${response.status}.`, code = "";
  try {
    const body = await response.json();
    detail = body.detail ?? body.error?.message ?? detail;
    code = body.code ?? body.error?.code ?? "";
  } catch { /* no problem document */ }
  return new Refusal(response.status, detail, code);
}

// events yields the data of server-sent events of a response.
export async function* events(response) {
  let held = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    held += value ?? "";
    const blocks = held.split("\n\n");
    held = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6));
      if (data.length) yield data.join("\n");
    }
    if (done) return;
  }
}
