package gemini

import (
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A call that a server sends in two chunks, with one id, is one call; calls that differ, or have no id, are two.
func TestRepeatedCallIsOneCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first, second string
		want          int
	}{
		{`{"id":"c_1","name":"pay","args":{"n":1}}`, `{"id":"c_1","name":"pay","args":{"n":1}}`, 1},
		{`{"id":"c_1","name":"pay","args":{"n":1}}`, `{"id":"c_1","name":"pay","args":{"n":2}}`, 2},
		{`{"id":"c_1","name":"pay","args":{"n":1}}`, `{"id":"c_2","name":"pay","args":{"n":1}}`, 2},
		{`{"name":"pay","args":{"n":1}}`, `{"name":"pay","args":{"n":1}}`, 2},
	} {
		a := Codec{}.NewAssembler(nil)
		for _, part := range []string{tt.first, tt.second, ""} {
			chunk := `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":` + part + `}]}}]}`
			if part == "" {
				chunk = `{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP"}]}`
			}
			if _, err := a.Append(nil, "", []byte(chunk)); err != nil {
				t.Fatal(err)
			}
		}
		f, err := a.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		if calls := f.Message.Calls(); len(calls) != tt.want || !strings.HasPrefix(calls[0].Arguments, `{"n":1`) {
			t.Errorf("%s and %s are %+v", tt.first, tt.second, calls)
		}
	}
}

// Arguments that are not an object are one fault for each call that has them, also for a call with the id of an earlier one.
func TestFaultOfArgumentsIsCountedOnce(t *testing.T) {
	t.Parallel()
	a := Codec{}.NewAssembler(nil)
	for _, args := range []string{"[1]", "[2]"} {
		chunk := `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c_1","name":"pay","args":` + args + `}}]},"finishReason":"STOP"}]}`
		if _, err := a.Append(nil, "", []byte(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := a.Finish(true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f.Faults, lathe.Fault{Kind: faultArgsNotText, Count: 2}) {
		t.Errorf("two calls whose arguments are lists have the faults %v", f.Faults)
	}
}
