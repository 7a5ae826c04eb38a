package text

import "testing"

func TestCutIndex(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, list, rest string
		n                int
		ok               bool
	}{
		{"messages[2].parts[0]", "messages", ".parts[0]", 2, true}, {"messages[12]", "messages", "", 12, true},
		{"messages[2", "messages", "messages[2", 0, false}, {"messages[-1]", "messages", "messages[-1]", 0, false}, {"tools[0]", "messages", "tools[0]", 0, false},
		{"", "messages", "", 0, false}, {"messages[x]", "messages", "messages[x]", 0, false},
	} {
		if n, rest, ok := CutIndex(c.path, c.list); n != c.n || rest != c.rest || ok != c.ok {
			t.Errorf("%s: %d, %s, %t", c.path, n, rest, ok)
		}
	}
}
