// Package lathe is the vocabulary of a tool-calling runtime: the nouns (messages, calls, deltas,
// tool specs, events, errors) and the seams ([Model], [Tool], [ToolSource], [Policy], [Approver],
// [Store], [Sink]). It holds no I/O and no clock, and imports the standard library only.
//
// The tour, from the ground up:
//
//   - internal/rawjson, internal/sse, internal/secret and internal/schema are mechanisms without
//     opinions: strict JSON text, server-sent events, keys that do not print, JSON Schema.
//   - internal/wire/openai turns the OpenAI chat completions JSON into these nouns and back.
//   - provider reaches model servers over HTTP; sim is the simulated model, in process and on the wire.
//   - dialect reads and writes tool calls that models write as text.
//   - tool holds the set of tools, typed Go functions, and the one runner that calls tools.
//   - policy has ready-made policies.
//   - loop takes model and tools in turn until the model is done.
//   - engine stamps what the loop says, stores it, and tells the sinks of observe.
//   - cmd/lathe puts the parts together.
//
// The smallest program is in the README and in the Example of package loop.
package lathe
