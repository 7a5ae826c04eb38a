package dialect

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// An objectForm lists the names of the members of a call's object; preferred names come first.
type objectForm struct {
	names, args, ids []string
	prefix           string // a prefix of the tool's name that is removed
	// keyed: the object has one member, whose key is the tool's name and whose value is the arguments.
	keyed bool
	// closed: an object with any other member, or without arguments, is no call.
	closed bool
	others []string // further members that a closed form allows
	// inner is the name of a member that may contain the call: an object with only the first of names and the first of args. The outer
	// object then has no members but inner, others and ids.
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

// A callObject reads the JSON of one call: an object with the name and the arguments, or, if form is nil, the arguments alone. Once the
// name is known, it emits argument text as it arrives; before that it buffers the text. The forms of the object are
//
//	{"name": "write", "arguments": {"path": "a.txt"}}
//	{"function": {"name": "write", "arguments": {"path": "a.txt"}}}    an inner object
//	{"write": {"path": "a.txt"}}                                       keyed
//
// The JSON scanner stops after each token of the outermost levels; step handles the token, by the place in the object and by the states of
// the scanner before and after it.
type callObject struct {
	r       *reader
	opens   func()      // starts the call; the name is known
	accepts func() bool // reports whether the name may make a call; nil: every name may
	form    *objectForm // nil: the arguments alone
	js      jsonScan    // scanner of the JSON

	name, id []byte

	status    objectStatus // how the object ended
	place     objectPlace
	token     []byte       // the key, name or id being read, with its quotes
	text      []byte       // scratch buffer for the decoded token
	member    objectMember // the member whose value is being read
	ranks     [3]int       // by objectMember: the index of the used member in its list of names; -1: not read
	named     bool         // the name was read
	hasOther  bool         // the object has a member that calls do not have
	callDepth int          // the JSON depth of the object whose members are read: 2 within form.inner, else 1
	inner     bool         // the object has the member form.inner
	earlyArgs []byte       // argument text that precedes the name
}

// plainMembers are members of a call's object that cannot contain arguments.
var plainMembers = []string{"type", "id", "index", "call_id", "tool_call_id"}

// An objectPlace is the part of the object that is read next.
type objectPlace uint8

const (
	beforeObject objectPlace = iota
	betweenMembers
	inKey
	inValue
)

// An objectMember is the meaning of a member.
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
	objectMore    objectStatus = iota // the object is not complete
	objectDone                        // the object is complete and the call is open
	objectBroken                      // invalid JSON, or not a call
	objectForeign                     // the object is text, not an attempt at a call
)

// reset prepares o for the next object, whose JSON may be lax. It retains the name and the id.
func (o *callObject) reset(form *objectForm) {
	*o = callObject{r: o.r, opens: o.opens, accepts: o.accepts, form: form, name: o.name, id: o.id, callDepth: 1,
		token: o.token[:0], text: o.text[:0], earlyArgs: o.earlyArgs[:0], ranks: [3]int{-1, -1, -1}}
	o.js.lax = true
	if form != nil {
		o.js.outer = ownLevels
	}
}

// clear removes the name and the id, before the next call.
func (o *callObject) clear() { o.name, o.id, o.named = o.name[:0], o.id[:0], false }

// ownLevels are the outermost levels of nesting that the parser handles itself: that of the object, and that of the JSON around it.
const ownLevels = 2

// begin starts the call and emits the argument text that preceded its name.
func (o *callObject) begin() {
	o.opens()
	o.r.args(string(o.earlyArgs))
}

// arguments emits the next argument text, or buffers it until the call starts.
func (o *callObject) arguments(part string) {
	if o.r.open {
		o.r.args(part)
	} else {
		o.earlyArgs = append(o.earlyArgs, part...)
	}
}

// read reads the beginning of s and returns the number of bytes read. After the end of the object it returns 0.
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
			o.status = o.endObject()
		}
	}
	return i
}

// readArgs reads arguments without an object around them. If there is no name, it buffers them, and inferName finds the tool.
func (o *callObject) readArgs(s string) int {
	if !o.r.open && len(o.name) > 0 {
		o.begin()
	}
	n := o.js.scan(s)
	o.arguments(s[:n])
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

// inferName opens the call if the arguments fit exactly one tool; else the object is broken.
func (o *callObject) inferName() {
	name := onlyFit(o.r.opts.Tools, o.earlyArgs)
	if name == "" {
		o.status = objectBroken
		return
	}
	o.name = append(o.name[:0], name...)
	o.begin()
}

// step handles part, the bytes for which the state of the JSON scanner went from was to now.
func (o *callObject) step(was, now jsonState, part string) objectStatus {
	if now == jsonBad {
		if o.place == inValue {
			o.value(part)
		}
		return objectBroken
	}
	if o.callDepth > 1 && o.js.depth < o.callDepth {
		return o.leaveInner()
	}
	switch o.place {
	case inKey:
		o.addKey(part)
		if now == jsonColon {
			return o.endKey()
		}
		return objectMore
	case inValue:
		status := o.value(part)
		if status == objectMore && now == jsonAfter && o.js.depth == o.callDepth {
			return o.endValue()
		}
		return status
	default:
		return o.between(was, now, part)
	}
}

// leaveInner handles the end of the object that is the value of form.inner.
func (o *callObject) leaveInner() objectStatus {
	o.callDepth, o.js.outer = 1, ownLevels
	if o.ranks[objectArgs] < 0 || !o.named {
		return objectBroken
	}
	return objectMore
}

// between handles part outside of keys and values: it may be the brace of the object, or the first byte of a key or a value.
func (o *callObject) between(was, now jsonState, part string) objectStatus {
	switch {
	case now == was: // white space
	case o.place == beforeObject:
		o.place = betweenMembers
		if now != jsonFirstKey {
			return objectBroken
		}
	case now == jsonString && o.js.key:
		o.place = inKey
		o.token = append(o.token[:0], part...)
	case was == jsonValue:
		o.place = inValue
		return o.valueStart(part)
	}
	return objectMore
}

// addKey reads the next part of a key. It stores at most maxNameBytes+1 bytes, which show that the key is too long.
func (o *callObject) addKey(part string) {
	if len(o.token) <= maxNameBytes {
		o.token = append(o.token, part[:min(len(part), maxNameBytes+1-len(o.token))]...)
	}
}

// endKey decides which member's value follows the key.
func (o *callObject) endKey() objectStatus {
	o.place, o.member = betweenMembers, objectOther
	o.text = o.text[:0]
	if len(o.token) <= maxNameBytes {
		var err error
		if o.text, err = rawjson.AppendUnquote(o.text, o.token); err != nil {
			return objectBroken
		}
	}
	if !o.form.keyed {
		return o.memberOf(string(o.text))
	}
	if o.named || len(o.text) == 0 {
		return objectBroken
	}
	o.member, o.named = objectArgs, true
	o.name = append(o.name[:0], o.text...)
	return objectMore
}

// memberOf selects the meaning of the member with this key.
func (o *callObject) memberOf(key string) objectStatus {
	if !o.inner && key != "" && key == o.form.inner {
		o.member = objectInner
		return objectMore
	}
	isInside := o.callDepth > 1
	for i, keys := range [...][]string{o.form.names, o.form.args, o.form.ids} {
		member, rank := objectMember(i), slices.Index(keys, key)
		if rank < 0 {
			continue
		}
		isMisplaced := o.inner && isInside == (member == objectID) // the id is outside of the inner object, the call inside
		if isMisplaced || isInside && rank > 0 {
			return objectBroken
		}
		return o.choose(member, rank)
	}
	switch {
	case o.callDepth == 1 && slices.Contains(o.form.others, key):
		return objectMore
	case o.inner:
		return objectBroken
	case o.form.closed && !o.r.open:
		return objectForeign
	}
	o.hasOther = o.hasOther || !slices.Contains(plainMembers, key)
	return objectMore
}

// enterInner begins the object that is the value of the member form.inner.
func (o *callObject) enterInner() objectStatus {
	if o.hasOther || o.ranks[objectName] >= 0 || o.ranks[objectArgs] >= 0 {
		return objectBroken
	}
	o.inner, o.place = true, betweenMembers
	o.callDepth, o.js.outer = 2, ownLevels+1
	return objectMore
}

// choose selects the member for the name or the arguments. It ignores a less preferred name after a preferred one. A duplicate member, or
// a preferred one that comes after the arguments or the call began, makes the object unreadable.
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

// valueStart handles the first byte of a member's value.
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
		if part == "{" {
			return o.enterInner()
		}
		o.member, o.hasOther = objectOther, true // a non-object value is an unknown member
	}
	return o.value(part)
}

// value handles the next part of a member's value.
func (o *callObject) value(part string) objectStatus {
	switch o.member {
	case objectArgs:
		o.arguments(part)
	case objectName, objectID:
		if len(o.token)+len(part) > maxNameBytes {
			return objectBroken
		}
		o.token = append(o.token, part...)
	}
	return objectMore
}

// endValue handles the end of a member's value.
func (o *callObject) endValue() objectStatus {
	o.place = betweenMembers
	if o.member != objectName && o.member != objectID {
		return objectMore
	}
	var err error
	if o.text, err = rawjson.AppendUnquote(o.text[:0], o.token); err != nil {
		return objectBroken
	}
	if o.member == objectID {
		o.id = append(o.id[:0], bytes.TrimSpace(o.text)...)
		return objectMore
	}
	o.name = append(o.name[:0], bytes.TrimPrefix(o.text, []byte(o.form.prefix))...)
	return o.nameRead()
}

// nameRead handles the end of the name: it starts the call if the arguments have been read.
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

// endObject returns the status of a complete object, and opens the call of one without arguments.
func (o *callObject) endObject() objectStatus {
	switch {
	case o.r.open:
		return objectDone
	case o.form.closed:
		return objectForeign
	case !o.named || o.hasOther: // an unknown member may contain the arguments: a call without them would be another call
		return objectBroken
	}
	o.begin()
	return objectDone
}
