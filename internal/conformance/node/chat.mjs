// Runs the chat of npm `ai` against /api/chat: node chat.mjs BASE CLIENT. Prints one JSON line for each
// case: what the client made of whole conversations, approvals and its own tools included.
const [base, pkg, asking] = process.argv.slice(2);
const ai = await import(pkg);

class State {
  status = "ready"; error = undefined; messages = [];
  pushMessage = (m) => { this.messages = [...this.messages, m]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = this.messages.map((o, n) => n === i ? this.snapshot(m) : o); };
  snapshot = (v) => structuredClone(v);
}
class Chat extends ai.AbstractChat {
  constructor(init) {
    const state = new State();
    super({ ...init, state });
    this.own = state;
  }
}

const strict = pkg === "ai-5-0-0";
const where = { where_am_i: { description: "Tells where the user is.", parameters: { type: "object", properties: {} } } };

async function run(name, { api = base, model = "sim/demo", prompts, approve, tools, limit = 6 }) {
  const out = { client: pkg, case: name, errors: [], states: [], text: "" };
  let turns = 0;
  const done = (m) => {
    if (turns > limit) return false;
    return approve !== undefined ? ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(m) : ai.lastAssistantMessageIsCompleteWithToolCalls(m);
  };
  const chat = new Chat({
    id: `${pkg}-${name}`,
    generateId: () => crypto.randomUUID(),
    transport: new ai.DefaultChatTransport({ api: `${api}/api/chat${strict ? "?protocol=ui-message-stream-v5" : ""}`, body: { model, tools } }),
    onError: (e) => out.errors.push(e.message),
    onToolCall: async ({ toolCall }) => {
      if (toolCall.toolName !== "where_am_i") return;
      (chat.addToolOutput ?? chat.addToolResult)({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { city: "Tokyo" } });
    },
    sendAutomaticallyWhen: ({ messages }) => { turns++; return approve !== undefined || tools ? done({ messages }) : false; },
  });
  const idle = async () => {
    for (let i = 0; i < 500; i++) {
      await new Promise((r) => setTimeout(r, 10));
      if (chat.own.status === "ready" || chat.own.status === "error") {
        const before = turns;
        await new Promise((r) => setTimeout(r, 30));
        if (before === turns && (chat.own.status === "ready" || chat.own.status === "error")) return;
      }
    }
    out.errors.push("the chat did not come to rest");
  };
  for (const text of prompts) {
    await chat.sendMessage({ text });
    await idle();
    for (const part of chat.own.messages.at(-1)?.parts ?? []) {
      if (part.state === "approval-requested") await chat.addToolApprovalResponse({ id: part.approval.id, approved: approve });
    }
    await idle();
  }
  const last = chat.own.messages.at(-1);
  if (last?.role === "assistant") {
    out.states = last.parts.filter((p) => p.toolCallId).map((p) => `${p.type.replace("tool-", "")}:${p.state}`);
    out.text = last.parts.filter((p) => p.type === "text").map((p) => p.text).join("\n");
    out.open = last.parts.filter((p) => p.state === "streaming").length;
    out.metadata = last.metadata;
  }
  out.messages = chat.own.messages.length;
  console.log(JSON.stringify(out));
}

const prompt = "What is 7 + 35, and what time is it in Tokyo?";
await run("rounds", { prompts: [prompt] });
await run("no tool", { prompts: ["Hello!"] });
await run("two turns", { prompts: [prompt, "What is 2 * 3?"] });
await run("own tool", { prompts: ["Where am I, and what is 7 + 35?"], tools: where });
await run("status", { model: "sim/fault-status-401", prompts: [prompt] });
await run("cut", { model: "sim/fault-cut-mid-text", prompts: [prompt] });
await run("unknown model", { model: "nope", prompts: [prompt] });
if (ai.lastAssistantMessageIsCompleteWithApprovalResponses) {
  await run("approved", { api: asking, prompts: [prompt], approve: true });
  await run("denied", { api: asking, prompts: [prompt], approve: false });
}
process.exit(0);
