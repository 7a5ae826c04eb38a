package wire

import (
	"math"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A JSON is a JSON text, or a part of one, that is being written. Like append, each method appends to it and returns the result. Members and
// elements get a comma before them unless they are the first. Values of type JSON and []byte can be assigned to each other.
type JSON []byte

// Next appends the comma before an element.
func (j JSON) Next() JSON {
	if n := len(j); n > 0 && (j[n-1] == '[' || j[n-1] == '{') {
		return j
	}
	return append(j, ',')
}

// Lit appends text as it is.
func (j JSON) Lit(text string) JSON { return append(j, text...) }

// If appends text as it is, if the condition holds.
func (j JSON) If(condition bool, text string) JSON {
	if condition {
		j = append(j, text...)
	}
	return j
}

// Raw appends a value as it is.
func (j JSON) Raw(value []byte) JSON { return append(j, value...) }

// Compact appends a value without white space between its tokens.
func (j JSON) Compact(value []byte) JSON { return rawjson.AppendCompact(j, value) }

// Quote appends a string.
func (j JSON) Quote(text string) JSON { return rawjson.AppendQuote(j, text) }

// Int appends an integer.
func (j JSON) Int(n int64) JSON { return strconv.AppendInt(j, n, 10) }

// Key appends the name of a member.
func (j JSON) Key(name string) JSON { return append(rawjson.AppendQuote(j.Next(), name), ':') }

// Obj appends the name of a member and the bracket that opens its value, an object.
func (j JSON) Obj(name string) JSON { return append(j.Key(name), '{') }

// Arr appends the name of a member and the bracket that opens its value, an array.
func (j JSON) Arr(name string) JSON { return append(j.Key(name), '[') }

// Str appends a member that is a string.
func (j JSON) Str(name, text string) JSON { return j.Key(name).Quote(text) }

// OptStr appends a member that is a string, unless it is empty.
func (j JSON) OptStr(name, text string) JSON {
	if text == "" {
		return j
	}
	return j.Str(name, text)
}

// StrOrNull appends a member that is a string, or null for an empty one.
func (j JSON) StrOrNull(name, text string) JSON {
	if text == "" {
		return j.Key(name).Lit("null")
	}
	return j.Str(name, text)
}

// Strs appends a member that is an array of strings.
func (j JSON) Strs(name string, texts []string) JSON {
	j = j.Arr(name)
	for _, text := range texts {
		j = j.Next().Quote(text)
	}
	return append(j, ']')
}

// Num appends a member that is an integer.
func (j JSON) Num(name string, n int64) JSON { return j.Key(name).Int(n) }

// OptInt appends a member that is an integer, unless it is nil.
func (j JSON) OptInt(name string, n *int) JSON {
	if n == nil {
		return j
	}
	return j.Num(name, int64(*n))
}

// Float appends a member that is a number, as encoding/json writes it, and null for infinities and NaN.
func (j JSON) Float(name string, f float64) JSON {
	j = j.Key(name)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return j.Lit("null")
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(j, f, format, -1, 64)
}

// Bool appends a member that is true or false.
func (j JSON) Bool(name string, b bool) JSON { return strconv.AppendBool(j.Key(name), b) }

// Val appends a member with a value as it is.
func (j JSON) Val(name string, value []byte) JSON { return append(j.Key(name), value...) }

// OptVal appends a member with a value as it is, unless it is empty.
func (j JSON) OptVal(name string, value []byte) JSON {
	if len(value) == 0 {
		return j
	}
	return j.Val(name, value)
}

// Members appends members as they are, without those for whose names except returns true and those without a value. Of members with equal
// names it appends the last. A nil except excludes none.
func (j JSON) Members(members []lathe.Member, except func(name string) bool) JSON {
	for _, m := range Last(members) {
		if except == nil || !except(m.Name) {
			j = j.Val(m.Name, m.Value)
		}
	}
	return j
}

// Extra is Members in compact form, since events are one line.
func (j JSON) Extra(members []lathe.Member, except func(name string) bool) JSON {
	for _, m := range Last(members) {
		if !except(m.Name) {
			j = j.Key(m.Name).Compact(m.Value)
		}
	}
	return j
}

// Pair appends a member whose name is a string literal, with a value as it is.
func (j JSON) Pair(literal, value []byte) JSON {
	return append(append(append(j.Next(), literal...), ':'), value...)
}

// Event begins a server-sent event of a type, whose data has the type as its first member.
func (j JSON) Event(typ string) JSON {
	return j.Lit("event: ").Lit(typ).Lit("\ndata: {\"type\":").Quote(typ)
}

// EndEvent ends an event whose data is an object.
func (j JSON) EndEvent() JSON { return append(j, "}\n\n"...) }
