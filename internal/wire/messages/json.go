package messages

import (
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

func isNull(v []byte) bool { return string(v) == "null" }

func unquoted(quoted []byte) string { return rawjson.Text(quoted) }

// get returns the value of a member, nil if it is absent or null.
func get(obj []byte, name string) []byte {
	v, _ := rawjson.Get(obj, name)
	if isNull(v) {
		return nil
	}
	return v
}

// get is the function get for a part of the body.
func (r *reader) get(obj []byte, name string) []byte {
	v, _ := r.index.Get(obj, name)
	if isNull(v) {
		return nil
	}
	return v
}

// text returns the text of a member that is a string, "" for any other.
func text(obj []byte, name string) string { return rawjson.Text(get(obj, name)) }

// members returns copies of the members of obj that are not among the names given and not null.
func members(obj []byte, except ...string) []lathe.Member {
	return wire.OtherMembers(nil, obj, except...)
}

func appendInt(dst []byte, key string, n int64) []byte {
	return strconv.AppendInt(wire.AppendKey(dst, key), n, 10)
}

func appendComma(dst []byte) []byte {
	if c := dst[len(dst)-1]; c != '[' && c != '{' {
		dst = append(dst, ',')
	}
	return dst
}

// appendMembers appends, byte for byte, the members that are not among the names given; of equal names the last.
func appendMembers(dst []byte, list []lathe.Member, except ...string) []byte {
	return wire.AppendMembers(dst, list, func(name string) bool { return slices.Contains(except, name) })
}

func appendFloat(dst []byte, key string, f float64) []byte {
	return wire.AppendFloat(wire.AppendKey(dst, key), f)
}
