// @anthropic-ai/sdk: node anthropic_tools.mjs PACKAGE BASE MODEL…
// What is no dialogue: countTokens, and a message thread, whose caller gets the error.
const [name, baseURL, ...models] = process.argv.slice(2);
const { default: Anthropic } = await import(name);
const client = new Anthropic({ apiKey: "k", baseURL, maxRetries: 0, timeout: 20000 });
const question = [{ role: "user", content: "What is 7 + 35?" }];

for (const model of models) {
  for (const [mode, send] of Object.entries({
    count: async () => `${(await client.messages.countTokens({ model, messages: question })).input_tokens > 0}`,
    thread: () => client.beta.messages.thread({ model, max_tokens: 1000 }).send({ role: "user", content: "hi" }).then(() => "answered", (err) => `${err.status}`),
  })) {
    console.log(JSON.stringify({ model, mode, content: await send().catch((err) => `failed: ${err}`) }));
  }
}
