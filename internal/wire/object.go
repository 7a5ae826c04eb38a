package wire

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// An Object is an object of a request whose members were found once, for readers that look at several of them. Its values are parts
// of the text.
type Object []Field

// A Field is one member of an [Object].
type Field struct {
	name  string
	value []byte
}

// FewFields is memory for the members of most objects, for ReadObject.
type FewFields [8]Field

// ReadObject appends the members of obj, a part of the text of index or another text, to dst. index may be nil. If obj is not an
// object, ReadObject appends nothing. Its error is that of [RejectAmbiguousKey] with the path "".
func ReadObject(dst Object, index *rawjson.Index, obj []byte, names *rawjson.Names) (Object, *APIError) {
	for key, v := range index.Members(obj) {
		name, err := MemberName(key, names, "")
		if err != nil {
			return nil, err
		}
		dst = append(dst, Field{name, v})
	}
	return dst, nil
}

// MemberName returns the name that a key of an object, a string literal, stands for. Its error is that of [RejectAmbiguousKey].
func MemberName(key []byte, names *rawjson.Names, at string) (string, *APIError) {
	if name, ok := names.Exact(key); ok {
		return name, nil
	}
	if err := RejectAmbiguousKey(key, names, at); err != nil {
		return "", err
	}
	return names.Text(key), nil
}

// Get returns the value of a member, nil if it is absent or null.
func (o Object) Get(name string) []byte {
	for i := range o {
		if o[i].name == name {
			if string(o[i].value) == "null" {
				return nil
			}
			return o[i].value
		}
	}
	return nil
}

// Others returns copies of the members that are not null and whose names are not among names, as [OtherMembers] does.
func (o Object) Others(names ...string) (out []lathe.Member) {
	for i := range o {
		if string(o[i].value) != "null" && !slices.Contains(names, o[i].name) {
			out = append(out, lathe.Member{Name: o[i].name, Value: bytes.Clone(o[i].value)})
		}
	}
	return out
}
