package sse

// KeepRaw makes the Reader buffer the unchanged bytes of the current stream for Raw, until the next Reset.
func (r *Reader) KeepRaw() { r.keep, r.from = true, r.pos }

// Raw returns the unchanged bytes of the stream from the end of the previous call of Raw to the end of the event that Next returned last,
// comments and events without data included. The result is valid until the next call of Next.
func (r *Reader) Raw() []byte { return r.rawTo(r.pos) }

// Rest returns the unchanged bytes that follow those of Raw, as far as the Reader has read the source.
func (r *Reader) Rest() []byte { return r.rawTo(r.end) }

func (r *Reader) rawTo(end int) []byte {
	if r.buf == nil || !r.keep {
		return nil
	}
	raw := (*r.buf)[r.from:end]
	if len(r.kept) > 0 {
		r.kept = append(r.kept, raw...)
		raw = r.kept
	}
	r.from, r.kept = end, r.kept[:0]
	return raw
}

// keepRaw saves bytes that are about to leave buf. It returns false if the saved bytes exceed the limit of one event.
func (r *Reader) keepRaw(b []byte) bool {
	r.kept = append(r.kept, b...)
	r.from = 0
	return len(r.kept) <= r.opts.MaxEvent+r.opts.MaxLine
}
