// Package stream brings what a run says to its client: an [Encoder] turns events into bytes, a [Pipe] holds them between the goroutine of the run and
// that of the request, and a [Writer] writes them to the connection.
//
// The run calls Emit and TakeRaw of a Pipe, and the request the other methods; the encoder is called by one of them at a time. One goroutine uses a
// Writer, but for Cut.
package stream
