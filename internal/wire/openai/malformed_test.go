package openai

import "testing"

// tool_calls of a wrong type are no calls, and they are counted, whatever the finish reason.
func TestMalformedToolCallsAreCounted(t *testing.T) {
	t.Parallel()
	for calls, want := range map[string]int{`"oops"`: 1, `5`: 1, `true`: 1, `["x"]`: 1, `[null,3]`: 2, `null`: 0, `[]`: 0} {
		for _, finish := range []string{"stop", "tool_calls"} {
			f, err := ParseCompletion([]byte(`{"id":"r","choices":[{"message":{"role":"assistant","content":"hi","tool_calls":`+calls+`},"finish_reason":"`+finish+`"}]}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, x := range f.Faults {
				if x.Kind == faultCallsMalformed {
					got = x.Count
				}
			}
			if got != want || len(f.Message.Calls()) != 0 || f.Message.Text() != "hi" {
				t.Errorf("%s: %d faults, want %d; message %+v", calls, got, want, f.Message)
			}
		}
	}
}
