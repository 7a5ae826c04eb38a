// Has a run over /v1 wait for a person, answers over /api/runs, and goes on: node approval.mjs BASE CLIENT CASE=DECISION…
// Prints two JSON lines for each case: by the stream helper of npm openai, and without a stream.
const [base, pkg, ...cases] = process.argv.slice(2);
const { default: OpenAI } = await import(pkg);
const root = base.replace(/\/v1$/, "");
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }];

async function api(path, body) {
  const response = await fetch(root + path, body && { method: "POST", body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

async function run(model, decision, stream) {
  const client = new OpenAI({ apiKey: "k", baseURL: base, maxRetries: 0, timeout: 30000 });
  // Two conversations that are alike to the ids of their calls are one to the server.
  const messages = [{ role: "user", content: `Go on, ${pkg}, stream ${stream}` }];
  const out = { client: `${pkg}, stream ${stream}`, case: model, calls: [], finish: [], answer: "" };
  const complete = () => stream
    ? (client.chat.completions.stream ? client.chat : client.beta.chat).completions.stream({ model, messages, tools }).finalChatCompletion()
    : client.chat.completions.create({ model, messages, tools });
  try {
    let completion = await complete();
    let choice = completion.choices[0];
    const { run_id: id, reason, pending } = completion.lathe;
    out.finish.push(choice.finish_reason);
    out.reason = reason;
    out.pending = pending.length;
    let kept = await api(`/api/runs/${id}`);
    const open = kept.open_calls.find((c) => c.tool === "calculator");
    out.open = open.state;
    await api(`/api/runs/${id}/approvals/${open.tool_call_id}`, { decision, digest: open.args_digest });
    while (kept.open_calls?.some((c) => c.tool === "calculator" && c.state === "awaiting_approval")) { // it may be taken (202) before the run has looked at it
      await new Promise((r) => setTimeout(r, 20));
      kept = await api(`/api/runs/${id}`);
    }
    const calls = choice.message.tool_calls ?? [];
    if (calls.length > 0) { // the run waits for these, too
      messages.push(choice.message);
      for (const call of calls) {
        out.calls.push({ name: call.function.name, arguments: call.function.arguments, id: call.id });
        messages.push({ role: "tool", tool_call_id: call.id, content: "rain" });
      }
      completion = await complete();
      choice = completion.choices[0];
      out.finish.push(choice.finish_reason);
      out.answer = choice.message.content ?? "";
      out.last = completion.lathe.reason;
    } else {
      while (kept.status !== "completed") {
        await new Promise((r) => setTimeout(r, 20));
        kept = await api(`/api/runs/${id}`);
      }
      out.answer = kept.answer;
    }
  } catch (err) {
    out.error = `${err.constructor.name}: ${err.message}`;
  }
  console.log(JSON.stringify(out));
}

for (const c of cases) {
  const [model, decision] = c.split("=");
  for (const stream of [true, false]) await run(model, decision, stream);
}
