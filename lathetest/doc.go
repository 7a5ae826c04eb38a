// Package lathetest contains helpers for tests of programs that use Lathe. They need no network and no real model.
//
//   - [Model] answers model calls from a script of [Step] values, and records its requests.
//   - [Recorded] answers model calls from a recording of a real model.
//   - [Run] runs a loop once with a model and tools, and returns its [Record]: the result and all events.
//   - [TestModel], [TestModelError], [TestTool] and [TestStore] check an implementation of [lathe.Model], [lathe.Tool] or store.Store against
//     the contract in its documentation.
package lathetest
