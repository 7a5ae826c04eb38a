package dialect

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

const (
	maxKeyBytes  = 64  // of the payload's own keys; longer ones are passed over
	maxNameBytes = 256 // of a tool's name, quotes included
)

// A payload reads a call that is one JSON object with the tool's name and its arguments, such as
// {"name":…,"arguments":{…}}. The argument text is said as it is read, from the moment that the
// name is known; before that it is buffered.
//
// The text of the object is kept until it turns out to be good, so that it can be given as text
// when it is not. nameKeys and argKeys are the members' names, the better one first; a member
// that comes twice, or a better one that comes too late, makes the object unreadable.
type payload struct {
	r        *reader
	limit    int // on its length
	nameKeys []string
	argKeys  []string
	prefix   string // that may stand before the tool's name and is no part of it

	js       jsonScan
	begun    bool   // the opening brace was read
	token    []byte // the key or name being read, with its quotes
	inKey    bool
	inValue  bool
	member   payloadMember // of the value being read
	nameRank int           // of the name that was read, -1: none
	argRank  int
	foreign  bool // there is a member that is none of a call's
	name     []byte
	held     []byte // argument text that came before the name

	raw   []byte     // the text so far; after a failure its beginning only
	total int        // its length
	bad   lathe.Code // why it cannot be read
}

type payloadMember uint8

const (
	memberOther payloadMember = iota
	memberName
	memberArgs
)

// reset makes p ready for the next object.
func (p *payload) reset() {
	p.js = jsonScan{outer: ownLevels, lax: true}
	p.begun, p.inKey, p.inValue, p.foreign = false, false, false, false
	p.nameRank, p.argRank = -1, -1
	p.token, p.name, p.held, p.raw = p.token[:0], p.name[:0], p.held[:0], p.raw[:0]
	p.total, p.bad = 0, ""
}

// inString reports whether the next byte belongs to a JSON string: a mark there is data.
func (p *payload) inString() bool { return p.js.inString() }

// done reports whether the object is whole.
func (p *payload) done() bool { return p.bad == "" && p.js.state == jsonDone }

// good reports whether the object is whole and a call.
func (p *payload) good() bool {
	return p.done() && len(p.name) > 0 && (p.r.open || !p.foreign)
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
				p.js.outer = 0
			}
		}
	}
	if p.bad == "" {
		p.read(s)
		return
	}
	if p.bad == lathe.CodePayloadTooLarge {
		p.js.scan(s) // on, to know which marks are data
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
	for s != "" {
		was := p.js.state
		if was == jsonDone {
			return strings.TrimLeft(s, " \t\r\n") == ""
		}
		n := p.js.scan(s)
		part := s[:n]
		s = s[n:]
		if !p.step(was, p.js.state, part) {
			return false
		}
	}
	return true
}

// step takes what the scan read when its state went from was to now.
func (p *payload) step(was, now jsonState, part string) bool {
	switch {
	case now == jsonBad:
		if p.inValue {
			p.value(part, false)
		}
		return false
	case p.inKey:
		return p.key(part, now == jsonColon)
	case p.inValue:
		return p.value(part, now == jsonAfter && p.js.depth == 1)
	case now == was: // white space
		return true
	case !p.begun:
		p.begun = true
		return now == jsonFirstKey
	case now == jsonString && p.js.key:
		p.inKey = true
		p.token = append(p.token[:0], part...)
		return true
	case was == jsonValue:
		p.inValue = true
		return p.valueStart(part) && p.value(part, false)
	}
	return true
}

// key reads the next part of an object's key. At the end of the key it decides which member's value follows.
func (p *payload) key(part string, end bool) bool {
	if len(p.token) <= maxKeyBytes {
		p.token = append(p.token, part[:min(len(part), maxKeyBytes+1-len(p.token))]...)
	}
	if !end {
		return true
	}
	p.inKey, p.member = false, memberOther
	if len(p.token) > maxKeyBytes {
		p.foreign = true
		return true
	}
	key, err := rawjson.AppendUnquote(nil, p.token)
	if err != nil {
		return false
	}
	if i := slices.Index(p.nameKeys, string(key)); i >= 0 {
		return p.choose(memberName, i, &p.nameRank)
	}
	if i := slices.Index(p.argKeys, string(key)); i >= 0 {
		return p.choose(memberArgs, i, &p.argRank)
	}
	p.foreign = p.foreign || place(plainMembers, key) < 0
	return true
}

func (p *payload) choose(m payloadMember, rank int, have *int) bool {
	switch {
	case *have >= 0 && rank > *have: // a worse one is passed over
		return true
	case *have == rank, *have >= 0 && (m == memberArgs || p.r.open):
		return false
	}
	*have, p.member = rank, m
	return true
}

func (p *payload) valueStart(part string) bool {
	switch p.member {
	case memberName:
		p.token = p.token[:0]
		return part == `"`
	case memberArgs:
		if len(p.name) > 0 {
			p.begin()
		}
	}
	return true
}

func (p *payload) value(part string, end bool) bool {
	if end {
		p.inValue = false
	}
	switch p.member {
	case memberArgs:
		if p.r.open {
			p.r.args(part)
		} else {
			p.held = append(p.held, part...)
		}
	case memberName:
		if len(p.token)+len(part) > maxNameBytes {
			return false
		}
		p.token = append(p.token, part...)
		if end {
			var err error
			p.name, err = rawjson.AppendUnquote(p.name[:0], p.token)
			if err != nil {
				return false
			}
			if p.name = bytes.TrimPrefix(p.name, []byte(p.prefix)); len(p.name) == 0 {
				return false
			}
			if p.argRank >= 0 {
				p.begin()
			}
		}
	}
	return true
}

// begin opens the call.
func (p *payload) begin() {
	p.r.start("", p.r.toolName(p.name), false)
	p.r.args(string(p.held))
}

// fail turns what was read into text. The ParseError follows when the payload ends.
func (p *payload) fail(code lathe.Code) {
	p.bad, p.r.unreadable = code, true
	p.r.emit(lathe.DeltaText, string(p.raw))
	p.raw = p.raw[:min(len(p.raw), maxExcerptBytes)]
	if code == lathe.CodePayloadParseError {
		p.js.state = jsonBad
	}
}

// close ends the payload; cut says that the text ended before its end mark.
func (p *payload) close(cut bool) {
	r := p.r
	switch {
	case p.bad != "":
	case p.good():
		if !r.open {
			p.begin()
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
	r.fail(p.bad, r.toolName(p.name), string(p.raw), p.total)
}
