// @anthropic-ai/sdk: node anthropic_tools.mjs PACKAGE BASE MODEL…
// create, stream, countTokens and the tool runner, which uses message threads unless it is told otherwise, on models of each wire.
const [name, baseURL, ...models] = process.argv.slice(2);
const { default: Anthropic } = await import(name);
const client = new Anthropic({ apiKey: "k", baseURL, maxRetries: 0, timeout: 20000 });
const question = [{ role: "user", content: "What is 7 + 35?" }];
const text = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

for (const model of models) {
  const params = { model, max_tokens: 1000, messages: question };
  const runner = async (more) => {
    let calls = 0, last;
    const run = client.beta.messages.toolRunner({ ...params, ...more, tools: [{ name: "calculator", description: "Calculates.",
      input_schema: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] }, parse: (x) => x, run: () => (calls++, '{"result":42}') }] });
    for await (const message of run) last = more.stream ? await message.finalMessage() : message;
    return `${calls} ${text(last)}`;
  };
  for (const [mode, send] of Object.entries({
    create: async () => text(await client.messages.create(params)),
    stream: async () => text(await client.messages.stream(params).finalMessage()),
    count: async () => `${(await client.messages.countTokens({ model, messages: question })).input_tokens > 0}`,
    runner: () => runner({}),
    "streamed runner": () => runner({ stream: true }),
    "runner without thread": () => runner({ thread: false }),
    thread: () => client.beta.messages.thread({ model, max_tokens: 1000 }).send({ role: "user", content: "hi" }).then(() => "answered", (err) => `${err.status}`),
  })) {
    console.log(JSON.stringify({ model, mode, content: await send().catch((err) => `failed: ${err}`) }));
  }
}
