// @langchain/openai: node langchain.mjs BASE API CASE…
// invoke, and the joined pieces of stream; API is responses or chat.
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { answerSchema, dialogue, weather } from "./dialogue.mjs";

const [base, api, ...cases] = process.argv.slice(2);
const client = (model) => new ChatOpenAI({ model, apiKey: "k", maxRetries: 0, timeout: 20000, useResponsesApi: api === "responses", configuration: { baseURL: `${base}/v1` } });
const tools = [{ type: "function", function: { name: weather.name, description: weather.description, parameters: weather.schema } }];

const sends = {
  async invoke(model, history, structured) {
    if (!structured) return { message: await client(model).bindTools(tools).invoke(history) };
    const { raw, parsed } = await client(model).withStructuredOutput(answerSchema, { name: "answer", method: "jsonSchema", includeRaw: true }).invoke(history);
    return { message: raw, parsed };
  },
  async stream(model, history, structured) {
    let message, text = "";
    const format = structured && { response_format: { type: "json_schema", json_schema: { name: "answer", schema: answerSchema } } };
    for await (const piece of await client(model).bindTools(tools, { ...format }).stream(history)) {
      text += piece.text;
      message = message ? message.concat(piece) : piece;
    }
    if (text !== message.text) throw new Error(`the pieces hold ${JSON.stringify(text)}, the answer ${JSON.stringify(message.text)}`);
    return { message, parsed: structured ? JSON.parse(text) : null };
  },
};

for (const [mode, send] of Object.entries(sends)) {
  await dialogue(`@langchain/openai ${api} ${mode}`, {
    user: (text) => new HumanMessage(text),
    results: (calls, output) => calls.map((c) => new ToolMessage({ tool_call_id: c.id, name: c.name, content: output })),
    async ask(model, history, structured) {
      const { message, parsed } = await send(model, history, structured);
      if (message.invalid_tool_calls?.length) throw new Error(`calls that do not parse: ${JSON.stringify(message.invalid_tool_calls)}`);
      return {
        text: message.text, parsed, items: [message],
        finish: message.response_metadata.status ?? message.response_metadata.finish_reason, usage: message.usage_metadata?.total_tokens,
        calls: message.tool_calls.map((c) => ({ id: c.id, name: c.name, arguments: JSON.stringify(c.args) })),
        server: (message.additional_kwargs.tool_outputs ?? []).map((item) => `${item.name} ${item.output}`),
      };
    },
  }, cases);
}
