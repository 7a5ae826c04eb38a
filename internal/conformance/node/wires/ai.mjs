// npm ai with a provider: node ai.mjs BASE AI VERSION PROVIDER CASE…
// generateText and streamText, and both as tool runners; AI is the package, VERSION that of the provider's package, and PROVIDER is
// openai, openai-unstored, anthropic or google. By default the provider of OpenAI sends references to the items of earlier answers;
// unstored, it sends the items.
import { answerSchema, dialogue, ran, weather } from "./dialogue.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [base, ai, version, name, ...cases] = process.argv.slice(2);
const { generateText, jsonSchema, Output, stepCountIs, streamText, tool } = await import(ai);
const provider = await {
  openai: async () => (await import(`ai-sdk-openai-${version}`)).createOpenAI({ apiKey: "k", baseURL: `${base}/v1` }),
  anthropic: async () => (await import(`ai-sdk-anthropic-${version}`)).createAnthropic({ apiKey: "k", baseURL: `${base}/v1` }),
  google: async () => (await import(`ai-sdk-google-${version}`)).createGoogleGenerativeAI({ apiKey: "k", baseURL: `${base}/v1beta` }),
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
    const whole = (await result.steps).map((step) => step.text).join("");
    if (text !== whole) throw new Error(`the deltas hold ${JSON.stringify(text)}, the answers ${JSON.stringify(whole)}`);
    const members = ["text", "toolCalls", "toolResults", "finishReason", "usage", "response", "content", "steps"];
    return { ...Object.fromEntries(await Promise.all(members.map(async (m) => [m, await result[m]]))), output: params.output && await result.output };
  },
};

const textOf = (output) => typeof output === "string" ? output : output.output ?? output.content?.[0].text ?? output[0]?.text;

// read returns what a step says.
function read(step) {
  const errors = step.content.filter((part) => part.type === "tool-error");
  if (errors.length) throw errors[0].error;
  return {
    text: step.text, finish: step.finishReason, usage: step.usage.totalTokens,
    calls: step.toolCalls.filter((c) => !c.providerExecuted).map((c) => ({ id: c.toolCallId, name: c.toolName, arguments: JSON.stringify(c.input) })),
    server: step.toolResults.filter((r) => r.providerExecuted).map((r) => `${r.toolName.replace(/^mcp\./, "")} ${textOf(r.output)}`),
    items: step.response.messages,
  };
}

for (const runs of [false, true]) {
  for (const [mode, send] of Object.entries(sends)) {
    await dialogue(`${ai} @ai-sdk/${name} ${version} ${mode}${runs ? " runner" : ""}`, {
      user: (text) => ({ role: "user", content: text }),
      results: (calls, output) => [{ role: "tool", content: calls.map((c) => ({ type: "tool-result", toolCallId: c.id, toolName: c.name, output: { type: "text", value: output } })) }],
      async ask(model, messages, structured) {
        const result = await send({ model: provider(model), messages, maxRetries: 0, providerOptions,
          tools: { weather: tool({ description: weather.description, inputSchema: jsonSchema(weather.schema), ...(runs && { execute: () => "rain" }) }) },
          ...(runs && { stopWhen: stepCountIs(6) }), ...(structured && { output: Output.object({ schema: jsonSchema(answerSchema) }) }) });
        const answer = runs ? ran(result.steps.map(read), result.response.messages) : read(result);
        return { ...answer, parsed: structured ? result.output : null };
      },
    }, cases);
  }
}
