package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// An assertKind is the kind of an assert.
type assertKind string

// Kinds of assert, by their key in a suite.
const (
	assertState     assertKind = "state"     // the value at Pointer of the workspace equals Equals
	assertCalled    assertKind = "called"    // Tool ("*": any) was called at least AtLeast and at most AtMost times
	assertOrder     assertKind = "order"     // the first calls of Tools were made in this order
	assertArguments assertKind = "arguments" // at least one call of Tool has Equals at Pointer; if Missing is set, no call has a value at Pointer
	assertGuard     assertKind = "guard"     // at least one call got the error Code
	assertFailed    assertKind = "failed"    // at least one call of Tool failed, with Code if that is set
	assertNotAsked  assertKind = "not_asked" // no call names Tool
	assertTogether  assertKind = "together"  // one message has calls of all Tools, each with the given outcome
	assertText      assertKind = "text"      // the last text of the model is Text
	assertExecuted  assertKind = "executed"  // the code of the mock Tool ran at least AtLeast and at most AtMost times, with Equals at Pointer if that is set
	assertRefused   assertKind = "refused"   // every call of Tool got an error, with Code if that is set
	assertUntold    assertKind = "untold"    // the model has not received Text
	assertSaid      assertKind = "said"      // at least one text of the model contains Text, ignoring case
	assertDatabase  assertKind = "database"  // the value at Pointer of the database equals Equals
)

// An assert is one condition on a run.
type assert struct {
	Kind    assertKind      `json:"kind"`
	Tool    string          `json:"tool,omitempty"`
	Tools   []string        `json:"tools,omitempty"`
	Pointer string          `json:"pointer,omitempty"` // RFC 6901
	Equals  json.RawMessage `json:"equals,omitempty"`
	Missing bool            `json:"missing,omitempty"`
	AtLeast int             `json:"at_least,omitempty"`
	AtMost  *int            `json:"at_most,omitempty"`
	Code    lathe.Code      `json:"code,omitempty"`
	Text    string          `json:"text,omitempty"`
	// Tolerant ignores differences of case, quotes, emphasis, white space and final punctuation.
	Tolerant bool `json:"tolerant,omitempty"`
	// Provoked: the assert applies only after a mistake of the model. If only such asserts fail, the scenario did not apply to the run.
	Provoked bool `json:"provoked,omitempty"`
}

// Group returns the part of the score to which the assert belongs: "state", "trace" or "text".
func (a *assert) Group() string {
	switch a.Kind {
	case assertState, assertText:
		return string(a.Kind)
	case assertDatabase:
		return string(assertState)
	case assertSaid:
		return string(assertText)
	default:
		return "trace"
	}
}

// A Check is the result of one assert of a scenario. An assert is a condition that a run must satisfy.
type Check struct {
	Group  string `json:"group"`  // what it is about: state, trace or text
	Assert string `json:"assert"` // the assert as text
	OK     bool   `json:"ok"`
	Got    string `json:"got,omitempty"` // the actual value, if OK is false
	// Provoked says that the assert is about a mistake that the scenario provokes.
	Provoked bool `json:"provoked,omitempty"`
}

// maxGot is the largest number of bytes of a value that a check quotes.
const maxGot = 200

// An asked call is a call that the model requested, with its outcome.
type asked struct {
	turn   int // number of the assistant message, from 1
	name   string
	args   string
	failed bool
	code   lathe.Code
}

// calls returns the requested calls of a history, in order.
func calls(history []lathe.Message) []asked {
	var out []asked
	byID := map[string]int{}
	turn := 0
	for _, m := range history {
		if m.Role == lathe.RoleAssistant {
			turn++
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				byID[p.ID] = len(out)
				out = append(out, asked{turn: turn, name: p.Name, args: p.Arguments})
			case lathe.ToolResult:
				if n, ok := byID[p.CallID]; ok {
					out[n].failed, out[n].code = p.IsError, p.Code
				}
			default: // contains no calls
			}
		}
	}
	return out
}

// outcome has the parts of a run that asserts check.
type outcome struct {
	state func(pointer string) (json.RawMessage, error)
	calls []asked
	text  string
	said  []string // all texts of the model for the user
	// executed are the calls that reached mocks; reported has the texts of assertUntold that the model received.
	executed []executed
	reported map[string]bool
}

// An executed call is a call that reached a mock.
type executed struct {
	tool string
	args json.RawMessage
}

// anyTool as the name of a tool means every tool.
const anyTool = "*"

// check evaluates one assert.
func (a *assert) check(o *outcome) Check {
	words, got, ok := a.evaluate(o)
	c := Check{Group: a.Group(), Assert: words, OK: ok, Provoked: a.Provoked}
	if !ok {
		c.Got = clip(got, maxGot)
	}
	return c
}

// evaluate returns the condition in words, what the run has instead, and whether the condition holds.
func (a *assert) evaluate(o *outcome) (words, got string, ok bool) {
	made := outcomes(o.calls)
	switch a.Kind {
	case assertState, assertDatabase:
		at := a.Pointer
		if a.Kind == assertDatabase {
			at = draft + at
		}
		raw, err := o.state(at)
		return fmt.Sprintf("%s %s is %s", a.Kind, a.Pointer, a.Equals), string(raw), err == nil && rawjson.Equal(raw, a.Equals)
	case assertCalled:
		return a.called(o)
	case assertOrder:
		return "first calls in the order " + strings.Join(a.Tools, ", "), made, a.order(o)
	case assertArguments:
		return a.arguments(o)
	case assertGuard:
		return fmt.Sprintf("guard %s fired", a.Code), made, slices.ContainsFunc(o.calls, func(c asked) bool { return c.code == a.Code })
	case assertFailed:
		words = strings.TrimRight(fmt.Sprintf("a call of %s failed %s", a.Tool, a.Code), " ")
		return words, made, slices.ContainsFunc(o.calls, func(c asked) bool { return c.name == a.Tool && a.failure(c) })
	case assertNotAsked:
		return a.Tool + " is not asked for", made, !slices.ContainsFunc(o.calls, func(c asked) bool { return names(c.name, a.Tool) })
	case assertTogether:
		return "one message holds " + strings.Join(a.Tools, " and "), made, a.together(o)
	case assertExecuted:
		return a.ran(o)
	case assertRefused:
		words = strings.TrimRight(fmt.Sprintf("every call of %s is refused %s", a.Tool, a.Code), " ")
		return words, made, !slices.ContainsFunc(o.calls, func(c asked) bool { return names(c.name, a.Tool) && !a.failure(c) })
	case assertUntold:
		return fmt.Sprintf("the model is not told %q", a.Text), "it was", !o.reported[a.Text]
	case assertSaid:
		said := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(a.Text)) }
		return fmt.Sprintf("the model says %q", a.Text), strings.Join(o.said, " | "), slices.ContainsFunc(o.said, said)
	case assertText:
		return fmt.Sprintf("last words %q", a.Text), o.text, strings.TrimSpace(o.text) == a.Text || a.Tolerant && plainWords(o.text) == plainWords(a.Text)
	}
	return "", made, false
}

// failure reports whether a call failed, with Code if that is set.
func (a *assert) failure(c asked) bool { return c.failed && (a.Code == "" || c.code == a.Code) }

func (a *assert) called(o *outcome) (words, got string, ok bool) {
	n := 0
	for _, c := range o.calls {
		if a.Tool == anyTool || c.name == a.Tool {
			n++
		}
	}
	return a.counted("called", n)
}

// ran evaluates an assert of kind assertExecuted.
func (a *assert) ran(o *outcome) (words, got string, ok bool) {
	n := 0
	for _, e := range o.executed {
		if a.Tool != anyTool && e.tool != a.Tool {
			continue
		}
		if a.Pointer != "" {
			if raw, found := valueAt(e.args, a.Pointer); !found || !rawjson.Equal(raw, a.Equals) {
				continue
			}
		}
		n++
	}
	words, got, ok = a.counted("executed", n)
	if a.Pointer != "" {
		words += fmt.Sprintf(", counting %s at %s", a.Equals, a.Pointer)
	}
	return words, got, ok
}

// counted returns the required count in words, the actual count n in words, and whether n is within the bounds.
func (a *assert) counted(how string, n int) (words, got string, ok bool) {
	name := a.Tool
	if name == anyTool {
		name = "any tool"
	}
	words = name + " " + how
	switch least, most := a.AtLeast, a.AtMost; {
	case most != nil && *most == 0:
		words = name + " not " + how
	case most != nil && *most == least:
		words += " just " + times(least)
	case most != nil && least == 0:
		words += " at most " + times(*most)
	case most != nil:
		words += fmt.Sprintf(" %d to %d times", least, *most)
	case least > 1:
		words += " at least " + times(least)
	}
	return words, times(n), n >= a.AtLeast && (a.AtMost == nil || n <= *a.AtMost)
}

// times returns a number of times in words.
func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// order checks the order in which each tool was first called. A tool that was never called breaks the order.
func (a *assert) order(o *outcome) bool {
	ok := true
	last := -1
	for _, t := range a.Tools {
		at := slices.IndexFunc(o.calls, func(c asked) bool { return c.name == t })
		ok = ok && at > last
		last = at
	}
	return ok
}

func (a *assert) arguments(o *outcome) (words, got string, ok bool) {
	words = fmt.Sprintf("%s has %s at %s", a.Tool, a.Equals, a.Pointer)
	ok = a.Missing
	if a.Missing {
		words = fmt.Sprintf("%s has nothing at %s", a.Tool, a.Pointer)
	}
	for _, c := range o.calls {
		if c.name != a.Tool {
			continue
		}
		raw, found := valueAt([]byte(c.args), a.Pointer)
		switch {
		case !found:
			continue
		case a.Missing:
			return words, string(raw), false
		case rawjson.Equal(raw, a.Equals):
			return words, "", true
		}
		got = string(raw)
	}
	return words, got, ok
}

// together reports whether one message has a separate call for each entry of Tools.
func (a *assert) together(o *outcome) bool {
	byTurn := map[int][]asked{}
	for _, c := range o.calls {
		byTurn[c.turn] = append(byTurn[c.turn], c)
	}
	for _, calls := range byTurn {
		if a.covered(calls) {
			return true
		}
	}
	return false
}

// covered reports whether calls have a separate call for each entry of Tools, which is a name, or a name and ok or failed.
func (a *assert) covered(calls []asked) bool {
	for _, want := range a.Tools {
		name, how, _ := strings.Cut(want, " ")
		i := slices.IndexFunc(calls, func(c asked) bool {
			return c.name == name && (how == "" || (how == "failed") == c.failed)
		})
		if i < 0 {
			return false
		}
		calls = slices.Delete(slices.Clone(calls), i, i+1)
	}
	return true
}

// names reports whether the runner reads a name written by a model as that tool: it ignores white space around the name, and replaces dots
// by underscores.
func names(written, tool string) bool {
	written = strings.TrimSpace(written)
	return written == tool || strings.ReplaceAll(written, ".", "_") == tool
}

// outcomes lists calls and their outcomes on one line: "state_get ok, state_patch invalid_arguments".
func outcomes(calls []asked) string {
	if len(calls) == 0 {
		return "no calls"
	}
	words := make([]string, len(calls))
	for i, c := range calls {
		how := "ok"
		if c.failed {
			how = string(c.code)
		}
		words[i] = c.name + " " + how
	}
	return strings.Join(words, ", ")
}

// plainWords removes the differences that a tolerant comparison ignores.
func plainWords(s string) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(s), " \t\r\n.!…。！*_`\"'“”"))
}

// clip cuts s to at most n bytes without splitting a rune, and appends a mark if it cuts.
func clip(s string, n int) string {
	return text.Clip(strings.ToValidUTF8(s, "\uFFFD"), n)
}
