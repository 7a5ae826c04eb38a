package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// WithDefaults returns the options with zero and negative fields replaced by the defaults; o may be nil.
func (o *AssemblerOptions) WithDefaults() AssemblerOptions {
	var out AssemblerOptions
	if o != nil {
		out = *o
	}
	if out.MaxCalls <= 0 {
		out.MaxCalls = 256
	}
	if out.MaxBytes <= 0 {
		out.MaxBytes = 32 << 20
	}
	return out
}

// CountFault adds n faults of a kind to the list and returns it.
func CountFault(faults []lathe.Fault, kind string, n int) []lathe.Fault {
	if n == 0 {
		return faults
	}
	for i := range faults {
		if faults[i].Kind == kind {
			faults[i].Count += n
			return faults
		}
	}
	return append(faults, lathe.Fault{Kind: kind, Count: n})
}

// EmptyArray reports whether a value is an array without elements.
func EmptyArray(v []byte) bool {
	if rawjson.Kind(v) != '[' {
		return false
	}
	i := rawjson.SkipSpace(v, 1)
	return i < len(v) && v[i] == ']'
}

// BadRequest returns an error with status 400 and type invalid_request_error for the member param.
func BadRequest(param, format string, args ...any) *APIError {
	return &APIError{Status: 400, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Join returns the path of a member of the object at the path at.
func Join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// Element returns the path of an element of the array at the path at.
func Element(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// within returns path, which is relative to the value at the path at, as a path from the root.
func within(at, path string) string {
	if path == "" || path[0] == '.' || path[0] == '[' {
		return at + path
	}
	return Join(at, path)
}

// OtherMembers returns copies of the members of obj that are not null and whose names are not in names.
func OtherMembers(obj []byte, names ...string) (out []lathe.Member) {
	for key, v := range rawjson.Members(obj) {
		known := slices.ContainsFunc(names, func(name string) bool { return rawjson.EqualKey(key, name) })
		if !known && string(v) != "null" {
			out = append(out, lathe.Member{Name: rawjson.Text(key), Value: bytes.Clone(v)})
		}
	}
	return out
}

// last returns the members that have a value, in their order, without those for whose names except, if not nil, returns true. Of members
// with equal names it returns the last.
func last(members []lathe.Member, except func(name string) bool) (kept []lathe.Member) {
	at := map[string]int{}
	for i, m := range members {
		at[m.Name] = i
	}
	for i, m := range members {
		isExcluded := except != nil && except(m.Name)
		if len(m.Value) > 0 && at[m.Name] == i && !isExcluded {
			kept = append(kept, m)
		}
	}
	return kept
}

// MemberValue returns the value of the last member with the name, or nil if none exists.
func MemberValue(members []lathe.Member, name string) json.RawMessage {
	for _, m := range slices.Backward(members) {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Named reports whether a member has the name.
func Named(members []lathe.Member, name string) bool {
	return slices.ContainsFunc(members, func(m lathe.Member) bool { return m.Name == name })
}

// BlobNote returns the text that replaces, in a tool result, a blob that the wire cannot send: its type and size.
func BlobNote(b *lathe.Blob) string {
	size := ""
	if len(b.Data) > 0 {
		size = fmt.Sprintf(", %d bytes", len(b.Data))
	}
	return fmt.Sprintf("[%.100s%s: not sent, because the API of the model has no form for it]", cmp.Or(b.MediaType, "file"), size)
}

// sendable are the limits of arguments in a request. They are above all limits for calls that are executed, and below the depth that
// parsers of servers accept (Python: 1000).
var sendable = rawjson.Limits{MaxDepth: 500, MaxKeys: math.MaxInt}

// Sendable reports whether the arguments of a call are a JSON object that servers accept in a history.
func Sendable(arguments []byte) bool { return rawjson.IsObject(arguments, sendable) }

// SentArguments returns the arguments of a call in the form that servers accept in a history: llama.cpp (status 500) and Ollama (400)
// refuse arguments that are not a JSON object. Such arguments become the object to which they can be unambiguously repaired
// ([rawjson.RepairObject]), otherwise {}. Blank arguments, null and "" are equivalent to {}. same reports whether nothing was changed, and
// kept whether nothing was lost.
func SentArguments(arguments string) (object []byte, same, kept bool) {
	b := bytes.Trim([]byte(arguments), " \t\r\n")
	switch {
	case len(b) == 0, string(b) == "null", string(b) == `""`:
		return []byte("{}"), true, true
	case Sendable(b):
		return b, true, true
	}
	if object, _, ok := rawjson.RepairObject(b); ok && Sendable(object) {
		return object, false, true
	}
	return []byte("{}"), false, false
}

// SentText does what SentArguments does, for wires where arguments are a string: white space around an object is kept.
func SentText(arguments string) string {
	if Sendable([]byte(arguments)) {
		return arguments
	}
	object, _, _ := SentArguments(arguments)
	return string(object)
}

// ReadArguments reports whether the arguments of a call are an object that clients can parse, even if names in it repeat. If they are not,
// cut reports whether they are JSON that was truncated.
func ReadArguments(arguments []byte) (object, cut bool) {
	start := rawjson.SkipSpace(arguments, 0)
	end, err := rawjson.Scan(arguments, start)
	var bad *rawjson.SyntaxError
	if errors.As(err, &bad) {
		return false, bad.Kind == rawjson.KindEnd
	}
	isWhole := rawjson.SkipSpace(arguments, end) == len(arguments)
	return isWhole && rawjson.Kind(arguments[start:]) == '{', false
}
