package uistream

import (
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Limits bound a request. A zero field has the default in its comment; sizes are
// characters of text, and of JSON as it was sent.
type Limits struct {
	MaxMessages   int // 1 000 messages
	MaxParts      int // 1 000 parts of one message
	MaxID         int // 128 of the id of a message, a call or an approval
	MaxToolName   int // 64
	MaxArgs       int // 8 192 of the arguments of a call
	MaxResult     int // 32 768 of the result of a call
	MaxText       int // 1 000 000 of a text of a user
	MaxAnswerText int // 200 000 of a text of other roles
	MaxStateKey   int // 512
	MaxFileBytes  int // 10 MiB of the URL of a file, including data URLs
}

// DefaultLimits returns the default limits of requests.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		p *int
		v int
	}{{&l.MaxMessages, 1_000}, {&l.MaxParts, 1_000}, {&l.MaxID, 128}, {&l.MaxToolName, 64}, {&l.MaxArgs, 8_192}, {&l.MaxResult, 32_768},
		{&l.MaxText, 1_000_000}, {&l.MaxAnswerText, 200_000}, {&l.MaxStateKey, 512}, {&l.MaxFileBytes, 10 << 20}} {
		if *d.p <= 0 {
			*d.p = d.v
		}
	}
	return l
}

// A RequestError is an error in a request. Its text contains nothing of the request's content.
type RequestError struct {
	Param   string // where, such as messages[2].parts[0].input
	Limit   string // the name of the exceeded limit, or empty
	Message string // a whole sentence
}

// Error returns the place and the message.
func (e *RequestError) Error() string { return e.Param + ": " + e.Message }

// within refuses the text of a member that is longer than a limit.
func within(o wire.Object, name, s, limit string, most int) {
	if len(s) <= most {
		return
	}
	if n := utf8.RuneCountInString(s); n > most {
		o.FailCode(name, limit, "It has %d characters; %s is %d.", n, limit, most)
	}
}

// atMost refuses a member that is an array of more elements than a limit.
func atMost(o wire.Object, name, elements, limit string, most int) {
	n := 0
	for range rawjson.Elements(o.Get(name)) {
		if n++; n > most {
			o.FailCode(name, limit, "There are more %s than %s, which is %d.", elements, limit, most)
		}
	}
}

// text returns the text of a member, which may be absent, and refuses one that is longer than a limit.
func text(o wire.Object, name, limit string, most int) string {
	s := o.OptString(name)
	within(o, name, s, limit, most)
	return s
}

// name is text for an id or a name that may be empty.
func (l *Limits) name(o wire.Object, name string) string { return text(o, name, "max_id", l.MaxID) }

// identifier is name for an id that must not be empty.
func (l *Limits) identifier(o wire.Object, name string) string {
	id := l.name(o, name)
	if id == "" {
		o.Fail(name, "It is required: 1 to %d characters.", l.MaxID)
	}
	return id
}
