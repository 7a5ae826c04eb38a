// Package transform mends what vendors do differently: small changes to requests and answers, each
// with a name that a configuration lists. The loop and the providers know nothing of them.
//
// There are five kinds, with a registry each. A message transform changes a message on its way to
// the server; a tool transform a definition; a tool_result transform the text of a result as it
// enters the request; a response transform an answer; a tool_call transform a call, in answers and
// in the history alike. [All] lists them, [New] makes a [Chain] of names, and [Wrap] puts a chain
// around a model.
//
// What every transform holds to: applied twice it does what it does once; it changes copies, never
// the history that it is given; what it does to a message depends on nothing that comes after it,
// so that an open conversation goes on by appending.
//
// Some names stand for what reading an answer does always (see [Info.Always]). They are known, so
// that a configuration that lists them means what it says, and cost nothing.
package transform
