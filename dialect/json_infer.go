package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// onlyFit returns the name of the only tool whose schema fits the members of args, or "" if none or several fit.
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

// fits reports whether the tool's schema declares all members of args, and args has all members that the schema requires. It is false if
// either is invalid JSON.
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
