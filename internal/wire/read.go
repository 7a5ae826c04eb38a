package wire

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Reader parses a client's request, for the codecs of all wires. Its methods and those of [Object] return no errors: the first value that
// is not valid on the wire ends the parsing, and [Reader.ParseBody] or [Reader.Try] returns the error. Errors have status 400, name the
// member at fault and do not quote its value.
//
// A Reader records which elements of arrays are being read: within a loop over [Object.Elements], paths of errors and of dropped members
// are relative to the element.
type Reader struct {
	*ClientRequest
	path []step
}

// A step is the element of an array that is being read: the path of the array, relative to the previous step, and the index.
type step struct {
	array string
	index int
}

// A failure is the value with which a Reader panics; Try recovers it.
type failure struct{ err *APIError }

// NewReader returns a Reader of a request body.
func NewReader(body []byte) Reader { return Reader{ClientRequest: &ClientRequest{N: 1, Body: body}} }

// MessageEstimate returns a capacity for the messages of the request, which saves most of the copies of a growing slice.
func (r *Reader) MessageEstimate() int { return min(len(r.Body)/1000, 1024) }

// ParseBody checks that the body is a JSON object, calls read with its members, and returns the request. The error is an *[APIError].
func (r *Reader) ParseBody(names *rawjson.Names, read func(body Object)) (*ClientRequest, error) {
	if err := r.Try(func() {
		if bad := rawjson.Check(r.Body, rawjson.Limits{}); bad != nil {
			r.Fail("", "The body is not acceptable JSON: %v.", bad)
		}
		v := r.Body[rawjson.SkipSpace(r.Body, 0):]
		if rawjson.Kind(v) != '{' {
			r.Fail("", "The body must be a JSON object.")
		}
		read(r.Object("", v, names))
	}); err != nil {
		return nil, err
	}
	return r.ClientRequest, nil
}

// Try calls read, and returns the error with which Fail ended it, or nil.
func (r *Reader) Try(read func()) (err *APIError) {
	depth := len(r.path)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			r.path, err = r.path[:depth], p.err
		default:
			panic(p)
		}
	}()
	read()
	return nil
}

// Fail ends the parsing with an error about the member at the path at, which is relative to the element being read.
func (r *Reader) Fail(at, format string, args ...any) { r.FailCode(at, "", format, args...) }

// FailCode does what Fail does, for an error with a code.
func (r *Reader) FailCode(at, code, format string, args ...any) {
	err := BadRequest(r.At(at), format, args...)
	err.Code = code
	panic(failure{err})
}

// At returns the path in the request for a path relative to the element being read.
func (r *Reader) At(path string) string {
	at := ""
	for _, s := range r.path {
		at = Element(within(at, s.array), s.index)
	}
	return within(at, path)
}

// Drop records the member at a path, relative to the element being read, as neither read nor stored. The path "" is the element itself.
func (r *Reader) Drop(at string) { r.ClientRequest.Drop(r.At(at)) }

// Refer records that [lathe.Request] cannot represent the member at a path, relative to the element being read: see ClientRequest.Foreign.
func (r *Reader) Refer(at, format string, args ...any) {
	if r.Foreign == nil {
		r.Foreign = BadRequest(r.At(at), format, args...)
	}
}

// elements calls yield for each element of the array v, whose path at is relative to the element being read.
func (r *Reader) elements(at string, v []byte, yield func([]byte) bool) {
	if rawjson.Kind(v) != '[' {
		r.Fail(at, "Must be an array.")
	}
	depth := len(r.path)
	r.path = append(r.path, step{at, 0})
	for el := range rawjson.Elements(v) {
		if !yield(el) {
			break
		}
		r.path[depth].index++
	}
	r.path = r.path[:depth]
}

// An Object contains the members of an object that are not null. Its methods may be called as long as the element that contains it is being read.
type Object struct {
	r      *Reader
	at     string // path relative to the element being read
	fields []field
}

// A field is one member. Its value shares the memory of the body.
type field struct {
	name  string
	value []byte
	read  bool
}

// Object returns the members of the object v, whose path at is relative to the element being read. A member whose name is not in names but
// equals one of them under Unicode case folding is refused: a server that ignores case would read it instead of the member that was
// checked.
func (r *Reader) Object(at string, v []byte, names *rawjson.Names) Object {
	if rawjson.Kind(v) != '{' {
		r.Fail(at, "Must be an object.")
	}
	o := Object{r: r, at: at}
	for key, value := range rawjson.Members(v) {
		name, ok := names.Exact(key)
		if !ok {
			r.rejectAmbiguous(at, key, names)
			name = rawjson.Text(key)
		}
		if string(value) != "null" {
			o.fields = append(o.fields, field{name: name, value: value})
		}
	}
	return o
}

// rejectAmbiguous fails if key, a JSON string, equals one of names under case folding.
func (r *Reader) rejectAmbiguous(at string, key []byte, names *rawjson.Names) {
	if as, name := names.LikeKey(key); name != "" {
		r.FailCode(Join(at, as), codeAmbiguous, "The member %.64q differs from %s in the case or the form of its letters only: servers may read both as the same member. Send one of them, as %s.",
			as, name, name)
	}
}

const codeAmbiguous = "ambiguous_member"

// Rename renames the members that are keys of names. It fails if two members would have the same name.
func (o Object) Rename(names map[string]string) Object {
	for i := range o.fields {
		f := &o.fields[i]
		name, ok := names[f.name]
		if !ok {
			continue
		}
		for k := range o.fields[:i] {
			if o.fields[k].name == name {
				o.r.FailCode(Join(o.at, f.name), codeAmbiguous, "The member is there twice, in two spellings. Send it once, as %s.", name)
			}
		}
		f.name = name
	}
	return o
}

// Fail ends the parsing with an error about a member or, if name is "", about the object.
func (o Object) Fail(name, format string, args ...any) { o.r.Fail(o.path(name), format, args...) }

// FailCode does what Fail does, for an error with a code.
func (o Object) FailCode(name, code, format string, args ...any) {
	o.r.FailCode(o.path(name), code, format, args...)
}

// path returns the path of a member relative to the element being read.
func (o Object) path(name string) string { return within(o.at, name) }

// Get returns the value of a member and marks it as read. It returns nil if the member is absent.
func (o Object) Get(name string) []byte {
	for i := range o.fields {
		if f := &o.fields[i]; f.name == name {
			f.read = true
			return f.value
		}
	}
	return nil
}

// Skip marks members as read without using their values.
func (o Object) Skip(names ...string) {
	for _, name := range names {
		o.Get(name)
	}
}

// Unread yields the names and values of the members that are not marked as read.
func (o Object) Unread() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := range o.fields {
			if f := &o.fields[i]; !f.read && !yield(f.name, f.value) {
				return
			}
		}
	}
}

// IsRead reports whether all members are marked as read.
func (o Object) IsRead() bool {
	return !slices.ContainsFunc(o.fields, func(f field) bool { return !f.read })
}

// Rest returns copies of the members that are not marked as read.
func (o Object) Rest() (rest []lathe.Member) {
	for name, v := range o.Unread() {
		rest = append(rest, lathe.Member{Name: name, Value: bytes.Clone(v)})
	}
	return rest
}

// Drop records a member as neither read nor stored.
func (o Object) Drop(name string) { o.r.Drop(o.path(name)) }

// DropRest records all members that are not marked as read as dropped.
func (o Object) DropRest() {
	for name := range o.Unread() {
		o.Drop(name)
	}
}

// Object returns the members of a member that must be an object: see [Reader.Object].
func (o Object) Object(name string, names *rawjson.Names) Object {
	return o.r.Object(o.path(name), o.Get(name), names)
}

// Elements yields the elements of a member. It fails if the value is not an array.
func (o Object) Elements(name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { o.r.elements(o.path(name), o.Get(name), yield) }
}

// String returns the text of a member. It fails if the member is absent or no string. Invalid UTF-8 becomes U+FFFD.
func (o Object) String(name string) string {
	v := o.Get(name)
	if rawjson.Kind(v) != '"' {
		o.Fail(name, "Must be a string.")
	}
	return rawjson.Text(v)
}

// OptString does what String does, but returns "" for an absent member.
func (o Object) OptString(name string) string {
	if o.Get(name) == nil {
		return ""
	}
	return o.String(name)
}

// Strings returns the elements of a member that must be an array of strings; nil if it is absent.
func (o Object) Strings(name string) (list []string) {
	if o.Get(name) == nil {
		return nil
	}
	for el := range o.Elements(name) {
		if rawjson.Kind(el) != '"' {
			o.r.Fail("", "Must be a string.")
		}
		list = append(list, rawjson.Text(el))
	}
	return list
}

// RawObject returns the JSON text of a member. It fails if the value is not an object.
func (o Object) RawObject(name string) []byte {
	v := o.Get(name)
	if rawjson.Kind(v) != '{' {
		o.Fail(name, "Must be an object.")
	}
	return v
}

// OptObject does what RawObject does, but returns nil for an absent member.
func (o Object) OptObject(name string) []byte {
	if o.Get(name) == nil {
		return nil
	}
	return o.RawObject(name)
}

// Parsed returns the value of a member as parse returns it, or nil if the member is absent. If the value is not valid, parse returns the
// error text in must.
func Parsed[T any](o Object, name string, parse func(v []byte) (x T, must string)) *T {
	v := o.Get(name)
	if v == nil {
		return nil
	}
	x, must := parse(v)
	if must != "" {
		o.Fail(name, "%s", must)
	}
	return &x
}

// OptBool returns a member that must be true or false; nil if it is absent.
func (o Object) OptBool(name string) *bool {
	return Parsed(o, name, func(v []byte) (bool, string) {
		isTrue := string(v) == "true"
		return isTrue, unless(isTrue || string(v) == "false", "Must be true or false.")
	})
}

// Bool does what OptBool does, but returns false for an absent member.
func (o Object) Bool(name string) bool {
	b := o.OptBool(name)
	return b != nil && *b
}

// Float returns a member that must be a number; nil if it is absent.
func (o Object) Float(name string) *float64 {
	return Parsed(o, name, func(v []byte) (float64, string) {
		f, err := strconv.ParseFloat(string(v), 64)
		return f, unless(err == nil, "Must be a number.")
	})
}

// Int returns a member that must be a 64-bit integer; nil if it is absent.
func (o Object) Int(name string) *int64 {
	return Parsed(o, name, func(v []byte) (int64, string) {
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, unless(err == nil, "Must be an integer.")
	})
}

// Count returns a member that must be an integer from 1 to 2147483647; nil if it is absent.
func (o Object) Count(name string) *int {
	return Parsed(o, name, func(v []byte) (int, string) {
		n, err := strconv.ParseInt(string(v), 10, 64)
		return int(n), unless(err == nil && n >= 1 && n <= math.MaxInt32, "Must be an integer from 1 to 2147483647.")
	})
}

func unless(ok bool, must string) string {
	if ok {
		return ""
	}
	return must
}
