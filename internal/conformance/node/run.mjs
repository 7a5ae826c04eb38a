// Runs the stream helper of npm openai against a base URL: node run.mjs BASE CLIENT MODEL…
// Prints one JSON line for each model: what the client made of a whole run, tools included.
const [base, pkg, ...models] = process.argv.slice(2);
const { default: OpenAI } = await import(pkg);

const tools = [
  { type: "function", function: { name: "calculator", description: "Calculates an arithmetic expression.",
    parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] } } },
  { type: "function", function: { name: "get_current_time", description: "Tells the current time.",
    parameters: { type: "object", properties: { zone: { type: "string" } } } } },
];

const results = { calculator: { result: 42 }, get_current_time: { currentTime: "2026-01-02T03:04:05+09:00" } };

async function run(model) {
  const client = new OpenAI({ apiKey: "k", baseURL: base, maxRetries: 2, timeout: 10000 });
  const messages = [{ role: "user", content: "What is 7 + 35, and what time is it in Tokyo?" }];
  const out = { client: pkg, model, calls: [], content: "", done: [], finish: [], usage: 0 };
  try {
    for (let turn = 0; turn < 4; turn++) {
      const stream = (client.chat.completions.stream ? client.chat : client.beta.chat).completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
      stream.on("tool_calls.function.arguments.done", (e) => out.done.push(e.name));
      const completion = await stream.finalChatCompletion();
      const choice = completion.choices[0];
      out.finish.push(choice.finish_reason);
      out.usage += completion.usage?.total_tokens ?? 0;
      if (!choice.message.tool_calls?.length) {
        out.content = choice.message.content ?? "";
        break;
      }
      messages.push(choice.message);
      for (const call of choice.message.tool_calls) {
        out.calls.push({ name: call.function.name, arguments: call.function.arguments, id: call.id });
        messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify(results[call.function.name] ?? { ok: false }) });
      }
    }
  } catch (err) {
    out.error = `${err.constructor.name}: ${err.message}`;
  }
  console.log(JSON.stringify(out));
}

for (const model of models) await run(model);
