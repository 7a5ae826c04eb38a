package store

import (
	"reflect"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Copy returns a deep copy of e with the content that stores keep: without the Result of RunFinished and RunPaused, and without the Request
// of ModelCallStarted. It returns a delta event itself, not a copy, because stores do not keep deltas.
func Copy(e event.Event) event.Event {
	if event.IsDelta(e.Data) {
		return e
	}
	switch d := e.Data.(type) {
	case *event.ModelCallStarted:
		c := *d
		c.Request = nil // it would retain the conversation and the memory of the run
		e.Data = &c
	case *event.RunPaused:
		c := *d
		c.Result = nil
		e.Data = &c
	case *event.RunFinished:
		c := *d
		c.Result = nil
		e.Data = &c
	default: // stored whole
	}
	return clone(e)
}

// clone returns a deep copy of v. It shares only strings with v, and what unexported fields refer to.
func clone[T any](v T) T {
	own(reflect.ValueOf(&v).Elem())
	return v
}

// own replaces everything to which v refers by copies.
func own(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || v.Kind() == reflect.Interface && !refers(v.Elem()) { // most parts of messages hold only strings
			return
		}
		c := reflect.New(v.Elem().Type()).Elem()
		c.Set(v.Elem())
		own(c)
		if v.Kind() == reflect.Pointer {
			c = c.Addr()
		}
		v.Set(c)
	case reflect.Slice:
		if !v.IsNil() {
			ownSlice(v)
		}
	case reflect.Map: // of strings
		if v.IsNil() {
			return
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, value := range v.Seq2() {
			c.SetMapIndex(key, value)
		}
		v.Set(c)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				own(f)
			}
		}
	default: // refers to nothing that can be changed
	}
}

// ownSlice replaces a slice and everything to which its elements refer by copies.
func ownSlice(v reflect.Value) {
	if parts, ok := v.Addr().Interface().(*[]lathe.Part); ok { // each message has some, and MakeSlice allocates more than the slice
		*parts = slices.Clone(*parts)
	} else {
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	for i := range v.Len() {
		own(v.Index(i))
	}
}

// refers reports whether v refers to anything that own copies.
func refers(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return !v.IsNil()
	case reflect.Struct:
		for i := range v.NumField() {
			if refers(v.Field(i)) {
				return true
			}
		}
	default: // refers to nothing that can be changed
	}
	return false
}
