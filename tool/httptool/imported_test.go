package httptool_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

// A pattern of another language in a document does not cost the operation: its server checks it. In a definition of one's own it is an
// error.
func TestPatternsOfADocumentAreLeftToItsServer(t *testing.T) {
	t.Parallel()
	const doc = `{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"a","parameters":[
		{"name":"id","in":"query","schema":{"type":"string","pattern":"^(?P<id>[a-z]+)$"}},{"name":"han","in":"query","schema":{"type":"string","pattern":"^\\p{Script=Han}+$"}}]}}}}`
	defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Source: "doc", Server: "https://api.example.com", Operations: []string{"*"}, Allowlist: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := httptool.New(defs[0], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.NewSet(one); err != nil {
		t.Error(err)
	}
	if got := one.Spec().UncheckedParts; len(got) != 1 || !strings.HasPrefix(got[0], "properties.id.pattern: ") || !strings.Contains(string(one.Spec().Schema), "Script=Han") {
		t.Errorf("unchecked %q in %s", got, one.Spec().Schema)
	}
	defs[0].Imported = false
	if one, err = httptool.New(defs[0], nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.NewSet(one); err == nil || !strings.Contains(err.Error(), "cannot be matched") {
		t.Errorf("a definition of one's own: %v", err)
	}
}
