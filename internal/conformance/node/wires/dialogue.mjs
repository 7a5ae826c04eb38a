// A dialogue of an official client with a server: one tool of its own, weather; the server's tools are executed there.
export const weather = { name: "weather", description: "Tells the weather.", schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };
export const answerSchema = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"], additionalProperties: false };

// caseOf returns the case of a model, such as again of again.responses: the rest names the wire of the model's server.
export const caseOf = (model) => model.split(".")[0];

// ran makes one answer of those that the tool runner of a library got: it has executed their calls. items is what it added to the history.
export const ran = (answers, items) => ({ ...answers.at(-1), before: answers.slice(0, -1), items });

// dialogue prints one JSON line for each case. client.ask sends the history and returns what the client's library made of the
// answer: { text, calls, server, finish, usage, parsed, items }; items is what is appended to the history. With before it holds the
// answers to which a tool runner replied: see ran.
export async function dialogue(name, client, cases) {
  await Promise.all(cases.map(async (model) => {
    const out = { client: name, model, calls: [], server: [], content: "", finish: [], usage: 0, parsed: null };
    try {
      const history = [client.user("Go on.")];
      let more = caseOf(model) === "again";
      for (let turn = 0; turn < 6; turn++) {
        const answer = await client.ask(model, history, caseOf(model) === "structured");
        for (const one of [...(answer.before ?? []), answer]) {
          out.finish.push(one.finish);
          out.usage += one.usage ?? 0;
          out.server.push(...one.server);
          out.calls.push(...one.calls.map((c) => ({ name: c.name, id: c.id, arguments: c.arguments })));
        }
        out.content = answer.text;
        out.parsed = answer.parsed ?? null;
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
