package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// onlyFit returns the one tool that takes arguments with these members; "": none does, or more
// than one, or a schema does not say.
func onlyFit(tools []*lathe.ToolSpec, args []byte) string {
	if object, _, ok := rawjson.RepairObject(args); ok {
		args = object
	}
	name := ""
	for _, t := range tools {
		if !fits(t, args) {
			continue
		}
		if name != "" {
			return ""
		}
		name = t.Name
	}
	return name
}

// fits reports whether the tool's schema has each of the members and requires no other.
func fits(t *lathe.ToolSpec, args []byte) bool {
	if rawjson.Check(t.Schema, rawjson.Limits{}) != nil || rawjson.Check(args, rawjson.Limits{}) != nil {
		return false
	}
	properties, _ := rawjson.Get(t.Schema, "properties")
	for key := range rawjson.Members(args) {
		if _, ok := rawjson.Get(properties, rawjson.Text(key)); !ok {
			return false
		}
	}
	required, _ := rawjson.Get(t.Schema, "required")
	if !strings.HasPrefix(string(required), "[") {
		return len(required) == 0
	}
	for key := range rawjson.Elements(required) {
		if _, ok := rawjson.Get(args, rawjson.Text(key)); !ok {
			return false
		}
	}
	return true
}
