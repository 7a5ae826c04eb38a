// Package memory bounds the memory of requests. Without a bound, the requests of one key could exhaust it: a compressed body of a few
// kilobytes may expand to 16 MiB, and remains in memory while its model is working. A [Pool] bounds the bytes of requests that are not yet
// answered, for each key and in total:
//
//   - a body or a message of a WebSocket, with the memory that was allocated for it, while it arrives and until its request ends,
//   - the conversation that the model receives, at least the size of the body: what is decoded from the body, and what the server
//     puts into it (stored responses, items by reference, hidden turns); until the request ends or, for a run that continues
//     without its client, until this process does not execute the run any more,
//   - the conversation that a WebSocket keeps for the next message.
//
// The memory is reserved before it is allocated. Runs that wait are in the store, which has bounds of its own.
//
// The middleware of package server begins a [Reservation] for each request; what reads messages from the store adds to it.
package memory
