package dialect

import (
	"github.com/lathe-run/lathe"
)

const maxNameBytes = 256 // maximal length of a tool's name in the text, with its quotes

// A payload reads a call that is one JSON object with the tool's name and its arguments, such as {"name":…,"arguments":{…}}, up to a
// mark. Once the name is known, it emits argument text as it arrives; before that it buffers the text.
//
// It stores the text of the object until the call is complete, to emit it as text if the call is unreadable. The field object has what is
// known of the call, and r.open is set once the call has begun: when both the name and the beginning of the arguments were read.
type payload struct {
	r      *reader     // emits the deltas
	limit  int         // the maximal length, in bytes
	form   *objectForm // the members of the object
	object callObject  // reads the object

	raw   []byte     // the text so far; once bad is set, only its first maxExcerptBytes
	total int        // the length of the text so far, in bytes
	bad   lathe.Code // why the call is unreadable; "" while it is readable
}

func (p *payload) init(r *reader, limit int, form *objectForm) {
	p.r, p.limit, p.form = r, limit, form
	p.object = callObject{r: r, opens: func() { r.start("", r.toolName(p.object.name)) }}
}

// reset prepares p for the next object.
func (p *payload) reset() {
	p.object.reset(p.form)
	p.object.name, p.raw = p.object.name[:0], p.raw[:0]
	p.total, p.bad = 0, ""
}

// inString reports whether the next byte belongs to a JSON string: a mark there is data.
func (p *payload) inString() bool { return p.object.js.inString() }

// good reports whether the object is complete and a call. If the call has not begun, no arguments were read, and an unknown member may
// contain them: the object is then not a call.
func (p *payload) good() bool {
	o := &p.object
	return p.bad == "" && o.js.state == jsonDone && o.named && (p.r.open || !o.hasOther)
}

// add reads a piece of the object, or of the text between the object and its end mark. Once the call is unreadable, because of an error or
// of the limit, the rest is text.
func (p *payload) add(s string) {
	if p.bad == "" {
		n := min(len(s), p.limit-len(p.raw)) // up to the limit
		p.read(s[:n])
		s = s[n:]
		if s == "" {
			return
		}
		if p.bad == "" {
			p.reject(lathe.CodePayloadTooLarge)
			p.object.js.outer = 0 // the scanner need not stop at the outer levels any more
		}
	}
	if p.bad == lathe.CodePayloadTooLarge {
		p.object.js.scan(s) // to find which marks are inside strings
	}
	p.keep(s)
	p.r.emit(lathe.DeltaText, s)
}

// keep appends s to the text and counts it. If the call is unreadable, it stores only the excerpt.
func (p *payload) keep(s string) {
	p.total += len(s)
	if p.bad != "" {
		s = s[:min(len(s), max(0, maxExcerptBytes-len(p.raw)))]
	}
	p.raw = append(p.raw, s...)
}

// read reads s, which is within the limit.
func (p *payload) read(s string) {
	p.keep(s)
	if !p.scan(s) {
		p.reject(lathe.CodePayloadParseError)
	}
}

// scan reads s, a part of the object. It returns false if the object is invalid or not a call.
func (p *payload) scan(s string) bool {
	o := &p.object
	for s != "" {
		was := o.js.state
		if was == jsonDone { // only white space may follow
			return trimSpace(s) == ""
		}
		n := o.js.scan(s)
		if o.step(was, o.js.state, s[:n]) != objectMore {
			return false
		}
		s = s[n:]
	}
	return true
}

// reject marks the call as unreadable and emits its text so far as text. close emits the ParseError.
func (p *payload) reject(code lathe.Code) {
	p.bad, p.r.unreadable = code, true
	p.r.emit(lathe.DeltaText, string(p.raw))
	p.raw = p.raw[:min(len(p.raw), maxExcerptBytes)]
	if code == lathe.CodePayloadParseError {
		p.object.js.state = jsonBad
	}
}

// close ends the payload and, if the call is unreadable, emits the ParseError. incomplete is truncated if the text ended before the end
// mark, else whole.
func (p *payload) close(incomplete bool) {
	r := p.r
	switch {
	case p.bad != "": // its text is emitted already
	case p.good():
		if !r.open {
			p.object.begin()
		}
		r.end(whole)
		return
	case incomplete && r.open:
		r.end(truncated)
		return
	case incomplete:
		p.reject(lathe.CodeIncompleteCall)
		r.cut = true
	default:
		p.reject(lathe.CodePayloadParseError)
	}
	r.fail(p.bad, r.toolName(p.object.name), string(p.raw), p.total)
}
