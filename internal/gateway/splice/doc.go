// Package splice restores what a client's conversation does not show. A run of the gateway calls tools of the server between two messages of its client,
// and the client sends the conversation back without those calls and results. The package finds them and puts them into their place before a model
// reads the conversation: by ids of calls that the gateway has made ([CallIDs]), by sealed items that the client sends back ([Carriers]), by hashes of
// the conversation before a call or a text ([Hash]), and by the sentence of a run that waits.
//
// Package server makes a [Request] for each request and calls [Turns]. What is kept is bounded in memory, and read from the logs of runs where there
// is a store. A [Turns] may be used by several goroutines at once; a Request, a [Spliced], CallIDs and Carriers belong to one request.
package splice
