package dialect

// This file infers the tool of a call without a name from the arguments and the schemas of the tools.

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
	properties := rawjson.At(t.Schema, "properties")
	for key := range rawjson.Members(args) {
		if rawjson.At(properties, rawjson.Text(key)) == nil {
			return false
		}
	}
	required := rawjson.At(t.Schema, "required")
	if !strings.HasPrefix(string(required), "[") {
		return len(required) == 0
	}
	for key := range rawjson.Elements(required) {
		if rawjson.At(args, rawjson.Text(key)) == nil {
			return false
		}
	}
	return true
}
