// npm openai: node openai.mjs BASE PACKAGE API CASE…
// API is responses or chat. create, the iterator of a stream, the stream helper, and with chat the tool runner, whole and streamed.
import { z } from "zod";
import { dialogue, ran, weather } from "./dialogue.mjs";

const [base, pkg, api, ...cases] = process.argv.slice(2);
const { default: OpenAI } = await import(pkg);
const { zodResponseFormat, zodTextFormat } = await import(`${pkg}/helpers/zod`);
const client = new OpenAI({ apiKey: "k", baseURL: `${base}/v1`, maxRetries: 0, timeout: 20000 });
const answerForm = z.object({ answer: z.number() });

const textOf = (response) => response.output.filter((item) => item.type === "message").flatMap((item) => item.content).map((part) => part.text).join("");

const responses = {
  user: (text) => ({ role: "user", content: text }),
  results: (calls, output) => calls.map((c) => ({ type: "function_call_output", call_id: c.id, output })),
  params: (model, input, structured) => ({ model, input, tools: [{ type: "function", name: weather.name, description: weather.description, parameters: weather.schema, strict: false }],
    ...(structured && { text: { format: zodTextFormat(answerForm, "answer") } }) }),
  read(response) {
    if (response.error) throw new Error(response.error.message);
    return {
      text: textOf(response), finish: response.status, usage: response.usage.total_tokens, parsed: response.output_parsed,
      calls: response.output.filter((item) => item.type === "function_call").map((item) => ({ id: item.call_id, name: item.name, arguments: item.arguments })),
      server: response.output.filter((item) => item.type === "mcp_call").map((item) => `${item.name} ${item.output}`),
      items: response.output,
    };
  },
  sends: {
    create: (params) => client.responses.parse(params),
    async iterate(params) {
      let response, text = "", next = 0;
      for await (const event of await client.responses.create({ ...params, stream: true })) {
        if (event.sequence_number !== next++) throw new Error(`event ${next - 1} has the number ${event.sequence_number}`);
        if (event.type === "response.output_text.delta") text += event.delta;
        if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) response = event.response;
      }
      if (text !== textOf(response)) throw new Error(`the deltas hold ${JSON.stringify(text)}, the answer ${JSON.stringify(textOf(response))}`);
      return response;
    },
    stream: (params) => client.responses.stream(params).finalResponse(),
  },
};

const helper = client.chat.completions.stream ? client.chat.completions : client.beta.chat.completions; // its place until version 5
const chat = {
  user: responses.user,
  results: (calls, output) => calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: output })),
  params: (model, messages, structured) => ({ model, messages, tools: [{ type: "function", function: { name: weather.name, description: weather.description, parameters: weather.schema } }],
    ...(structured && { response_format: zodResponseFormat(answerForm, "answer") }) }),
  read(completion) {
    const { message, finish_reason: finish } = completion.choices[0];
    return {
      text: message.content ?? "", finish, usage: completion.usage?.total_tokens, parsed: message.parsed, server: [],
      calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: c.function.arguments })),
      items: [message],
    };
  },
  sends: {
    create: (params) => client.chat.completions.create(params),
    stream: (params) => helper.stream({ ...params, stream_options: { include_usage: true } }).finalChatCompletion(),
  },
};

const own = { responses, chat }[api];
for (const [mode, send] of Object.entries(own.sends)) {
  await dialogue(`${pkg} ${api} ${mode}`, { ...own,
    async ask(model, history, structured) {
      const answer = own.read(await send(own.params(model, history, structured)));
      return structured ? { ...answer, parsed: answer.parsed ?? JSON.parse(answer.text) } : answer; // not every mode parses
    },
  }, cases);
}

for (const [mode, more] of api === "chat" ? [["runner", {}], ["streamed runner", { stream: true, stream_options: { include_usage: true } }]] : []) {
  await dialogue(`${pkg} ${api} ${mode}`, { ...own,
    async ask(model, history, structured) {
      const params = chat.params(model, [...history], structured);
      params.tools = [{ type: "function", function: { ...params.tools[0].function, parse: JSON.parse, function: () => "rain" } }];
      const runner = helper.runTools({ ...params, ...more });
      await runner.done();
      const answer = ran(runner.allChatCompletions().map(chat.read), runner.messages.slice(history.length));
      return structured ? { ...answer, parsed: JSON.parse(answer.text) } : answer;
    },
  }, cases);
}
