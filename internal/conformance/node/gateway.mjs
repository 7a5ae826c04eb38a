// Runs the stream helper of npm openai against a gateway: node gateway.mjs BASE CLIENT MODEL…
// The client has one tool of its own; the server's run unseen. Prints one JSON line for each model.
const [base, pkg, ...models] = process.argv.slice(2);
const { default: OpenAI } = await import(pkg);

const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }];

async function run(model) {
  const client = new OpenAI({ apiKey: "k", baseURL: base, maxRetries: 0, timeout: 10000 });
  const messages = [{ role: "user", content: "Go on." }];
  const out = { client: pkg, model, calls: [], content: "", done: [], finish: [], usage: 0 };
  try {
    for (let turn = 0; turn < 4; turn++) {
      const stream = (client.chat.completions.stream ? client.chat : client.beta.chat).completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
      stream.on("tool_calls.function.arguments.done", (e) => out.done.push(e.name));
      const completion = await stream.finalChatCompletion();
      if (!completion.lathe?.run_id) throw new Error("the completion has no report of the run");
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
        messages.push({ role: "tool", tool_call_id: call.id, content: "rain" });
      }
    }
    if (out.done.length !== out.calls.length) throw new Error(`${out.done.length} calls were done, ${out.calls.length} are there`);
  } catch (err) {
    out.error = `${err.constructor.name}: ${err.message}`;
  }
  console.log(JSON.stringify(out));
}

for (const model of models) await run(model);
