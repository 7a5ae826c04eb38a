// npm openai with the Responses API: node openai.mjs BASE PACKAGE CASE…
// create, the iterator of a stream, and the stream helper.
import { z } from "zod";
import { dialogue, weather } from "./dialogue.mjs";

const [base, pkg, ...cases] = process.argv.slice(2);
const { default: OpenAI } = await import(pkg);
const { zodTextFormat } = await import(`${pkg}/helpers/zod`);
const client = new OpenAI({ apiKey: "k", baseURL: `${base}/v1`, maxRetries: 0, timeout: 20000 });

const textOf = (response) => response.output.filter((item) => item.type === "message").flatMap((item) => item.content).map((part) => part.text).join("");

const sends = {
  create: (params) => client.responses.parse(params),
  async iterate(params) {
    let response, text = "", next = 0;
    for await (const event of await client.responses.create({ ...params, stream: true })) {
      if (event.sequence_number !== next++) throw new Error(`event ${next - 1} has the number ${event.sequence_number}`);
      if (event.type === "response.output_text.delta") text += event.delta;
      if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) response = event.response;
    }
    if (text !== textOf(response)) throw new Error(`the deltas hold ${JSON.stringify(text)}, the answer ${JSON.stringify(textOf(response))}`);
    return response;
  },
  stream: (params) => client.responses.stream(params).finalResponse(),
};

for (const [mode, send] of Object.entries(sends)) {
  await dialogue(`${pkg} ${mode}`, {
    user: (text) => ({ role: "user", content: text }),
    results: (calls, output) => calls.map((c) => ({ type: "function_call_output", call_id: c.id, output })),
    async ask(model, input, structured) {
      const response = await send({ model, input, tools: [{ type: "function", name: weather.name, description: weather.description, parameters: weather.schema, strict: false }],
        ...(structured && { text: { format: zodTextFormat(z.object({ answer: z.number() }), "answer") } }) });
      if (response.error) throw new Error(response.error.message);
      return {
        text: textOf(response), finish: response.status, usage: response.usage.total_tokens,
        calls: response.output.filter((item) => item.type === "function_call").map((item) => ({ id: item.call_id, name: item.name, arguments: item.arguments })),
        server: response.output.filter((item) => item.type === "mcp_call").map((item) => `${item.name} ${item.output}`),
        parsed: structured ? (mode === "iterate" ? JSON.parse(textOf(response)) : response.output_parsed) : null,
        items: response.output,
      };
    },
  }, cases);
}
