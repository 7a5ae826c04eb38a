package dialect

import (
	"bytes"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// An objectForm names the members of a call's object, the better names first.
type objectForm struct {
	names, args, ids []string
	prefix           string // that may stand before the tool's name and is no part of it
	// keyed says that the only member's key is the tool's name and its value the arguments.
	keyed bool
	// closed says that an object with any other member is no call, and neither is one without arguments.
	closed bool
	others []string // further members of a closed form
	// inner is a member that may hold the call: an object with the first of the names and of the
	// arguments, and nothing else. Beside it stand others and ids only.
	inner string
}

var (
	plainObject = &objectForm{names: []string{"name"}, args: []string{"arguments", "parameters"}, ids: []string{"id"},
		others: []string{"type"}, inner: "function"}
	plainLlama   = &objectForm{names: []string{"name"}, args: []string{"parameters", "arguments"}, ids: []string{"id"}}
	cohereObject = &objectForm{names: []string{"tool_name", "name"}, args: []string{"parameters", "arguments"}, ids: []string{"tool_call_id"}}
	keyedObject  = &objectForm{keyed: true}
	closedObject = &objectForm{names: []string{"name"}, args: []string{"parameters", "arguments"}, ids: []string{"id"},
		closed: true, others: []string{"type"}}
	plainPayload   = &objectForm{names: []string{"name"}, args: []string{"arguments", "parameters"}}
	harmonyPayload = &objectForm{names: []string{"tool", "name"}, args: []string{"arguments", "args"}, prefix: functionsPrefix}
)

// A callObject reads one call's JSON: an object that holds the name and the arguments, or, where
// form is nil, the arguments alone. The arguments are said as they come, from the moment that the
// name is known; before that they are buffered.
type callObject struct {
	r       *reader
	opens   func()      // starts the call, whose name is known
	accepts func() bool // reports whether the name may make a call; nil: each may
	form    *objectForm
	js      jsonScan

	name, id []byte

	status  objectStatus
	begun   bool   // the opening brace was read
	token   []byte // the key, name or id being read, with its quotes
	key     []byte // scratch
	inKey   bool
	inValue bool
	member  objectMember // of the value being read
	ranks   [3]int       // of the members that were read, by objectMember; -1: none
	named   bool
	foreign bool   // there is a member that is none of a call's
	base    int    // the level of the object whose members are read
	inner   bool   // there is a member that holds the call
	held    []byte // argument text that came before the name
}

// plainMembers are members of a call's object that say nothing of its arguments.
var plainMembers = []string{"type", "id", "index", "call_id", "tool_call_id"}

type objectMember uint8

const (
	objectName objectMember = iota
	objectArgs
	objectID
	objectOther
	objectInner
)

type objectStatus uint8

const (
	objectMore    objectStatus = iota
	objectDone                 // it is whole, and the call is open
	objectBroken               // it is no JSON, or no call
	objectForeign              // it is not meant as a call
)

// reset makes o ready for the next object. The name and the id stay.
func (o *callObject) reset(form *objectForm, lax bool) {
	*o = callObject{r: o.r, opens: o.opens, accepts: o.accepts, form: form, name: o.name, id: o.id,
		token: o.token[:0], key: o.key[:0], held: o.held[:0], ranks: [3]int{-1, -1, -1}}
	o.js.lax = lax
	if o.base = 1; form != nil {
		o.js.outer = ownLevels
	}
}

// ownLevels are the outermost levels of JSON that a caller follows: the object's own, and what
// stands around it.
const ownLevels = 2

// begin opens the call, with the arguments that came before its name.
func (o *callObject) begin() {
	o.opens()
	o.r.args(string(o.held))
}

// read reads the front of s and returns how much; after the end of the object it reads nothing.
func (o *callObject) read(s string) int {
	if o.form == nil {
		return o.readArgs(s)
	}
	i := 0
	for i < len(s) && o.status == objectMore {
		was := o.js.state
		n := o.js.scan(s[i:])
		part := s[i : i+n]
		i += n
		if status := o.step(was, o.js.state, part); status != objectMore {
			o.status = status
		} else if o.js.state == jsonDone {
			o.status = o.whole()
		}
	}
	return i
}

// readArgs reads on in arguments that stand alone. Without a name they are buffered, to find it.
func (o *callObject) readArgs(s string) int {
	if !o.r.open && len(o.name) > 0 {
		o.begin()
	}
	n := o.js.scan(s)
	if o.r.open {
		o.r.args(s[:n])
	} else {
		o.held = append(o.held, s[:n]...)
	}
	switch o.js.state {
	case jsonDone:
		o.status = objectDone
		if !o.r.open {
			o.inferName()
		}
	case jsonBad:
		o.status = objectBroken
	}
	return n
}

// inferName opens the call if one tool alone takes the arguments.
func (o *callObject) inferName() {
	name := onlyFit(o.r.opts.Tools, o.held)
	if name == "" {
		o.status = objectBroken
		return
	}
	o.name = append(o.name[:0], name...)
	o.begin()
}

// step takes what the scan read when its state went from was to now.
func (o *callObject) step(was, now jsonState, part string) objectStatus {
	switch {
	case now == jsonBad:
		if o.inValue {
			o.value(part, false)
		}
		return objectBroken
	case o.js.depth < o.base && o.base > 1: // the member that holds the call has ended
		o.base, o.js.outer = 1, ownLevels
		if o.ranks[objectArgs] < 0 || !o.named {
			return objectBroken
		}
	case o.inKey:
		return o.endKey(part, now == jsonColon)
	case o.inValue:
		return o.value(part, now == jsonAfter && o.js.depth == o.base)
	case now == was: // white space
	case !o.begun:
		if o.begun = true; now != jsonFirstKey {
			return objectBroken
		}
	case now == jsonString && o.js.key:
		o.inKey = true
		o.token = append(o.token[:0], part...)
	case was == jsonValue:
		o.inValue = true
		return o.valueStart(part)
	}
	return objectMore
}

// endKey reads the next part of an object's key. At the end of the key it decides which member's value follows.
func (o *callObject) endKey(part string, end bool) objectStatus {
	if len(o.token) <= maxNameBytes {
		o.token = append(o.token, part[:min(len(part), maxNameBytes+1-len(o.token))]...)
	}
	if !end {
		return objectMore
	}
	o.inKey, o.member = false, objectOther
	var err error
	o.key = o.key[:0]
	if len(o.token) <= maxNameBytes {
		if o.key, err = rawjson.AppendUnquote(o.key, o.token); err != nil {
			return objectBroken
		}
	}
	if o.form.keyed {
		if o.named || len(o.key) == 0 {
			return objectBroken
		}
		o.member = objectArgs
		o.named = true
		o.name = append(o.name[:0], o.key...)
		return objectMore
	}
	if o.inner || o.form.inner != "" && string(o.key) == o.form.inner {
		return o.innerKey()
	}
	for m, names := range [...][]string{o.form.names, o.form.args, o.form.ids} {
		if rank := place(names, o.key); rank >= 0 {
			return o.choose(objectMember(m), rank)
		}
	}
	if o.form.closed && !o.r.open && place(o.form.others, o.key) < 0 {
		return objectForeign
	}
	o.foreign = o.foreign || place(plainMembers, o.key) < 0
	return objectMore
}

// innerKey takes the key of an object with a member that holds the call: that one, one beside it,
// or one inside of it.
func (o *callObject) innerKey() objectStatus {
	switch key := string(o.key); {
	case !o.inner:
		o.member = objectInner
	case o.base > 1 && key == o.form.names[0]:
		return o.choose(objectName, 0)
	case o.base > 1 && key == o.form.args[0]:
		return o.choose(objectArgs, 0)
	case o.base > 1, place(o.form.others, o.key) < 0 && place(o.form.ids, o.key) < 0:
		return objectBroken
	case place(o.form.ids, o.key) >= 0:
		return o.choose(objectID, place(o.form.ids, o.key))
	}
	return objectMore
}

// enter begins the member that holds the call; where it is no object, it is one that says nothing.
func (o *callObject) enter(object bool) objectStatus {
	if !object {
		o.member, o.foreign = objectOther, true
		return objectMore
	}
	if o.foreign || o.ranks[objectName] >= 0 || o.ranks[objectArgs] >= 0 {
		return objectBroken
	}
	o.inner, o.inValue = true, false
	o.base, o.js.outer = 2, ownLevels+1
	return objectMore
}

// place returns where in names key stands, -1: nowhere.
func place(names []string, key []byte) int {
	for i, name := range names {
		if name == string(key) {
			return i
		}
	}
	return -1
}

// choose takes a member. A worse name of one that was read is passed over; one that comes twice,
// or a better one that comes too late, makes the object unreadable.
func (o *callObject) choose(m objectMember, rank int) objectStatus {
	switch have := o.ranks[m]; {
	case have >= 0 && rank > have:
		return objectMore
	case have == rank, have >= 0 && (m == objectArgs || o.r.open):
		return objectBroken
	}
	o.ranks[m], o.member = rank, m
	return objectMore
}

func (o *callObject) valueStart(part string) objectStatus {
	switch o.member {
	case objectName, objectID:
		o.token = o.token[:0]
		if part != `"` {
			if o.member == objectName {
				return objectBroken
			}
			o.member = objectOther
		}
	case objectArgs:
		if o.named {
			o.begin()
		}
	case objectInner:
		return o.enter(part == "{")
	}
	return o.value(part, false)
}

func (o *callObject) value(part string, end bool) objectStatus {
	if end {
		o.inValue = false
	}
	switch o.member {
	case objectArgs:
		if o.r.open {
			o.r.args(part)
		} else {
			o.held = append(o.held, part...)
		}
		return objectMore
	case objectOther, objectInner:
		return objectMore
	}
	if len(o.token)+len(part) > maxNameBytes {
		return objectBroken
	}
	o.token = append(o.token, part...)
	if !end {
		return objectMore
	}
	var err error
	if o.key, err = rawjson.AppendUnquote(o.key[:0], o.token); err != nil {
		return objectBroken
	}
	if o.member == objectID {
		o.id = append(o.id[:0], bytes.TrimSpace(o.key)...)
		return objectMore
	}
	o.name = append(o.name[:0], bytes.TrimPrefix(o.key, []byte(o.form.prefix))...)
	return o.nameRead()
}

func (o *callObject) nameRead() objectStatus {
	switch {
	case len(o.name) == 0:
		return objectBroken
	case o.accepts != nil && !o.accepts():
		return objectForeign
	}
	o.named = true
	if o.ranks[objectArgs] >= 0 {
		o.begin()
	}
	return objectMore
}

// whole says what a whole object is.
func (o *callObject) whole() objectStatus {
	switch {
	case !o.named:
		if o.form.closed {
			return objectForeign
		}
		return objectBroken
	case !o.r.open:
		switch {
		case o.form.closed:
			return objectForeign
		case o.foreign: // it may hold the arguments: a call without them would be another one
			return objectBroken
		}
		o.begin()
	}
	return objectDone
}
