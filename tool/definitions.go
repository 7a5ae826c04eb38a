package tool

import (
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A DefinitionsError means that the tool definitions of a set or of a run exceed max_tools or max_tools_bytes. It is wrapped in a
// *[lathe.Error]: [NewSet] and the methods of [Set] return it with the code invalid_config, [Runner.Check] and [Work.Check] with
// too_many_tools.
type DefinitionsError struct {
	Limit string // config key of the exceeded limit: max_tools or max_tools_bytes
	Have  int    // number of tools, or size of their definitions in bytes
	Most  int    // the limit that Have exceeds
	// Unsearched says, for operators and clients, why tool search cannot keep the run within the limit. It is "" if the limit is that of a
	// set, or if the set has no tool search.
	Unsearched string

	remedy  string // for operators: the setting that allows the run to search
	origins string // the share of each origin
}

// Error returns the text for operators: it contains the number of tools by origin, and the setting to change if one is known.
func (e *DefinitionsError) Error() string {
	text := e.exceeds() + ": " + e.origins
	if e.Unsearched != "" {
		text += "; " + e.Unsearched
	}
	if e.remedy != "" {
		text += ": " + e.remedy
	}
	return text
}

// ClientText returns the text for a client: the exceeded limit and Unsearched. Unlike Error, it contains neither origins of tools nor
// settings.
func (e *DefinitionsError) ClientText() string {
	if e.Unsearched == "" {
		return e.exceeds()
	}
	return e.exceeds() + "; " + e.Unsearched
}

// exceeds returns a text such as "204 tools, and tool_calling.max_tools is 128".
func (e *DefinitionsError) exceeds() string {
	if e.Limit == keyMaxToolsBytes {
		return fmt.Sprintf("the definitions have %d bytes, and tool_calling.%s is %d", e.Have, e.Limit, e.Most)
	}
	return fmt.Sprintf("%d tools, and tool_calling.%s is %d", e.Have, e.Limit, e.Most)
}

const (
	keyMaxTools      = "max_tools"
	keyMaxToolsBytes = "max_tools_bytes"
)

// checkDefinitions returns an error if the definitions exceed the limits of a request.
func checkDefinitions(specs []*lathe.ToolSpec, limits lathe.Limits) error {
	if err := exceeded(specs, definitionsSize(specs), limits); err != nil {
		return err
	}
	return nil
}

// exceeded returns an error that names the limit which the definitions exceed; nil: none. size is their total size.
func exceeded(specs []*lathe.ToolSpec, size int, limits lathe.Limits) *DefinitionsError {
	if len(specs) > limits.MaxTools {
		return &DefinitionsError{Limit: keyMaxTools, Have: len(specs), Most: limits.MaxTools, origins: countByOrigin(specs)}
	}
	if size > limits.MaxToolsBytes {
		return &DefinitionsError{Limit: keyMaxToolsBytes, Have: size, Most: limits.MaxToolsBytes, origins: byOrigin(specs, definitionSize)}
	}
	return nil
}

// unsearched is the reason why a run does not search for tools.
type unsearched uint8

const (
	searches        unsearched = iota // the run searches, or the set has no search
	searchWithheld                    // the policy does not allow the search
	searchTaken                       // a tool of the client has the name of the search
	nothingToSearch                   // no tool of the set may be deferred
)

// explain sets the texts of e that state why the run does not defer more definitions.
func (v *view) explain(e *DefinitionsError) {
	switch {
	case v.unsearched == searchWithheld:
		held := v.heldSearch()
		decides := "denies"
		if held.Reason == event.WithheldApproval {
			decides = "asks for an approval of"
		}
		e.Unsearched = fmt.Sprintf("policy %s %s, so that the run cannot search for tools", decides, SearchName)
		e.remedy = "policy.tools." + SearchName + ": allow lets it, if no rule denies it"
		if held.Rule != "" {
			e.remedy += fmt.Sprintf(" (rule %s decided)", held.Rule)
		}
	case v.unsearched == searchTaken:
		e.Unsearched = "the request has a tool of its own with the name " + SearchName + ", so that the run cannot search for tools"
	case v.unsearched == nothingToSearch || v.deferral.on:
		e.Unsearched = "tool search never defers built-in tools, those of the request and those that tools.search.always names"
	default: // the set has no search
	}
}

// heldSearch returns the entry of the search among the withheld tools.
func (v *view) heldSearch() event.WithheldTool {
	for _, held := range v.withheld {
		if held.Tool == SearchName {
			return held
		}
	}
	return event.WithheldTool{}
}
