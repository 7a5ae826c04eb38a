package event_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/reflecttest"
)

// A field is one field of an event type, with the place that it has in the JSON form.
type field struct {
	event, name string // in Go
	index       int    // in the struct
	part        string // "data", "content", or "" for a field that only this process sees
	member      string // of part
	optional    bool   // the member is left out where it is empty
	typ         reflect.Type
}

func (f *field) String() string {
	if f.part == "" {
		return fmt.Sprintf("%s.%s (in this process only)", f.event, f.name)
	}
	return fmt.Sprintf("%s.%s (%s.%s)", f.event, f.name, f.part, f.member)
}

// key names the field in the tables of places_test.go.
func (f *field) key() string {
	if f.part == "content" {
		return f.event + ".content." + f.member
	}
	return f.event + "." + f.member
}

// fieldsOf returns the fields of an event type. The member of a content field is the one that points to it.
func fieldsOf(t testing.TB, name string) (out []*field) {
	t.Helper()
	data := newData(t, name)
	v := reflect.ValueOf(data).Elem()
	reflecttest.Fill(v, "x")
	inContent := map[uintptr]reflect.StructField{}
	if c := event.Content(data); c != nil {
		c := reflect.ValueOf(c).Elem()
		for i := range c.NumField() {
			inContent[c.Field(i).Pointer()] = c.Type().Field(i)
		}
	}
	for i := range v.NumField() {
		s := v.Type().Field(i)
		f := &field{event: name, name: s.Name, index: i, part: "data", typ: s.Type}
		if s.Tag.Get("json") == "-" {
			var ok bool
			f.part = ""
			if s, ok = inContent[v.Field(i).Addr().Pointer()]; ok {
				f.part = "content"
			}
		}
		if f.part != "" {
			f.member, f.optional = memberOf(s)
		}
		out = append(out, f)
	}
	return out
}

// memberOf returns the name of a field in JSON.
func memberOf(s reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(s.Tag.Get("json"), ",")
	return name, strings.Contains(options, "omit")
}

// membersIn returns those among fields that are members of a part.
func membersIn(fields []*field, part string) (out []*field) {
	for _, f := range fields {
		if f.part == part {
			out = append(out, f)
		}
	}
	return out
}
