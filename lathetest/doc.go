// Package lathetest helps to test programs that use Lathe, without a network and without a real model.
//
//   - [Model] answers model calls from a script of [Step] values, and records what it was sent.
//   - [Run] runs a loop once with a model and tools, and returns its [Record]: the result and all events.
//   - [TestModel], [TestModelError], [TestTool] and [TestStore] check an implementation of [lathe.Model], [lathe.Tool] or store.Store against
//     the contract in its documentation.
package lathetest
