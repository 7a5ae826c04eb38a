package dialect

import "github.com/lathe-run/lathe"

// An attempt is what the parsers share that write arguments themselves: the text of a call, kept
// so that it can be given as text when the call cannot be read. While a call is open,
// max_payload_bytes bounds what is kept: of a longer one only what comes after its fault is given.
type attempt struct {
	reader
	prose prose
	name  string     // of the tool, once it is known
	raw   []byte     // the text; after a failure, or past the limit, its beginning only
	lost  bool       // raw is its beginning only
	total int        // its length
	bad   lathe.Code // why it cannot be read
}

// WritesArguments reports that the argument text is JSON that the parser writes.
func (a *attempt) WritesArguments() bool { return true }

// begin begins an attempt with its first text.
func (a *attempt) begin(text string) {
	a.raw, a.lost, a.total, a.bad, a.name = a.raw[:0], false, 0, "", ""
	a.keep(text)
}

// limit bounds raw.
func (a *attempt) limit() int { return a.opts.MaxPayloadBytes + maxTagBytes }

// full reports whether s is too much for an attempt whose call is not open yet.
func (a *attempt) full(s string) bool { return !a.open && len(a.raw)+len(s) > a.limit() }

// keep counts s as a part of the attempt, and keeps it as far as it is wanted.
func (a *attempt) keep(s string) {
	a.total += len(s)
	switch {
	case a.bad != "" || a.lost:
		s = s[:min(len(s), max(0, maxExcerptBytes-len(a.raw)))]
	case a.open && len(a.raw)+len(s) > a.limit():
		a.lost = true
		a.raw = a.raw[:min(len(a.raw), maxExcerptBytes)]
		s = s[:min(len(s), maxExcerptBytes-len(a.raw))]
	}
	a.raw = append(a.raw, s...)
}

// unkeep takes back the last text that was kept.
func (a *attempt) unkeep(s string) {
	a.total -= len(s)
	if !a.lost {
		a.raw = a.raw[:len(a.raw)-len(s)]
	}
}

// ruin gives the attempt as text; the ParseError follows where it ends.
func (a *attempt) ruin(code lathe.Code) {
	a.unreadable = true
	if !a.lost {
		a.say(lathe.DeltaText, string(a.raw))
	}
	a.raw = a.raw[:min(len(a.raw), maxExcerptBytes)]
	a.bad = code
}

// more reads on in an attempt that cannot be read.
func (a *attempt) more(s string) {
	a.keep(s)
	a.say(lathe.DeltaText, s)
}

// giveUp ends an attempt that cannot be read.
func (a *attempt) giveUp() {
	a.fail(a.bad, a.name, string(a.raw), a.total)
	a.leave()
}

// leave goes back to the text between calls.
func (a *attempt) leave() {
	a.raw = a.raw[:0]
	a.prose.mask.fresh()
}

// blank takes white space after a call, which is text only if text follows; false: it is text.
func (a *attempt) blank(text string) bool {
	if trimSpace(text) != "" || len(a.raw)+len(text) > maxGapBytes {
		return false
	}
	a.raw = append(a.raw, text...)
	return true
}

// spill gives the white space after a call as text.
func (a *attempt) spill() {
	a.prose.text(string(a.raw))
	a.raw = a.raw[:0]
}

// parameters are the names of the parameters that a call has so far.
type parameters struct {
	names []byte // one after another
	ends  []int
}

// maxParameters bounds the parameters of one call.
const maxParameters = 256

func (p *parameters) reset() { p.names, p.ends = p.names[:0], p.ends[:0] }

func (p *parameters) has(name string) bool {
	from := 0
	for _, to := range p.ends {
		if string(p.names[from:to]) == name {
			return true
		}
		from = to
	}
	return false
}

// add takes the next name and returns what stands before its value in the arguments. ok is false
// for a name that cannot be one or that comes twice: which value counts is not guessed.
func (p *parameters) add(name []byte) (prefix string, ok bool) {
	if len(name) == 0 || len(name) > maxNameBytes || len(p.ends) == maxParameters || p.has(string(name)) {
		return "", false
	}
	before := ","
	if len(p.ends) == 0 {
		before = "{"
	}
	p.names = append(p.names, name...)
	p.ends = append(p.ends, len(p.names))
	return memberPrefix(before, name), true
}

// end returns what ends the arguments.
func (p *parameters) end() string {
	if len(p.ends) == 0 {
		return "{}"
	}
	return "}"
}
