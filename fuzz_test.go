package lathe_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reflecttest"
)

func FuzzMessage(f *testing.F) {
	full := lathe.Message{}
	reflecttest.Fill(reflect.ValueOf(&full).Elem(), "x <é>")
	b, err := full.MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"role":"tool","parts":[{"type":"tool_result","blobs":[{"type":"blob","data":"AA=="}]}]}`))
	f.Add([]byte(`{"role":"user","parts":null,"extra":[{"name":"a"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m lathe.Message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		first, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var back lathe.Message
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, first)
		}
		if second, err := back.MarshalJSON(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("written again: %v\n got %s\nwant %s", err, second, first)
		}
		if back.Text() != m.Text() || len(back.Calls()) != len(m.Calls()) {
			t.Fatalf("text or calls changed: %s", first)
		}
	})
}
