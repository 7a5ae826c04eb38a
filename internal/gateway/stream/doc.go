// Package stream sends the events of a run to its client: an [Encoder] converts events to bytes, a [Pipe] buffers them between the
// goroutine of the run and that of the request, and a [Writer] writes them to the connection.
//
// The run calls Emit and TakeRaw of a Pipe, and the request the other methods. The Pipe calls its encoder from one goroutine at a time. A
// Writer is used by one goroutine, except for Cut.
package stream
