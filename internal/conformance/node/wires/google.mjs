// @google/genai: node google.mjs BASE CASE…
// generateContent, generateContentStream, and a chat that keeps the history itself.
import { GoogleGenAI } from "@google/genai";
import { answerSchema, dialogue, weather } from "./dialogue.mjs";

const [base, ...cases] = process.argv.slice(2);
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

const config = (structured) => ({ tools: [{ functionDeclarations: [{ name: weather.name, description: weather.description, parametersJsonSchema: weather.schema }] }],
  ...(structured && { responseMimeType: "application/json", responseJsonSchema: answerSchema }) });

const own = {
  user: (text) => ({ role: "user", parts: [{ text }] }),
  results: (calls, output) => [{ role: "user", parts: calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output } } })) }],
};
await dialogue("@google/genai create", { ...own,
  ask: async (model, contents, structured) => read(await client.models.generateContent({ model, contents, config: config(structured) }), structured) }, cases);
await dialogue("@google/genai stream", { ...own,
  ask: async (model, contents, structured) => read(await joined(await client.models.generateContentStream({ model, contents, config: config(structured) })), structured) }, cases);

const chats = new Map();
await dialogue("@google/genai chat", { ...own,
  async ask(model, contents, structured) {
    if (!chats.has(model)) chats.set(model, client.chats.create({ model, config: config(structured) }));
    return read(await joined(await chats.get(model).sendMessageStream({ message: contents.at(-1).parts })), structured);
  } }, cases);
