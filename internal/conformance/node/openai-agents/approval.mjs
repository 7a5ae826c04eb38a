// @openai/agents where a person decides, and where an agent hands over to another: node approval.mjs BASE API CASE…
// Prints two JSON lines for each case: by run, and by run with stream.
import { Agent, handoff, hostedMcpTool, OpenAIProvider, Runner, tool } from "@openai/agents";
import { weather } from "../wires/dialogue.mjs";

const [base, api, ...cases] = process.argv.slice(2);
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: "k", baseURL: `${base}/v1`, useResponses: api === "responses" }), tracingDisabled: true });

async function dialogue(model, stream) {
  const out = { client: `@openai/agents ${api} ${stream ? "stream" : "run"}`, case: model, calls: [], asked: [], server: [], answer: "", agent: "" };
  const own = (needsApproval) => tool({ name: weather.name, description: weather.description, strict: false, parameters: { ...weather.schema, additionalProperties: true }, needsApproval,
    execute: (input) => { out.calls.push(`weather ${input.city}`); return "rain"; } });
  const hosted = (more) => hostedMcpTool({ serverLabel: "lathe", serverUrl: `${base}/mcp`, requireApproval: "always", ...more });
  const helper = new Agent({ name: "Helper", model, tools: [own(false)] });
  const agent = new Agent({ name: "Asker", model, ...{
    handoff: { handoffs: [handoff(helper, { toolNameOverride: "ask_helper" })] },
    "own-approved": { tools: [own(true)] },
    "own-denied": { tools: [own(true)] },
    "server-approved": { tools: [hosted(), own(false)] },
    "server-denied": { tools: [hosted(), own(false)] },
    "server-both": { tools: [hosted(), own(true)] },
    "server-callback": { tools: [hosted({ onApproval: async (_, item) => { out.asked.push(item.rawItem.providerData.name); return { approve: true }; } })] },
    waits: { tools: [own(false)] },
  }[model] });
  const send = async (input) => {
    const result = await runner.run(agent, input, { maxTurns: 6, stream });
    if (stream) {
      for await (const _ of result);
      await result.completed;
      if (result.error) throw result.error;
    }
    return result;
  };
  try {
    // Two conversations that are alike to the ids of their calls are one to the server.
    let result = await send(`Go on, ${out.client}`);
    for (let turn = 0; result.interruptions.length > 0 && turn < 4; turn++) {
      for (const item of result.interruptions) {
        out.asked.push(item.rawItem.providerData?.name ?? item.name);
        if (model.endsWith("denied")) result.state.reject(item);
        else result.state.approve(item);
      }
      result = await send(result.state);
    }
    out.server = result.newItems.map((item) => item.rawItem).filter((item) => item.providerData?.type === "mcp_call").map((item) => `${item.providerData.name} ${item.output ?? item.providerData.error}`);
    out.answer = result.finalOutput ?? "";
    out.agent = result.lastAgent.name;
  } catch (err) {
    out.error = `${err.constructor.name}: ${err.status ?? ""} ${err.message}`;
  }
  console.log(JSON.stringify(out));
}

for (const model of cases) for (const stream of [false, true]) await dialogue(model, stream);
