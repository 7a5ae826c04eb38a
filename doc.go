// Package lathe contains the types that the packages of Lathe, a tool-calling runtime, share: messages, calls, models ([Model]), tools
// ([Tool]), policies ([Policy]), approvals ([Approver]), settings, limits and errors. It does no I/O, reads no clock, and imports the standard
// library only.
//
// The other packages, in the order in which a request passes them:
//
//   - app builds the parts that a configuration file describes; cmd/lathe is the command that uses it.
//   - server serves OpenAI's API with tools that the server executes, and /mcp for MCP clients.
//   - engine gives the events of a run ids and times, stores them (package store) and publishes them (packages event and observe).
//   - loop calls the model and tools in turn until the model gives an answer.
//   - provider calls model servers over HTTP; sim is the simulated model. Package dialect reads and writes calls that models
//     write as text.
//   - tool holds the set of tools, typed Go functions, and the one runner that executes calls. Its subpackages make tools of
//     HTTP endpoints, MCP servers, WebAssembly modules, agents and workers on other machines.
//   - policy and approval decide about calls.
//   - lathetest helps to test programs that use all this.
//
// The smallest program is examples/quickstart; examples has one for each feature. ARCHITECTURE.md has the whole table.
package lathe
