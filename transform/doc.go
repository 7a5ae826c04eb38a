// Package transform evens out differences between vendors by small changes to requests and answers. Each change has a
// name, and a configuration lists the names to apply. Packages loop and provider do not depend on transforms.
//
// There are five kinds of transforms. A message transform changes a message that is sent to the server, a tool transform a tool definition,
// a tool_result transform the text of a result in the request, a response transform an answer, and a tool_call transform a call, in answers
// and in the history. [All] lists the transforms, [New] makes a [Chain] of names, and [Wrap] applies a chain to a model.
//
// Every transform is idempotent. It changes copies and does not modify the history that it receives. The change of a message does not
// depend on later messages, so that an encoded conversation grows at its end.
//
// Some names are those of changes that the codec makes to every answer (see [Info.Always]). Listing them in a configuration has no further
// effect.
package transform
