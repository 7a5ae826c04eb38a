// Package rawjson reads and writes JSON text as bytes: strict checking, walking, quoting and
// canonical forms, without reflection and without building values, but for [Marshal] and [Value]. Numbers stay text.
//
// All functions are pure, take time linear in the input (canonical forms: times the depth, which
// is limited), never panic whatever the bytes, and may be called from several goroutines.
// Functions named Append append to dst and return it, as the built-in append does; dst must not
// overlap the input.
package rawjson

import "strconv"

// The limits that [Check] takes where [Limits] says nothing.
const (
	DefaultMaxDepth = 64
	DefaultMaxKeys  = 10_000
)

// Limits bound what [Check] accepts. A field that is not above 0 means its default.
type Limits struct {
	MaxDepth int // of nested arrays and objects; a scalar has depth 0, [] has depth 1
	MaxKeys  int // of one object
}

func (l Limits) orDefault() Limits {
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxKeys <= 0 {
		l.MaxKeys = DefaultMaxKeys
	}
	return l
}

// The kinds of a [SyntaxError].
const (
	KindEmpty     = "empty"                // nothing but white space
	KindEnd       = "unexpected_end"       // the text stops inside a value
	KindCharacter = "unexpected_character" // a byte that cannot stand there
	KindTrailing  = "trailing_data"        // something follows the value
	KindLiteral   = "invalid_literal"      // begins like true, false or null, and is not
	KindNumber    = "invalid_number"
	KindControl   = "control_character" // below U+0020, raw in a string
	KindEscape    = "invalid_escape"
	KindUTF8      = "invalid_utf8"
	KindSurrogate = "lone_surrogate" // \ud800 without its other half
	KindDuplicate = "duplicate_key"  // equal to an earlier key of its object after unescaping
	KindDeep      = "too_deep"       // more than MaxDepth levels
	KindKeys      = "too_many_keys"  // more than MaxKeys keys in one object
)

// A SyntaxError says where a text stops being acceptable JSON, and why. It holds nothing of the text.
type SyntaxError struct {
	Offset int    // of the offending byte; for a duplicate, of the second key
	Kind   string // one of the Kind constants
}

// Error returns offset and kind.
func (e *SyntaxError) Error() string {
	return "invalid JSON at byte " + strconv.Itoa(e.Offset) + ": " + e.Kind
}

// SkipSpace returns the index of the first byte at or after i that is not JSON white space, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
