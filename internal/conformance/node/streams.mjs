// Reads /api/chat with the decoders of assistant-stream and the agent of AG-UI, and /v1 with the provider of
// the AI SDK: node streams.mjs BASE ASKING. Prints one JSON line for each client and case.
const [base, asking] = process.argv.slice(2);
const prompt = "What is 7 + 35, and what time is it in Tokyo?";
const cases = [["rounds", base, "sim/demo"], ["cut", base, "sim/fault-cut-mid-text"], ["approval", asking, "sim/demo"], ["slow", base, "sim/slow"]];
const say = (o) => console.log(JSON.stringify(o));

const stream = await import("assistant-stream");
for (const [protocol, Decoder] of [["data-stream", stream.DataStreamDecoder], ["assistant-transport", stream.AssistantTransportDecoder], ["ui-message-stream", stream.UIMessageStreamDecoder]]) {
  for (const [name, api, model] of cases) {
    const out = { client: `assistant-stream ${protocol}`, case: name, errors: [], states: [], text: "" };
    try {
      const response = await fetch(`${api}/api/chat?protocol=${protocol}`, { method: "POST",
        body: JSON.stringify({ id: "c", model, messages: [{ role: "user", content: prompt }] }) });
      const messages = response.body.pipeThrough(new Decoder()).pipeThrough(new stream.AssistantMessageAccumulator());
      let last;
      for await (const m of messages) last = m;
      out.text = last.parts.filter((p) => p.type === "text").map((p) => p.text).join("\n");
      out.states = last.parts.filter((p) => p.type === "tool-call").map((p) => `${p.toolName}:${p.isError ? "error" : p.result !== undefined ? "result" : "open"}:${JSON.stringify(p.args)}`);
      out.status = last.status.type + (last.status.reason ? ":" + last.status.reason : "");
      if (last.status.reason === "error") out.errors.push(JSON.stringify(last.status.error));
    } catch (e) {
      out.errors.push(e.message);
    }
    say(out);
  }
}

// A page of the transport holds a state, and sends what is new as commands.
for (const [name, api, model] of cases) {
  const out = { client: "assistant-transport commands", case: name, errors: [], states: [], text: "" };
  try {
    let state = { own: true };
    for (const text of [prompt, "What is 1 + 1?"]) {
      const response = await fetch(`${api}/api/chat`, { method: "POST", body: JSON.stringify({ threadId: `t-${name}`, config: { modelName: model }, state, tools: {},
        commands: [{ type: "add-message", message: { role: "user", parts: [{ type: "text", text }] }, parentId: null, sourceId: null }] }) });
      const messages = response.body.pipeThrough(new stream.AssistantTransportDecoder()).pipeThrough(new stream.AssistantMessageAccumulator({
        initialMessage: { role: "assistant", status: { type: "running" }, parts: [], content: [], metadata: { unstable_state: state, unstable_data: [], unstable_annotations: [], steps: [], custom: {} } } }));
      let last;
      for await (const m of messages) last = m;
      state = last.metadata.unstable_state;
      if (last.status.reason === "error") out.errors.push(JSON.stringify(last.status.error));
      if (name !== "rounds") break;
    }
    out.messages = state.messages.length;
    const parts = state.messages.flatMap((m) => m.role === "assistant" ? m.parts : []);
    out.text = parts.filter((p) => p.type === "text").map((p) => p.text).join("\n");
    out.states = parts.filter((p) => p.type === "dynamic-tool").map((p) => `${p.toolName}:${p.state}`);
    out.status = String(state.own);
  } catch (e) {
    out.errors.push(e.message);
  }
  say(out);
}

for (const pkg of ["ag-ui-1", "ag-ui-0"]) {
  const { HttpAgent } = await import(pkg);
  for (const [name, api, model] of cases) {
    const out = { client: pkg, case: name, errors: [], states: [], text: "" };
    class Agent extends HttpAgent {
      requestInit(input) {
        const init = super.requestInit(input);
        return { ...init, body: JSON.stringify({ ...JSON.parse(init.body), model }) };
      }
    }
    const agent = new Agent({ url: `${api}/api/chat?protocol=ag-ui`, threadId: `${pkg}-${name}`, initialMessages: [{ id: "u1", role: "user", content: prompt }] });
    const types = [];
    const run = async (more) => {
      let outcome;
      await agent.runAgent(more, {
        onEvent: ({ event }) => { types.push(event.type); },
        onRunFinishedEvent: ({ event }) => { outcome = event.outcome; },
        onRunErrorEvent: ({ event }) => { out.errors.push(event.message); },
      });
      return outcome;
    };
    try {
      let outcome = await run({});
      out.status = outcome?.type;
      if (outcome?.type === "interrupt") {
        outcome = await run({ resume: outcome.interrupts.map((i) => ({ interruptId: i.id, status: "resolved" })) });
        out.status += ":" + outcome?.type;
      }
    } catch (e) {
      out.errors.push(e.message);
    }
    out.text = agent.messages.filter((m) => m.role === "assistant").map((m) => m.content ?? "").join("\n");
    const results = new Set(agent.messages.filter((m) => m.role === "tool").map((m) => m.toolCallId));
    out.states = agent.messages.flatMap((m) => m.toolCalls ?? []).map((c) => `${c.function.name}:${results.has(c.id) ? "result" : "open"}:${c.function.arguments}`);
    out.types = types.length;
    say(out);
  }
}

for (const [n, ai] of [[1, "ai-5"], [2, "ai-6"], [3, "ai-7"]]) {
  const { createOpenAICompatible } = await import(`openai-compatible-${n}`);
  const { streamText, tool, jsonSchema, stepCountIs } = await import(ai);
  const provider = createOpenAICompatible({ name: "lathe", baseURL: `${base}/v1`, includeUsage: true });
  for (const [name, model] of [["rounds", "sim/demo"], ["own tool", "sim/demo"], ["cut", "sim/fault-cut-mid-text"]]) {
    const out = { client: `openai-compatible-${n}`, case: name, errors: [], states: [], text: "" };
    try {
      const own = name === "own tool" ? { where_am_i: tool({ description: "Tells where the user is.", inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => ({ city: "Tokyo" }) }) } : undefined;
      const result = streamText({ model: provider(model), prompt: own ? "Where am I, and what is 7 + 35?" : prompt, tools: own, stopWhen: stepCountIs(4), maxRetries: 0, onError: ({ error }) => { out.errors.push(error.message ?? String(error)); } });
      for await (const part of result.fullStream) {
        if (part.type === "text-delta") out.text += part.text;
        if (part.type === "tool-result") out.states.push(`${part.toolName}:result:${JSON.stringify(part.input)}`);
      }
      out.status = await result.finishReason;
    } catch (e) {
      if (out.errors.length === 0) out.errors.push(e.message);
    }
    say(out);
  }
}
process.exit(0);
