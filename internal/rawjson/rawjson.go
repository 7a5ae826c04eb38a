// Package rawjson reads and writes JSON text as bytes: strict checking, iteration, quoting and canonical forms. Except for [Marshal] and
// [Value] it uses no reflection and builds no values. Numbers remain text.
//
// All functions are pure, take time linear in the input (canonical forms: multiplied by the depth, which is limited), never panic for any
// input, and may be called from several goroutines at once. Functions named Append append to dst and return it, as the built-in append
// does; dst must not overlap the input.
package rawjson

import "strconv"

// Default limits of [Check].
const (
	DefaultMaxDepth = 64
	DefaultMaxKeys  = 10_000
)

// Limits restrict what [Check] accepts. A field that is not above 0 means its default.
type Limits struct {
	MaxDepth int // depth of nested arrays and objects; a scalar has depth 0, [] has depth 1
	MaxKeys  int // keys of one object
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

// Kinds of a [SyntaxError].
const (
	KindEmpty     = "empty"                // only white space
	KindEnd       = "unexpected_end"       // the text ends inside a value
	KindCharacter = "unexpected_character" // a byte that is not allowed at this position
	KindTrailing  = "trailing_data"        // text follows the value
	KindLiteral   = "invalid_literal"      // begins like true, false or null but is none of them
	KindNumber    = "invalid_number"
	KindControl   = "control_character" // below U+0020, raw in a string
	KindEscape    = "invalid_escape"
	KindUTF8      = "invalid_utf8"
	KindSurrogate = "lone_surrogate" // \ud800 without its other half
	KindDuplicate = "duplicate_key"  // equals an earlier key of the same object after unescaping
	KindDeep      = "too_deep"       // more than MaxDepth levels
	KindKeys      = "too_many_keys"  // more than MaxKeys keys in one object
)

// A SyntaxError is the position of the first error in a JSON text, and its kind. It contains no part of the text.
type SyntaxError struct {
	Offset int    // offset of the offending byte; for a duplicate key, that of the second key
	Kind   string // one of the Kind constants
}

// Error returns offset and kind as text.
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
