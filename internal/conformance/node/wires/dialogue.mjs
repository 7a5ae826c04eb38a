// A dialogue of an official client with a server: one tool of its own, weather; the server's tools are executed there.
export const weather = { name: "weather", description: "Tells the weather.", schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };
export const answerSchema = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"], additionalProperties: false };

// dialogue prints one JSON line for each case. client.ask sends the history and returns what the client's library made of the
// answer: { text, calls, server, finish, usage, parsed, items }; items is what is appended to the history.
export async function dialogue(name, client, cases) {
  await Promise.all(cases.map(async (model) => {
    const out = { client: name, model, calls: [], server: [], content: "", finish: [], usage: 0, parsed: null };
    try {
      const history = [client.user("Go on.")];
      let more = model === "again";
      for (let turn = 0; turn < 4; turn++) {
        const answer = await client.ask(model, history, model === "structured");
        out.finish.push(answer.finish);
        out.usage += answer.usage ?? 0;
        out.server.push(...answer.server);
        out.content = answer.text;
        out.parsed = answer.parsed ?? null;
        out.calls.push(...answer.calls.map((c) => ({ name: c.name, id: c.id, arguments: c.arguments })));
        history.push(...answer.items);
        if (answer.calls.length > 0) {
          history.push(...client.results(answer.calls, "rain"));
        } else if (more) {
          more = false;
          history.push(client.user("Tell me more."));
        } else {
          break;
        }
      }
    } catch (err) {
      out.error = `${err.constructor.name}: ${err.status ?? err.statusCode ?? ""} ${err.message}`;
    }
    console.log(JSON.stringify(out));
  }));
}
