// Package transform evens out differences between vendors by small changes to requests and answers. Each change has a
// name, and a configuration lists the names to apply. Packages loop and provider do not depend on transforms.
//
// There are five kinds, with a registry each. A message transform changes a message on its way to
// the server; a tool transform a definition; a tool_result transform the text of a result as it
// enters the request; a response transform an answer; a tool_call transform a call, in answers and
// in the history alike. [All] lists them, [New] makes a [Chain] of names, and [Wrap] puts a chain
// around a model.
//
// Every transform is idempotent. It changes copies, never the history that it gets. The change of a message does not depend
// on later messages, so that an encoded conversation grows by appending.
//
// Some names stand for changes that the codec makes to every answer (see [Info.Always]). A configuration may list them,
// which has no further effect.
package transform
