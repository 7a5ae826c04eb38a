package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// This file executes scripted tools that read and change the database of a scenario. For example, with the database
// {"orders":{"A1":{"total":20}}}, a call with the argument order "A1" of a tool with these steps sets the total to 15 and returns it:
//
//	- subtract: /orders/{order}/total
//	  value: 5
//	- get: /orders/{order}/total

// A stepKind is the operation of one step of a scripted tool: it reads, checks or changes a value in the database of the scenario.
type stepKind string

// Kinds of step, by their key in a suite.
const (
	stepGet      stepKind = "get"      // the result is the value at Pointer, which must exist
	stepList     stepKind = "list"     // the result is an array of the elements at Pointer whose fields match Where
	stepCheck    stepKind = "check"    // the call fails unless the value at Pointer satisfies the condition
	stepSet      stepKind = "set"      // sets the value at Pointer to Value
	stepAppend   stepKind = "append"   // appends Value to the array at Pointer, which is created if it does not exist
	stepAdd      stepKind = "add"      // adds Value to the number at Pointer
	stepSubtract stepKind = "subtract" // subtracts Value from the number at Pointer
	stepDelete   stepKind = "delete"   // removes the value at Pointer
	stepReturn   stepKind = "return"   // the result is Value
)

// stepKinds are all kinds of step, in the order of the documentation.
var stepKinds = []stepKind{stepGet, stepList, stepCheck, stepSet, stepAppend, stepAdd, stepSubtract, stepDelete, stepReturn}

// A step is one operation of a call on the database of its scenario. In Pointer, Value, Where and the condition, {name} is replaced by the
// argument or the bound value of that name, and {name/a/b} by a value inside it. A text that consists only of such a placeholder is
// replaced by the value itself, whatever its type. In a value, an object whose only key is from is replaced by a copy of the value in the
// database at that pointer.
type step struct {
	Kind    stepKind        `json:"kind"`
	Pointer string          `json:"pointer,omitempty"` // RFC 6901, relative to the root of the database
	Value   json.RawMessage `json:"value,omitempty"`
	Where   json.RawMessage `json:"where,omitempty"` // an object; fields whose value is an argument that the call lacks are ignored
	// As binds the value that get returns to a name, for later steps.
	As string `json:"as,omitempty"`
	// Condition and Operand belong to a check.
	Condition string          `json:"condition,omitempty"`
	Operand   json.RawMessage `json:"operand,omitempty"`
	// Else is the error text for a missing value or a condition that is false.
	Else string `json:"else,omitempty"`
}

// Limits of a scenario with a database.
const (
	maxDatabase  = 256 << 10 // bytes of the JSON
	maxSteps     = 32        // steps of a tool
	maxGoldCalls = 100       // gold calls of a scenario
	maxGrown     = 4 << 20   // bytes of a database, and of the values that one call adds to it
)

// conditions are the conditions of a check: the value at the pointer equals the operand, is one of its elements, contains all of it
// (elements of an array, keys of an object), is a number at least or at most the operand, or does not exist.
var conditions = []string{"equals", "in", "has", "at_least", "at_most", "missing"}

// A database is the state of one run of a scenario: a JSON object, stored as the draft of a workspace. A call changes it completely or not
// at all. It may be used from several goroutines at once.
type database struct {
	mu sync.Mutex
	ws *builtin.Workspace
}

// draft is the pointer to the database in its workspace.
const draft = "/draft"

func newDatabase(raw json.RawMessage) (*database, error) {
	ws, err := builtin.NewWorkspace(&builtin.WorkspaceOptions{Draft: raw})
	return &database{ws: ws}, err
}

// contents returns the whole database.
func contents(ws *builtin.Workspace) (json.RawMessage, error) {
	all, err := ws.Snapshot()
	if err != nil {
		return nil, err
	}
	raw, _ := valueAt(all, draft)
	return slices.Clone(raw), nil
}

// call executes the steps of one call. If the call is refused, it returns a [tool.Failure] and the database does not change.
func (d *database) call(steps []step, args json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, err := contents(d.ws)
	if err != nil {
		return nil, err
	}
	c := &stepCall{size: len(before), bound: map[string]json.RawMessage{}, result: json.RawMessage(`{"done":true}`)}
	if c.work, err = newDatabase(before); err != nil {
		return nil, err
	}
	for name, raw := range rawjson.Members(args) {
		c.bound[rawjson.Text(name)] = raw
	}
	for i := range steps {
		if err := c.step(&steps[i]); err != nil {
			return nil, err
		}
	}
	if len(c.ops) > 0 {
		if _, err := d.ws.PatchDraft(c.ops, ""); err != nil {
			return nil, err
		}
	}
	return c.result, nil
}

// A stepCall is the state of one call: the bound values, a copy of the database that later steps read, and the changes made to it.
type stepCall struct {
	bound  map[string]json.RawMessage
	work   *database
	now    json.RawMessage // contents of work; nil: not read since the last change
	ops    []builtin.PatchOp
	result json.RawMessage
	size   int // bytes of the database before the call and of all values that were copied
}

// copied counts a copied value. It returns an error above maxGrown: steps that repeatedly copy their own copies could otherwise grow a
// database without limit.
func (c *stepCall) copied(raw json.RawMessage) error {
	if c.size += len(raw); c.size > maxGrown {
		return tool.Fail(lathe.CodeInvalidArguments, "the database would have more than %d bytes", maxGrown)
	}
	return nil
}

// refuse returns a failure with the text Else of the step, or with the default text.
func (s *step) refuse(format string, args ...any) error {
	return tool.Fail(lathe.CodeInvalidArguments, "%s", cmp.Or(s.Else, fmt.Sprintf(format, args...)))
}

// step executes one step: it sets the result, checks a value, or changes the copy.
func (c *stepCall) step(s *step) error {
	if s.Kind == stepReturn {
		v, _, err := c.value(s.Value)
		c.result = v
		return err
	}
	at, err := c.pointer(s.Pointer)
	if err != nil {
		return err
	}
	old, found, err := c.read(at)
	if err != nil {
		return err
	}
	switch s.Kind {
	case stepCheck:
		return c.check(s, old, found)
	case stepGet, stepList, stepDelete:
		if !found {
			return s.refuse("there is nothing at %s", at)
		}
	}
	switch s.Kind {
	case stepGet:
		c.result = old
		if s.As != "" {
			c.bound[s.As] = old
		}
		return nil
	case stepList:
		c.result, err = c.list(old, s.Where)
		return err
	case stepDelete:
		return c.patch(s, builtin.PatchOp{Op: "delete", Path: draft + at})
	default:
		return c.change(s, at, old)
	}
}

// change sets, appends or adds the value of a step at a pointer. old is the value there; nil: none.
func (c *stepCall) change(s *step, at string, old json.RawMessage) error {
	v, given, err := c.value(s.Value)
	if err != nil || !given { // the value is an optional argument that the call lacks
		return err
	}
	op := builtin.PatchOp{Op: "set", Path: draft + at, Value: v}
	switch s.Kind {
	case stepAdd, stepSubtract:
		if op.Value, err = calculate(s.Kind, old, v); err != nil {
			return s.refuse("there is no number at %s", at)
		}
	case stepAppend:
		op.Op = "append"
	}
	return c.patch(s, op)
}

// patch applies a change to the copy, and records it for the end of the call.
func (c *stepCall) patch(s *step, op builtin.PatchOp) error {
	if _, err := c.work.ws.PatchDraft([]builtin.PatchOp{op}, ""); err != nil {
		return s.refuse("%s", err)
	}
	c.ops, c.now = append(c.ops, op), nil
	return nil
}

// read returns the value at a pointer of the copy.
func (c *stepCall) read(at string) (raw json.RawMessage, found bool, err error) {
	if c.now == nil {
		if c.now, err = contents(c.work.ws); err != nil {
			return nil, false, err
		}
	}
	raw, found = valueAt(c.now, at)
	return raw, found, nil
}

// check evaluates the condition of a step for the value old.
func (c *stepCall) check(s *step, old json.RawMessage, found bool) error {
	if s.Condition == "missing" {
		if found {
			return s.refuse("there is a value at %s", s.Pointer)
		}
		return nil
	}
	want, given, err := c.value(s.Operand)
	if err != nil || !given {
		return err
	}
	ok := false
	switch s.Condition {
	case "equals":
		ok = found && rawjson.Equal(old, want)
	case "in":
		ok = found && slices.ContainsFunc(elements(want), func(e json.RawMessage) bool { return rawjson.Equal(old, e) })
	case "has":
		ok = found && has(old, want)
	case "at_least":
		ok = found && inOrder(want, old)
	case "at_most":
		ok = found && inOrder(old, want)
	}
	if !ok {
		return s.refuse("the value at %s does not allow this", s.Pointer)
	}
	return nil
}

// list returns the elements of an array, or the values of an object in key order, whose fields match where.
func (c *stepCall) list(of, where json.RawMessage) (json.RawMessage, error) {
	out := elements(of)
	for name, raw := range rawjson.Members(where) {
		want, given, err := c.value(raw)
		if err != nil {
			return nil, err
		}
		if given {
			out = slices.DeleteFunc(out, func(e json.RawMessage) bool { return !rawjson.Equal(rawjson.At(e, rawjson.Text(name)), want) })
		}
	}
	return joined('[', out, ']'), nil
}

// joined returns an array or an object with these elements or members.
func joined(open byte, parts []json.RawMessage, end byte) json.RawMessage {
	out := []byte{open}
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	return append(out, end)
}

// elements returns the elements of an array, or the values of an object in key order.
func elements(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	switch {
	case len(raw) == 0:
	case raw[0] == '[':
		for e := range rawjson.Elements(raw) {
			out = append(out, e)
		}
	case raw[0] == '{':
		values := map[string]json.RawMessage{}
		for k, v := range rawjson.Members(raw) {
			values[rawjson.Text(k)] = v
		}
		for _, v := range text.ByName(values) {
			out = append(out, v)
		}
	}
	return out
}

// has reports whether an array contains all elements of want, or an object has all of them as keys. A want that is not an array counts as
// an array of one element.
func has(raw, want json.RawMessage) bool {
	wanted := []json.RawMessage{want}
	if rawjson.Kind(want) == '[' {
		wanted = elements(want)
	}
	return !slices.ContainsFunc(wanted, func(w json.RawMessage) bool {
		if rawjson.Kind(raw) == '[' {
			return !slices.ContainsFunc(elements(raw), func(e json.RawMessage) bool { return rawjson.Equal(e, w) })
		}
		return rawjson.Kind(w) != '"' || rawjson.At(raw, rawjson.Text(w)) == nil
	})
}

// maxNumber is the largest length of the text of a number for calculations, in bytes.
const maxNumber = 64

// readNumber parses a JSON number without exponent into a number. It reports whether that succeeded.
func readNumber(into *big.Rat, raw json.RawMessage) bool {
	if len(raw) == 0 || len(raw) > maxNumber || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || bytes.ContainsAny(raw, "eE") {
		return false
	}
	_, ok := into.SetString(string(raw))
	return ok
}

// inOrder reports whether both values are numbers, and a is not above b.
func inOrder(a, b json.RawMessage) bool {
	var x, y big.Rat
	return readNumber(&x, a) && readNumber(&y, b) && x.Cmp(&y) <= 0
}

// calculate adds or subtracts two numbers exactly.
func calculate(kind stepKind, a, b json.RawMessage) (json.RawMessage, error) {
	var x, y big.Rat
	if !readNumber(&x, a) || !readNumber(&y, b) {
		return nil, strconv.ErrSyntax
	}
	if kind == stepSubtract {
		y.Neg(&y)
	}
	x.Add(&x, &y)
	digits, _ := x.FloatPrec() // decimal fractions have finitely many digits
	return json.RawMessage(x.FloatString(digits)), nil
}

// placeholder matches {name} and {name/a/b}.
var placeholder = lazy.Regexp(`\{([A-Za-z_][A-Za-z0-9_]*)((?:/[^{}/]+)*)\}`)

// lookup returns the value for a match of placeholder; ok is false if none exists.
func (c *stepCall) lookup(match []string) (json.RawMessage, bool) {
	raw, ok := c.bound[match[1]]
	if !ok {
		return nil, false
	}
	return valueAt(raw, match[2])
}

// fill replaces the placeholders in a text by the texts of scalar values, after escape.
func (c *stepCall) fill(text string, escape func(string) string) (string, error) {
	var problem error
	out := placeholder().ReplaceAllStringFunc(text, func(p string) string {
		raw, ok := c.lookup(placeholder().FindStringSubmatch(p))
		if !ok || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n' {
			problem = tool.Fail(lathe.CodeInvalidArguments, "%s wants a text or a number", strings.Trim(p, "{}"))
			return ""
		}
		if raw[0] == '"' {
			return escape(rawjson.Text(raw))
		}
		return escape(string(raw))
	})
	return out, problem
}

// pointer replaces the placeholders in a JSON pointer.
func (c *stepCall) pointer(p string) (string, error) {
	return c.fill(p, escapeToken)
}

// value replaces the placeholders in a value. given is false if the whole value is an argument that the call lacks; a member with such a
// value is omitted from its object.
func (c *stepCall) value(raw json.RawMessage) (v json.RawMessage, given bool, err error) {
	switch rawjson.Kind(raw) {
	case 0:
		return json.RawMessage("null"), true, nil
	case '"':
		return c.text(rawjson.Text(raw))
	case '[':
		var list parts
		for _, e := range elements(raw) {
			list.add(c, nil, e)
		}
		return joined('[', list.out, ']'), true, list.err
	case '{':
		if from, ok := fromPointer(raw); ok {
			v, err = c.copyFrom(from)
			return v, true, err
		}
		var members parts
		for k, e := range rawjson.Members(raw) {
			members.add(c, slices.Concat(k, []byte(":")), e)
		}
		return joined('{', members.out, '}'), true, members.err
	}
	return raw, true, nil
}

// parts are elements or members of a value, up to the first error.
type parts struct {
	out []json.RawMessage
	err error
}

// add appends the value of e, after its key, unless it is an argument that the call lacks.
func (p *parts) add(c *stepCall, key []byte, e json.RawMessage) {
	if p.err != nil {
		return
	}
	v, given, err := c.value(e)
	p.err = err
	if given {
		p.out = append(p.out, slices.Concat(key, v))
	}
}

// text does what value does, for a text.
func (c *stepCall) text(text string) (v json.RawMessage, given bool, err error) {
	if m := placeholder().FindStringSubmatch(text); m != nil && m[0] == text {
		v, given = c.lookup(m)
		return v, given, c.copied(v)
	}
	text, err = c.fill(text, func(s string) string { return s })
	if err == nil {
		err = c.copied([]byte(text))
	}
	return rawjson.AppendQuote(nil, text), true, err
}

// copyFrom returns the value at a pointer of the database.
func (c *stepCall) copyFrom(pointer string) (json.RawMessage, error) {
	at, err := c.pointer(pointer)
	if err != nil {
		return nil, err
	}
	v, found, err := c.read(at)
	if err == nil && !found {
		err = tool.Fail(lathe.CodeInvalidArguments, "there is nothing at %s", at)
	}
	if err != nil {
		return nil, err
	}
	return v, c.copied(v)
}

// fromPointer returns the pointer in an object {"from": POINTER}.
func fromPointer(raw json.RawMessage) (string, bool) {
	n := 0
	for range rawjson.Members(raw) {
		n++
	}
	from := rawjson.At(raw, "from")
	return rawjson.Text(from), n == 1 && rawjson.Kind(from) == '"'
}

// placeholders returns the names in the placeholders of a step.
func (s *step) placeholders() []string {
	var names []string
	for _, text := range []string{s.Pointer, string(s.Value), string(s.Where), string(s.Operand)} {
		for _, m := range placeholder().FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}
