// Asks one client of /v1 the same prompt at each failure place: node effects.mjs BASE CLIENT PROMPT PLACE…
// The client has its default settings; at client-timeout its time limit is three seconds. Prints one JSON line for each place.
const [baseURL, client, prompt, ...places] = process.argv.slice(2);
const apiKey = "k";
const messages = [{ role: "user", content: prompt }];

async function joined(stream, text) {
  let out = "";
  for await (const piece of stream) out += text(piece) ?? "";
  return out;
}

const clients = {
  async openai(model, timeout) {
    const { default: OpenAI } = await import("openai-6");
    const made = await new OpenAI({ apiKey, baseURL, timeout }).chat.completions.create({ model, messages });
    return made.choices[0].message.content;
  },
  async "openai-stream"(model, timeout) {
    const { default: OpenAI } = await import("openai-6");
    const stream = new OpenAI({ apiKey, baseURL, timeout }).chat.completions.stream({ model, messages });
    return (await stream.finalChatCompletion()).choices[0].message.content;
  },
  async langchain(model, timeout) {
    const { ChatOpenAI } = await import("@langchain/openai");
    return (await new ChatOpenAI({ model, apiKey, timeout, configuration: { baseURL } }).invoke(prompt)).text;
  },
  async "langchain-stream"(model, timeout) {
    const { ChatOpenAI } = await import("@langchain/openai");
    return joined(await new ChatOpenAI({ model, apiKey, timeout, configuration: { baseURL } }).stream(prompt), (piece) => piece.text);
  },
  async "ai-sdk"(model, timeout) {
    const { generateText } = await import("ai-6");
    const { createOpenAI } = await import("ai-sdk-openai-3");
    return (await generateText({ model: createOpenAI({ apiKey, baseURL }).chat(model), prompt, timeout })).text;
  },
  async "ai-sdk-stream"(model, timeout) {
    const { streamText } = await import("ai-6");
    const { createOpenAI } = await import("ai-sdk-openai-3");
    let failure;
    const run = streamText({ model: createOpenAI({ apiKey, baseURL }).chat(model), prompt, timeout, onError: ({ error }) => (failure = error) });
    const text = await joined(run.textStream, (piece) => piece);
    if (failure) throw failure;
    return text;
  },
  async llamaindex(model, timeout) {
    const { OpenAI } = await import("@llamaindex/openai");
    return (await new OpenAI({ model, apiKey, baseURL, timeout }).chat({ messages })).message.content;
  },
  async "llamaindex-stream"(model, timeout) {
    const { OpenAI } = await import("@llamaindex/openai");
    return joined(await new OpenAI({ model, apiKey, baseURL, timeout }).chat({ messages, stream: true }), (piece) => piece.delta);
  },
};

async function ask(place) {
  const out = { place };
  try {
    out.answer = await clients[client](`${client}.${place}`, place === "client-timeout" ? 3000 : undefined);
  } catch (err) {
    out.error = `${err.constructor.name}: ${err.message}`;
  }
  console.log(JSON.stringify(out));
}

await Promise.all(places.map(ask));
process.exit(0);
