// @anthropic-ai/sdk: node anthropic.mjs BASE PACKAGE CASE…
// create, the iterator of a stream, the accumulator of the stream helper, and the tool runner, whole and streamed, which uses message
// threads unless it is told otherwise. Requests have an anthropic-version that is newer than that of the server's codec.
import { answerSchema, dialogue, ran, weather } from "./dialogue.mjs";

const [base, pkg, ...cases] = process.argv.slice(2);
const { default: Anthropic } = await import(pkg);
const { jsonSchemaOutputFormat } = await import(`${pkg}/helpers/json-schema`);
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

// read returns what a message says. In the modes that parse, parsed is what the library made of the text.
function read(message, parsed) {
  const blocks = (type) => message.content.filter((block) => block.type === type);
  return {
    text: blocks("text").map((block) => block.text).join(""), finish: message.stop_reason, usage: message.usage.input_tokens + message.usage.output_tokens,
    calls: blocks("tool_use").map((block) => ({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) })),
    server: blocks("mcp_tool_use").map((use) => `${use.name} ${blocks("mcp_tool_result").find((result) => result.tool_use_id === use.id).content[0].text}`),
    parsed, items: [{ role: "assistant", content: message.content }],
  };
}

const own = {
  user: (text) => ({ role: "user", content: text }),
  results: (calls, output) => [{ role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: output })) }],
};
const declared = { name: weather.name, description: weather.description, input_schema: weather.schema };
const format = (structured, made) => structured && { output_config: { format: made } };

for (const [mode, send] of Object.entries(sends)) {
  await dialogue(`${pkg} ${mode}`, { ...own,
    async ask(model, messages, structured) {
      const message = await send({ model, messages, max_tokens: 1000, tools: [declared], ...format(structured, jsonSchemaOutputFormat(answerSchema)) });
      const answer = read(message, message.parsed_output);
      return structured && mode === "iterate" ? { ...answer, parsed: JSON.parse(answer.text) } : answer;
    },
  }, cases);
}

for (const [mode, more] of [["runner", {}], ["streamed runner", { stream: true }], ["runner without thread", { thread: false }]]) {
  await dialogue(`${pkg} ${mode}`, { ...own,
    async ask(model, messages, structured) {
      const runner = client.beta.messages.toolRunner({ model, messages, max_tokens: 1000, ...more, tools: [{ ...declared, parse: (input) => input, run: () => "rain" }],
        ...format(structured, { type: "json_schema", schema: answerSchema }) });
      const answers = [];
      for await (const one of runner) answers.push(read(more.stream ? await one.finalMessage() : one));
      const answer = ran(answers, runner.params.messages.slice(messages.length));
      return structured ? { ...answer, parsed: JSON.parse(answer.text) } : answer;
    },
  }, cases);
}
