// @anthropic-ai/sdk: node anthropic.mjs BASE CASE…
// create, the iterator of a stream, and the accumulator of the stream helper.
import Anthropic from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import { answerSchema, dialogue, weather } from "./dialogue.mjs";

const [base, ...cases] = process.argv.slice(2);
const client = new Anthropic({ apiKey: "k", baseURL: base, maxRetries: 0, timeout: 20000 });

const sends = {
  create: (params) => client.messages.parse(params),
  async iterate(params) {
    let message, open = -1, ended = false;
    for await (const event of await client.messages.create({ ...params, stream: true })) {
      if (ended) throw new Error(`${event.type} after message_stop`);
      switch (event.type) {
        case "message_start": message = event.message; break;
        case "content_block_start":
          if (open !== -1 || event.index !== message.content.length) throw new Error(`block ${event.index} begins after ${message.content.length}, open is ${open}`);
          open = event.index;
          message.content.push({ ...event.content_block });
          break;
        case "content_block_delta": {
          const block = message.content[open], delta = event.delta;
          if (event.index !== open) throw new Error(`a delta of block ${event.index}, open is ${open}`);
          if (delta.type === "text_delta") block.text += delta.text;
          if (delta.type === "thinking_delta") block.thinking += delta.thinking;
          if (delta.type === "signature_delta") block.signature = delta.signature;
          if (delta.type === "input_json_delta") block.json = (block.json ?? "") + delta.partial_json;
          break;
        }
        case "content_block_stop":
          if (message.content[open].json !== undefined) {
            message.content[open].input = JSON.parse(message.content[open].json || "{}");
            delete message.content[open].json;
          }
          open = -1;
          break;
        case "message_delta": Object.assign(message, event.delta); Object.assign(message.usage, event.usage); break;
        case "message_stop": ended = true;
      }
    }
    if (!ended) throw new Error("the stream has no message_stop");
    return message;
  },
  stream: (params) => client.messages.stream(params).finalMessage(),
};

for (const [mode, send] of Object.entries(sends)) {
  await dialogue(`@anthropic-ai/sdk ${mode}`, {
    user: (text) => ({ role: "user", content: text }),
    results: (calls, output) => [{ role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: output })) }],
    async ask(model, messages, structured) {
      const message = await send({ model, messages, max_tokens: 1000, tools: [{ name: weather.name, description: weather.description, input_schema: weather.schema }],
        ...(structured && { output_config: { format: jsonSchemaOutputFormat(answerSchema) } }) });
      const blocks = (type) => message.content.filter((block) => block.type === type);
      const text = blocks("text").map((block) => block.text).join("");
      return {
        text, finish: message.stop_reason, usage: message.usage.input_tokens + message.usage.output_tokens,
        calls: blocks("tool_use").map((block) => ({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) })),
        server: blocks("mcp_tool_use").map((use) => `${use.name} ${blocks("mcp_tool_result").find((result) => result.tool_use_id === use.id).content[0].text}`),
        parsed: structured ? (mode === "iterate" ? JSON.parse(text) : message.parsed_output) : null,
        items: [{ role: "assistant", content: message.content }],
      };
    },
  }, cases);
}
