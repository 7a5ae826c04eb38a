package store

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/reflecttest"
)

// Neither who appended an event nor who reads it has anything of it in common with the store, whichever fields it has.
func TestMemorySharesNothingWithItsCallers(t *testing.T) {
	t.Parallel()
	for _, name := range event.Types() {
		var e event.Event
		if err := json.Unmarshal([]byte(`{"type":"`+name+`","run_id":"r","time":"2026-05-06T07:08:09Z","event_id":1,"data":{}}`), &e); err != nil {
			t.Fatal(err)
		}
		if event.IsDelta(e.Data) {
			continue
		}
		e.ID, e.RunID = 1, "r"
		data := reflect.ValueOf(e.Data).Elem()
		reflecttest.Fill(data, "x")
		s := NewMemory(nil)
		if _, err := s.Append(t.Context(), "r", 0, e); err != nil {
			t.Fatal(err)
		}
		for i := range data.NumField() {
			switch data.Field(i).Interface().(type) {
			case *event.Result, *event.ModelRequest: // only for this process
				data.Field(i).SetZero()
			}
		}
		kept := s.kept.runs["r"].events[0].Data
		for read, err := range s.Read(t.Context(), "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(read.Data, e.Data) {
				t.Errorf("%s: %+v, want %+v", name, read.Data, e.Data)
			}
			noneShared(t, name+" appended", reflect.ValueOf(e.Data), reflect.ValueOf(kept))
			noneShared(t, name+" read", reflect.ValueOf(read.Data), reflect.ValueOf(kept))
		}
	}
}

// noneShared reports what two equal values refer to together.
func noneShared(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			t.Errorf("%s: is shared", path)
		}
	default:
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !a.IsNil() {
			noneShared(t, path, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		for i := range a.Len() {
			noneShared(t, path+"[]", a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				noneShared(t, path+"."+f.Name, a.Field(i), b.Field(i))
			}
		}
	default:
	}
}
