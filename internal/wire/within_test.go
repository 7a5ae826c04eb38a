package wire

import (
	"slices"
	"testing"
)

func TestPathsAreJoined(t *testing.T) {
	for _, c := range []struct{ at, path, want string }{
		{"input[1]", "", "input[1]"}, {"input[1]", ".type", "input[1].type"}, {"input[1]", "Type", "input[1].Type"},
		{".content", "[2].text", ".content[2].text"}, {"", ".type", ".type"}, {"", "type", "type"},
	} {
		if got := Within(c.at, BadRequest(c.path, "Wrong.")).Param; got != c.want {
			t.Errorf("%q within %q is %q, want %q", c.path, c.at, got, c.want)
		}
		paths := []string{c.path}
		if PathsWithin(c.at, paths); !slices.Equal(paths, []string{c.want}) {
			t.Errorf("%q within %q is %q, want %q", c.path, c.at, paths, c.want)
		}
	}
	if Within("input", nil) != nil {
		t.Error("no error became one")
	}
}
