package dialect

import (
	"github.com/lathe-run/lathe"
)

const maxNameBytes = 256 // of a tool's name, quotes included

// A payload reads a call that is one JSON object with the tool's name and its arguments, such as
// {"name":…,"arguments":{…}}, up to a mark. The argument text is said as it is read, from the moment that the
// name is known; before that it is buffered.
//
// The text of the object is kept until it turns out to be good, so that it can be given as text
// when it is not.
type payload struct {
	r      *reader
	limit  int // on its length
	form   *objectForm
	object callObject

	raw   []byte     // the text so far; after a failure its beginning only
	total int        // its length
	bad   lathe.Code // why it cannot be read
}

func (p *payload) init(r *reader, limit int, form *objectForm) {
	p.r, p.limit, p.form = r, limit, form
	p.object = callObject{r: r, opens: func() { r.start("", r.toolName(p.object.name), false) }}
}

// reset makes p ready for the next object.
func (p *payload) reset() {
	p.object.reset(p.form, true)
	p.object.name, p.raw = p.object.name[:0], p.raw[:0]
	p.total, p.bad = 0, ""
}

// inString reports whether the next byte belongs to a JSON string: a mark there is data.
func (p *payload) inString() bool { return p.object.js.inString() }

// good reports whether the object is whole and a call.
func (p *payload) good() bool {
	o := &p.object
	return p.bad == "" && o.js.state == jsonDone && o.named && (p.r.open || !o.foreign)
}

// add reads a piece of the object, and of what stands between it and its end mark.
func (p *payload) add(s string) {
	if p.bad == "" {
		room := p.limit - len(p.raw)
		if len(s) > room {
			p.read(s[:room])
			s = s[room:]
			if p.bad == "" {
				p.fail(lathe.CodePayloadTooLarge)
				p.object.js.outer = 0
			}
		}
	}
	if p.bad == "" {
		p.read(s)
		return
	}
	if p.bad == lathe.CodePayloadTooLarge {
		p.object.js.scan(s) // on, to know which marks are data
	}
	p.keep(s)
	p.r.emit(lathe.DeltaText, s)
}

// keep counts s, and keeps it as far as raw is wanted.
func (p *payload) keep(s string) {
	p.total += len(s)
	if p.bad != "" {
		s = s[:min(len(s), max(0, maxExcerptBytes-len(p.raw)))]
	}
	p.raw = appendKept(p.raw, s)
}

func (p *payload) read(s string) {
	p.keep(s)
	if !p.scan(s) {
		p.fail(lathe.CodePayloadParseError)
	}
}

// scan follows the object's own level; false: it is broken.
func (p *payload) scan(s string) bool {
	o := &p.object
	for s != "" {
		was := o.js.state
		if was == jsonDone {
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

// fail turns what was read into text. The ParseError follows when the payload ends.
func (p *payload) fail(code lathe.Code) {
	p.bad, p.r.unreadable = code, true
	p.r.emit(lathe.DeltaText, string(p.raw))
	p.raw = p.raw[:min(len(p.raw), maxExcerptBytes)]
	if code == lathe.CodePayloadParseError {
		p.object.js.state = jsonBad
	}
}

// close ends the payload; cut says that the text ended before its end mark.
func (p *payload) close(cut bool) {
	r := p.r
	switch {
	case p.bad != "":
	case p.good():
		if !r.open {
			p.object.begin()
		}
		r.end(false)
		return
	case cut && r.open:
		r.end(true)
		return
	case cut:
		p.fail(lathe.CodeIncompleteCall)
		r.cut = true
	default:
		p.fail(lathe.CodePayloadParseError)
	}
	r.fail(p.bad, r.toolName(p.object.name), string(p.raw), p.total)
}
