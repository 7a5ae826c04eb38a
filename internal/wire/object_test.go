package wire

import (
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// An object gives the members that its text has under their decoded names, and refuses names that other readers take for those of
// the set.
func TestReadObject(t *testing.T) {
	t.Parallel()
	names := rawjson.NewNames("type", "text")
	var few FewFields
	o, err := ReadObject(few[:0], nil, []byte(`{"type":"a","te\u0078t":1,"x\u0079":null,"more":[2] , "a":3,"b":4,"c":5,"d":6,"e":null,"f":7}`), names)
	if err != nil || len(o) != 10 {
		t.Fatal(o, err)
	}
	for name, want := range map[string]string{"type": `"a"`, "text": "1", "xy": "", "more": "[2]", "f": "7", "e": "", "g": ""} {
		if got := o.Get(name); string(got) != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	others := o.Others("type", "a", "b", "c", "d")
	if len(others) != 3 || others[0].Name != "text" || others[1].Name != "more" || others[2].Name != "f" || string(others[1].Value) != "[2]" {
		t.Error(others)
	}
	if o, err := ReadObject(few[:0], nil, []byte(`{"Type":"a"}`), names); err == nil || err.Code != "ambiguous_member" || err.Param != "Type" || o != nil {
		t.Error(o, err)
	}
}
