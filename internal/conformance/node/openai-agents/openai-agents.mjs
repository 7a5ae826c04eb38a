// @openai/agents: node openai-agents.mjs BASE API CASE…
// run, and run with stream; API is responses or chat. The SDK executes the client's tool and asks again by itself.
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { answerSchema, caseOf, weather } from "../wires/dialogue.mjs";

const [base, api, ...cases] = process.argv.slice(2);
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: "k", baseURL: `${base}/v1`, useResponses: api === "responses" }), tracingDisabled: true });
const textOf = (output) => output.filter((item) => item.type === "message").flatMap((item) => item.content).map((part) => part.text ?? "").join("");

const sends = {
  run: (agent, input) => runner.run(agent, input, { maxTurns: 6 }),
  async stream(agent, input) {
    const result = await runner.run(agent, input, { maxTurns: 6, stream: true });
    let text = "";
    for await (const event of result) {
      if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
    }
    await result.completed;
    if (result.error) throw result.error;
    const whole = result.rawResponses.map((r) => textOf(r.output)).join("");
    if (text !== whole) throw new Error(`the deltas hold ${JSON.stringify(text)}, the answers ${JSON.stringify(whole)}`);
    return result;
  },
};

async function dialogue(mode, send, model) {
  const out = { client: `@openai/agents ${api} ${mode}`, model, calls: [], server: [], content: "", finish: [], usage: 0, parsed: null };
  const agent = new Agent({
    name: "Asker", model,
    tools: [tool({ name: weather.name, description: weather.description, strict: false, parameters: { ...weather.schema, additionalProperties: true },
      execute: (input, context, details) => {
        out.calls.push({ name: weather.name, id: details.toolCall.callId, arguments: JSON.stringify(input) });
        return "rain";
      } })],
    ...(caseOf(model) === "structured" && { outputType: { type: "json_schema", name: "answer", strict: true, schema: answerSchema } }),
  });
  try {
    let input = "Go on.";
    for (const next of caseOf(model) === "again" ? ["Tell me more.", null] : [null]) {
      const result = await send(agent, input);
      for (const { output, usage } of result.rawResponses) {
        out.finish.push(output.some((item) => item.type === "function_call") ? "calls" : "stop"); // the SDK has no other word for it
        out.usage += usage.totalTokens;
        out.server.push(...output.filter((item) => item.type === "hosted_tool_call").map((item) => `${item.providerData.name} ${item.output}`));
        out.content = textOf(output);
      }
      const last = typeof result.finalOutput === "string" ? result.finalOutput : JSON.stringify(result.finalOutput);
      if (!last || !out.content.endsWith(last)) throw new Error(`the final output is ${last}, the text ${out.content}`);
      if (caseOf(model) === "structured") out.parsed = result.finalOutput;
      input = [...result.history, { role: "user", content: next }];
    }
  } catch (err) {
    out.error = `${err.constructor.name}: ${err.status ?? ""} ${err.message}`;
  }
  console.log(JSON.stringify(out));
}

for (const [mode, send] of Object.entries(sends)) await Promise.all(cases.map((model) => dialogue(mode, send, model)));
