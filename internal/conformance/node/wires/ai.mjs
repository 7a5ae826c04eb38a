// npm ai 6 with a provider: node ai.mjs BASE PROVIDER CASE…
// generateText and streamText; PROVIDER is openai, openai-unstored, anthropic or google. By default the provider of OpenAI sends
// references to the items of earlier answers; unstored, it sends the items.
import { generateText, jsonSchema, Output, streamText, tool } from "ai-6";
import { answerSchema, dialogue, weather } from "./dialogue.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [base, name, ...cases] = process.argv.slice(2);
const provider = await {
  openai: async () => (await import("ai-sdk-openai-3")).createOpenAI({ apiKey: "k", baseURL: `${base}/v1` }),
  anthropic: async () => (await import("ai-sdk-anthropic-3")).createAnthropic({ apiKey: "k", baseURL: `${base}/v1` }),
  google: async () => (await import("ai-sdk-google-3")).createGoogleGenerativeAI({ apiKey: "k", baseURL: `${base}/v1beta` }),
}[name.split("-")[0]]();
const providerOptions = name === "openai-unstored" ? { openai: { store: false } } : {};

const sends = {
  generate: (params) => generateText(params),
  async stream(params) {
    let failure, text = "";
    const result = streamText({ ...params, onError: ({ error }) => { failure ??= error; } });
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") text += part.text;
    }
    if (failure) throw failure;
    if (text !== await result.text) throw new Error(`the deltas hold ${JSON.stringify(text)}, the answer ${JSON.stringify(await result.text)}`);
    const members = ["text", "toolCalls", "toolResults", "finishReason", "usage", "response", "content"];
    return { ...Object.fromEntries(await Promise.all(members.map(async (m) => [m, await result[m]]))), output: params.output && await result.output };
  },
};

for (const [mode, send] of Object.entries(sends)) {
  await dialogue(`@ai-sdk/${name} ${mode}`, {
    user: (text) => ({ role: "user", content: text }),
    results: (calls, output) => [{ role: "tool", content: calls.map((c) => ({ type: "tool-result", toolCallId: c.id, toolName: c.name, output: { type: "text", value: output } })) }],
    async ask(model, messages, structured) {
      const result = await send({ model: provider(model), messages, maxRetries: 0, providerOptions, tools: { weather: tool({ description: weather.description, inputSchema: jsonSchema(weather.schema) }) },
        ...(structured && { output: Output.object({ schema: jsonSchema(answerSchema) }) }) });
      const errors = result.content.filter((part) => part.type === "tool-error");
      if (errors.length) throw errors[0].error;
      const text = (output) => typeof output === "string" ? output : output.output ?? output.content?.[0].text ?? output[0]?.text;
      return {
        text: result.text, finish: result.finishReason, usage: result.usage.totalTokens,
        calls: result.toolCalls.filter((c) => !c.providerExecuted).map((c) => ({ id: c.toolCallId, name: c.toolName, arguments: JSON.stringify(c.input) })),
        server: result.toolResults.filter((r) => r.providerExecuted).map((r) => `${r.toolName.replace(/^mcp\./, "")} ${text(r.output)}`),
        parsed: structured ? result.output : null,
        items: result.response.messages,
      };
    },
  }, cases);
}
