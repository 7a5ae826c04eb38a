package secret_test

import (
	"html"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

// A known value is found in the forms in which servers and models write it.
func TestFinderFindsEscapedValues(t *testing.T) {
	t.Parallel()
	f := secret.NewFinder(map[string]secret.Secret{"k": secret.New("tool-key/7&x")}, false)
	for _, form := range []string{
		"tool-key/7&x", "%74%6F%6F%6C%2D%6B%65%79%2F%37%26%78", "%74%6f%6f%6c%2d%6b%65%79%2f%37%26%78", "tool%2dkey%2f7%26x", "tool%2Dkey%2F7%26x", "tool-key%2F7%26x",
		"74 6f 6f 6c 2d 6b 65 79 2f 37 26 78", "74:6F:6F:6C:2D:6B:65:79:2F:37:26:78", `\u0074\u006f\u006f\u006c\u002d\u006b\u0065\u0079\u002f\u0037\u0026\u0078`,
		"&#116;&#111;&#111;&#108;&#45;&#107;&#101;&#121;&#47;&#55;&#38;&#120;", html.EscapeString("no") + "tool&#45;key&#47;7&#38;x",
	} {
		got := f.Append(nil, []byte("a "+form+" b"), func(dst []byte, name string, _ []byte) []byte { return append(dst, "["+name+"]"...) })
		if strings.TrimPrefix(string(got), "a no") != "a [k] b" && string(got) != "a [k] b" && string(got) != "a no[k] b" {
			t.Errorf("%s: %s", form, got)
		}
	}
}
