package rawjson_test

import (
	"fmt"

	"github.com/lathe-run/lathe/internal/rawjson"
)

func ExampleCheck() {
	fmt.Println(rawjson.Check([]byte(`{"path":"/ok"}`), rawjson.Limits{}))
	fmt.Println(rawjson.Check([]byte(`{"path":"/ok","\u0070ath":"/etc/passwd"}`), rawjson.Limits{}))
	// Output:
	// <nil>
	// invalid JSON at byte 14: duplicate_key
}

func ExampleScan() {
	text := []byte(`{"name":"now"} and some prose`)
	end, err := rawjson.Scan(text, 0)
	fmt.Printf("%s, %v\n", text[:end], err)
	// Output: {"name":"now"}, <nil>
}

func ExampleMembers() {
	for key, value := range rawjson.Members([]byte(`{"b": 1.50, "a": [true, null]}`)) {
		fmt.Printf("%s is %s\n", key, value)
	}
	// Output:
	// "b" is 1.50
	// "a" is [true, null]
}

func ExampleAppendCanonical() {
	text, err := rawjson.AppendCanonical(nil, []byte(`{"n": 1.0, "id": 9007199254740993, "e": "\u20ac"}`))
	fmt.Println(string(text), err)
	// Output: {"e":"€","id":9007199254740993,"n":1} <nil>
}

func ExampleAppendPython() {
	text, err := rawjson.AppendPython(nil, []byte(`{"n":1.0,"e":"€"}`))
	fmt.Println(string(text), err)
	// Output: {"e": "\u20ac", "n": 1.0} <nil>
}
