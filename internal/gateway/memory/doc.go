// Package memory bounds the memory of requests. Those of one key could fill it: a body of 16 MiB, decompressed, comes from some kilobytes, and
// waits for as long as its model does. A [Pool] bounds the bytes of what clients have sent and that is not answered yet, of each key and in all:
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
