package sse

// KeepRaw has the stream that is read now kept as it came, for Raw, until the next Reset.
func (r *Reader) KeepRaw() { r.keep, r.from = true, r.pos }

// Raw returns all bytes since the last event that Raw was asked after, comments and the like among them,
// up to the end of the event that Next returned. It is good until the next call of Next.
func (r *Reader) Raw() []byte { return r.rawTo(r.pos) }

// Rest returns what was read beyond that.
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

// keepRaw saves bytes that are about to leave buf. It is false where more stands before one event than
// an event may hold.
func (r *Reader) keepRaw(b []byte) bool {
	r.kept = append(r.kept, b...)
	r.from = 0
	return len(r.kept) <= r.opts.MaxEvent+r.opts.MaxLine
}
