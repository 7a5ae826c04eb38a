// @google/genai: node google.mjs BASE PACKAGE CASE…
// generateContent, generateContentStream, a chat that keeps the history itself, and the tool runner (automatic function calling) of
// both ways to ask.
import { answerSchema, dialogue, ran, weather } from "./dialogue.mjs";

const [base, pkg, ...cases] = process.argv.slice(2);
const { GoogleGenAI } = await import(pkg);
const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: base, timeout: 20000 } });

// joined makes one answer of the chunks of a stream.
async function joined(stream) {
  const parts = [];
  let last;
  for await (const chunk of stream) {
    if (last?.candidates?.[0].finishReason) throw new Error("a chunk after the finish reason");
    parts.push(...(chunk.candidates?.[0].content?.parts ?? []));
    last = chunk;
  }
  if (!last?.candidates?.[0].finishReason) throw new Error("the stream has no finish reason");
  last.candidates[0].content = { role: "model", parts };
  return last;
}

function read(response, structured) {
  const candidate = response.candidates[0];
  const parts = candidate.content?.parts ?? [];
  const text = parts.filter((part) => part.text && !part.thought).map((part) => part.text).join("");
  return {
    text, finish: candidate.finishReason, usage: response.usageMetadata.totalTokenCount, server: [],
    calls: parts.filter((part) => part.functionCall).map(({ functionCall: c }) => ({ id: c.id, name: c.name, arguments: JSON.stringify(c.args) })),
    parsed: structured ? JSON.parse(text) : null,
    items: [candidate.content],
  };
}

const declared = { functionDeclarations: [{ name: weather.name, description: weather.description, parametersJsonSchema: weather.schema }] };
const config = (structured, tool = declared) => ({ tools: [tool],
  ...(structured && { responseMimeType: "application/json", responseJsonSchema: answerSchema }) });

const own = {
  user: (text) => ({ role: "user", parts: [{ text }] }),
  results: (calls, output) => [{ role: "user", parts: calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output } } })) }],
};
await dialogue(`${pkg} create`, { ...own,
  ask: async (model, contents, structured) => read(await client.models.generateContent({ model, contents, config: config(structured) }), structured) }, cases);
await dialogue(`${pkg} stream`, { ...own,
  ask: async (model, contents, structured) => read(await joined(await client.models.generateContentStream({ model, contents, config: config(structured) })), structured) }, cases);

const chats = new Map();
await dialogue(`${pkg} chat`, { ...own,
  async ask(model, contents, structured) {
    if (!chats.has(model)) chats.set(model, client.chats.create({ model, config: config(structured) }));
    return read(await joined(await chats.get(model).sendMessageStream({ message: contents.at(-1).parts })), structured);
  } }, cases);

const callable = { tool: async () => declared, callTool: async (calls) => calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: "rain" } } })) };
// executed is what the library does not say of an answer whose calls it has executed: the history has its content alone.
const executed = (content) => read({ candidates: [{ content, finishReason: "STOP" }], usageMetadata: { totalTokenCount: 0 } });
await dialogue(`${pkg} runner`, { ...own,
  async ask(model, contents, structured) {
    const response = await client.models.generateContent({ model, contents: [...contents], config: config(structured, callable) });
    const more = response.automaticFunctionCallingHistory.slice(contents.length), last = read(response, structured);
    return ran([...more.filter((content) => content.role === "model").map(executed), last], [...more, ...last.items]);
  } }, cases);
await dialogue(`${pkg} streamed runner`, { ...own,
  async ask(model, contents, structured) {
    const answers = [], items = [];
    let chunks = [];
    const end = async () => {
      answers.push(read(await joined(chunks), structured && answers.length === 0));
      items.push(...answers.at(-1).items);
      chunks = [];
    };
    for await (const chunk of await client.models.generateContentStream({ model, contents: [...contents], config: config(structured, callable) })) {
      if (chunk.candidates?.[0].content?.role !== "user") {
        chunks.push(chunk);
        continue;
      }
      await end();
      items.push(chunk.candidates[0].content);
    }
    await end();
    return ran(answers, items);
  } }, cases);
