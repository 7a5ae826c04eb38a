package messages

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// nameSet returns the set of the names in list, which are separated by blanks.
func nameSet(list string) *rawjson.Names { return rawjson.NewNames(strings.Fields(list)...) }

func isNull(v []byte) bool { return string(v) == "null" }

// get returns the value of a member, nil if it is absent or null.
func get(obj []byte, name string) []byte {
	v := rawjson.At(obj, name)
	if isNull(v) {
		return nil
	}
	return v
}

// text returns the string value of a member, or "" for other values.
func text(obj []byte, name string) string { return rawjson.Text(get(obj, name)) }

// appendMembers appends unchanged the members whose names are not in except. Of members with equal names it appends the last.
func appendMembers(dst wire.JSON, list []lathe.Member, except ...string) wire.JSON {
	return dst.Members(list, func(name string) bool { return slices.Contains(except, name) })
}
