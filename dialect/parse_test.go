package dialect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

func ExampleParse() {
	text, calls, err := dialect.Parse(`Let me add them. <tool name="add" args>{"a":1,"b":2}</tool>`, "tags", nil)
	fmt.Printf("%q %v\n", text, err)
	for _, c := range calls {
		fmt.Println(c.Name, c.Arguments)
	}
	// Output:
	// "Let me add them." <nil>
	// add {"a":1,"b":2}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const good = `<tool name="add" args>{"a":1}</tool>`
	for name, c := range map[string]struct {
		text, visible string
		calls         int
		code          lathe.Code
	}{
		"no call":          {" two ", " two ", 0, ""},
		"one call":         {"a " + good + " b", "a  b", 1, ""},
		"two calls":        {good + good, "", 2, ""},
		"unreadable":       {good + `<tool name="add" args></tool>`, "", 1, lathe.CodePayloadParseError},
		"cut off":          {"so " + good + `<tool name="add" args>{"a":`, "so", 1, lathe.CodeIncompleteCall},
		"nothing":          {"", "", 0, ""},
		"too large a call": {`<tool name="add" args>{"a":"` + strings.Repeat("x", 300_000) + `"}</tool>`, "", 0, lathe.CodePayloadTooLarge},
	} {
		text, calls, err := dialect.Parse(c.text, "tags", nil)
		if text != c.visible || len(calls) != c.calls || (err != nil) != (c.code != "") {
			t.Errorf("%s: got %q, %d calls, %v", name, text, len(calls), err)
		}
		var e *lathe.Error
		if errors.As(err, &e); err != nil && e.Code != c.code {
			t.Errorf("%s: code %q, want %q", name, e.Code, c.code)
		}
		if err != nil && strings.Contains(err.Error(), "xxx") {
			t.Errorf("%s: the error holds text of the model", name)
		}
		for _, call := range calls {
			if call.ID == "" || call.ParseError != "" || call.Incomplete || call.Dialect != "tags" {
				t.Errorf("%s: got %+v", name, call)
			}
		}
	}
	if _, _, err := dialect.Parse("x", "none such", nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("got %v", err)
	}
}
