package uistream

import (
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Limits bound a request. A zero field has the default in its comment. Sizes are numbers of characters, of text or of JSON as sent.
type Limits struct {
	MaxMessages   int // 1,000 messages
	MaxParts      int // 1,000 parts of one message
	MaxID         int // 128 characters of the id of a message, a call or an approval
	MaxToolName   int // 64
	MaxArgs       int // 8,192 characters of the arguments of a call
	MaxResult     int // 32,768 characters of the result of a call
	MaxText       int // 1,000,000 characters of a text of the role user
	MaxAnswerText int // 200,000 characters of a text of other roles
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

// A RequestError is an error in a request. Its text does not quote the content of the request.
type RequestError struct {
	Param   string // path of the member at fault, such as messages[2].parts[0].input
	Limit   string // name of the exceeded limit; "": no limit was exceeded
	Message string // a whole sentence
}

// Error returns the path and the message.
func (e *RequestError) Error() string { return e.Param + ": " + e.Message }

// within fails if s, the text of member name, has more than most characters.
func within(o wire.Object, name, s, limit string, most int) {
	if len(s) <= most {
		return
	}
	if n := utf8.RuneCountInString(s); n > most {
		o.FailCode(name, limit, "It has %d characters; %s is %d.", n, limit, most)
	}
}

// atMost fails if a member is an array with more than most elements.
func atMost(o wire.Object, name, elements, limit string, most int) {
	n := 0
	for range rawjson.Elements(o.Get(name)) {
		if n++; n > most {
			o.FailCode(name, limit, "There are more %s than %s, which is %d.", elements, limit, most)
		}
	}
}

// text returns the text of a member, or "" if it is absent. It fails if the text has more than most characters.
func text(o wire.Object, name, limit string, most int) string {
	s := o.OptString(name)
	within(o, name, s, limit, most)
	return s
}

// name returns the text of a member that is an id or a name and may be empty.
func (l *Limits) name(o wire.Object, name string) string { return text(o, name, "max_id", l.MaxID) }

// identifier returns the text of a member that is an id. It fails if the id is empty.
func (l *Limits) identifier(o wire.Object, name string) string {
	id := l.name(o, name)
	if id == "" {
		o.Fail(name, "It is required: 1 to %d characters.", l.MaxID)
	}
	return id
}
