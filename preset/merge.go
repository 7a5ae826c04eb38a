package preset

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Merge returns a new patch in which later patches override earlier ones: for most keys, the last value that is set counts. Lists are joined in
// order, each name once; an empty list that is not nil clears earlier ones. request_overrides are merged member by member, at every depth; a
// null member does not change the existing value. nil patches are ignored. The patches are not changed.
func Merge(patches ...*Patch) *Patch {
	out := &Patch{}
	to := reflect.ValueOf(out).Elem()
	for _, p := range patches {
		if p == nil {
			continue
		}
		from := reflect.ValueOf(p).Elem()
		for i := range from.NumField() {
			if f := from.Field(i); !f.IsNil() {
				to.Field(i).Set(merged(to.Field(i), f))
			}
		}
	}
	return out
}

// merged returns the merged value of one field, which shares no memory with the patches.
func merged(old, now reflect.Value) reflect.Value {
	switch v := now.Interface().(type) {
	case []string:
		return reflect.ValueOf(union(old.Interface().([]string), v))
	case json.RawMessage:
		return reflect.ValueOf(json.RawMessage(mergeObjects(old.Bytes(), v)))
	}
	c := reflect.New(now.Type().Elem())
	c.Elem().Set(now.Elem())
	return c
}

func union(old, now []string) []string {
	if len(now) == 0 {
		return []string{}
	}
	out := slices.Clone(old)
	for _, s := range now {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// mergeObjects returns the object old with the members of now. If old is not an object, it counts as empty; if now is not, it is
// returned.
func mergeObjects(old, now []byte) []byte {
	old, now = trimmed(old), trimmed(now)
	if rawjson.Kind(old) != '{' {
		old = []byte("{}")
	}
	if rawjson.Kind(now) != '{' {
		return slices.Clone(now)
	}
	out := []byte{'{'}
	add := func(key, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	for key, value := range rawjson.Members(old) {
		later, ok := member(now, key)
		switch {
		case !ok || string(later) == "null":
			add(key, value)
		case later[0] == '{':
			add(key, mergeObjects(value, later))
		default:
			add(key, later)
		}
	}
	for key, value := range rawjson.Members(now) {
		if _, ok := member(old, key); !ok && string(value) != "null" {
			if value[0] == '{' {
				value = mergeObjects(nil, value) // to remove the nulls in it
			}
			add(key, value)
		}
	}
	return append(out, '}')
}

func member(obj, quoted []byte) ([]byte, bool) {
	name, err := rawjson.AppendUnquote(nil, quoted)
	if err != nil {
		return nil, false
	}
	return rawjson.Get(obj, string(name))
}

func trimmed(b []byte) []byte { return b[rawjson.SkipSpace(b, 0):] }
