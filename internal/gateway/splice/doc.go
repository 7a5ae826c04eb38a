// Package splice restores the parts of a conversation that its client does not see. Between two messages of its client, a run of the
// gateway calls tools of the server, and the client sends the conversation without those calls and results. The package finds them and
// inserts them before a model receives the conversation: by ids of calls that the gateway has created ([CallIDs]), by sealed items that the
// client returns ([Carriers]), by hashes of the conversation before a call or a text ([Hash]), and by the sentence of a run that waits.
//
// Package server creates a [Request] for each request and calls [Turns]. Turns are stored in memory within limits, and read from the logs
// of runs if there is a store. A [Turns] may be used by several goroutines at once; a Request, a [Spliced], CallIDs and Carriers belong to
// one request.
package splice
