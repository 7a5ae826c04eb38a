package tool

import (
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A DefinitionsError says that the definitions of a set or of a run exceed a limit. [NewSet], [Set.Add] and their relatives wrap
// it in a *[lathe.Error] of code invalid_config, [Runner.Check] and [Work.Check] in one of code too_many_tools.
type DefinitionsError struct {
	Limit string // the key of the limit: max_tools or max_tools_bytes
	Have  int    // tools, or bytes of their definitions
	Most  int    // what the limit allows
	// Unsearched says why the search of the set does not keep the run within the limit, in words for operators and clients; ""
	// if the set has no search, and for a set.
	Unsearched string

	remedy  string // for operators: the setting that lets the run search
	origins string // the share of each origin
}

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

// ClientText returns the text for a client: what exceeds which limit, and why the run cannot search. It has neither the origins of
// tools nor settings that the operator can change.
func (e *DefinitionsError) ClientText() string {
	if e.Unsearched == "" {
		return e.exceeds()
	}
	return e.exceeds() + "; " + e.Unsearched
}

// exceeds returns what exceeds which limit: "204 tools, and tool_calling.max_tools is 128".
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

// checkDefinitions bounds the definitions that are sent to a model.
func checkDefinitions(specs []*lathe.ToolSpec, limits lathe.Limits) error {
	if err := exceeded(specs, definitionsSize(specs), limits); err != nil {
		return err
	}
	return nil
}

// exceeded returns which limit the definitions exceed, whose size together is known; nil: none.
func exceeded(specs []*lathe.ToolSpec, size int, limits lathe.Limits) *DefinitionsError {
	if len(specs) > limits.MaxTools {
		return &DefinitionsError{Limit: keyMaxTools, Have: len(specs), Most: limits.MaxTools, origins: countByOrigin(specs)}
	}
	if size > limits.MaxToolsBytes {
		return &DefinitionsError{Limit: keyMaxToolsBytes, Have: size, Most: limits.MaxToolsBytes, origins: byOrigin(specs, definitionSize)}
	}
	return nil
}

// unsearched says why a run that could search for tools does not.
type unsearched uint8

const (
	searches        unsearched = iota // or the set has no search
	searchWithheld                    // the policy does not allow the search
	searchTaken                       // a tool of the client has its name
	nothingToSearch                   // no tool of the set may be deferred
)

// explain sets why the run of v, whose definitions exceed a limit, does not defer more of them.
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
	default: // no search
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
