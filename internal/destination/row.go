// Package destination is the table of rules of model servers and models: roles and order of messages, dialects of JSON Schema, lengths,
// sampling parameters, thinking, documents. A [Row] is data. [For] chooses the row of a model, [Row.Fit] and [Conversation] apply it to a
// request in the internal form, and the codecs of the wires read the columns that determine how a member is encoded. Everything is pure and
// may be used by several goroutines at once, except for a Conversation.
package destination

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
)

// A Row contains the rules of a destination, one per column. An unset column means that no rule is known, so that nothing is changed for
// it. The number -1 means that there is no limit. Rows are compared with ==.
type Row struct {
	// System is the position that system messages may have: any (everywhere), leading (before all others) or one (a single message, before
	// all others). System messages elsewhere are sent as text of the user at their place.
	System string `key:"system" of:"any leading one"`
	// Developer is whether the server supports the role developer. If it does not (no), messages of that role are sent as system messages.
	Developer string `key:"developer" of:"yes no"`
	// Turns is whether messages of the user and the assistant must alternate (alternate) or not (any). Tool results are not counted.
	Turns string `key:"turns" of:"any alternate"`
	// Schema is the form that schemas of tools may have: any, object (an object at the root, without anyOf, oneOf and allOf there) or
	// openai (in addition without enum and not at the root, with properties there, and with items in each array).
	Schema string `key:"schema" of:"any object openai"`
	// Sampling is which of temperature and top_p the model accepts: any, one (not both), none (neither, nor top_k) or effortless (neither,
	// unless the effort is none).
	Sampling string `key:"sampling" of:"any one none effortless"`
	// Thinking is the form of a request for thinking: none, effort (a budget is sent as the nearest effort), budget (an effort is sent as a
	// budget), budget_effort (a budget and an effort, no adaptive thinking), adaptive (an effort, no budget) or level (of Gemini).
	Thinking string `key:"thinking" of:"any none effort budget budget_effort adaptive level"`
	// LeastThinking is the smallest thinking budget in tokens of a model that cannot turn thinking off.
	LeastThinking int `key:"least_thinking"`
	// Documents is the form in which a text document is sent: file, or text (as text with its title).
	Documents string `key:"documents" of:"file text"`
	// ThinkingBinding is the treatment of thinking that the server binds to everything before it: keep (Lathe changes nothing before it;
	// the server refuses it if a client has changed something) or drop_block (the request asks the server to drop it).
	ThinkingBinding string `key:"thinking_binding" of:"keep drop_block"`
	// Reasoning is which reasoning text of the history is sent: own (that of the entry's own answers) or calls (beside calls also text of
	// unknown origin, since the server may refuse calls without it).
	Reasoning string `key:"reasoning" of:"own calls"`
	// Format is whether a request may have both a response format and tools: tools (yes) or alone (no: the response format is left out of a
	// request with tools that may be called).
	Format string `key:"format" of:"tools alone"`
	// TokenLimit is the name of the member for the token limit on chat completions.
	TokenLimit string `key:"token_limit" of:"max_tokens max_completion_tokens"`
	// Status is whether items of the history have a status, on Responses.
	Status string `key:"status" of:"yes no"`
	// MaxUser is the largest length of `user` in characters, MaxStop the largest number of stop sequences, and LeastOutput the smallest
	// token limit of an answer.
	MaxUser     int `key:"max_user"`
	MaxStop     int `key:"max_stop"`
	LeastOutput int `key:"least_output"`
}

// The values of columns that are compared in code.
const (
	Leading, Level, Budget, BudgetEffort = "leading", "level", "budget", "budget_effort"
	Adaptive, Calls, Yes                 = "adaptive", "calls", "yes"
	MaxCompletionTokens                  = "max_completion_tokens"
	Keep, DropBlock                      = "keep", "drop_block"

	free, one, no             = "any", "one", "no" // one: of System
	alternate, object, openAI = "alternate", "object", "openai"
	asText, formatAlone       = "text", "alone"

	samplingOne, samplingNone, samplingEffortless = "one", "none", "effortless"
	thinkingNone, thinkingEffort                  = "none", "effort"
)

// noLimit is the value of a numeric column that states that the destination has no limit. It differs from 0, which states that no rule is
// known.
const noLimit = -1

// columns returns the names of the columns, in their order in [Row].
func columns() []string {
	t := reflect.TypeFor[Row]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("key")
	}
	return names
}

// With returns a copy of r with the columns that are set in over.
func (r Row) With(over *Row) Row {
	to, from := reflect.ValueOf(&r).Elem(), reflect.ValueOf(over).Elem()
	for i := range to.NumField() {
		if f := from.Field(i); !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
	return r
}

// Accepts returns a row with the named columns set. A number is a limit, and "any" is no limit. For an unknown column or value, the error
// suggests the nearest one or lists all.
func Accepts(rules map[string]string) (Row, error) {
	var r Row
	v := reflect.ValueOf(&r).Elem()
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		i := slices.Index(columns(), name)
		if i < 0 {
			return Row{}, fmt.Errorf("unknown rule %.40q: %s", name, text.Suggest(name, columns(), "there are "+strings.Join(columns(), ", ")))
		}
		value, words := rules[name], strings.Fields(v.Type().Field(i).Tag.Get("of"))
		if len(words) > 0 {
			if !slices.Contains(words, value) {
				return Row{}, fmt.Errorf("%s: unknown value %.40q: %s", name, value, text.Suggest(value, words, "there are "+strings.Join(words, ", ")))
			}
			v.Field(i).SetString(value)
			continue
		}
		n, err := strconv.Atoi(value)
		if value == free {
			n = noLimit
		} else if err != nil || n < 1 {
			return Row{}, fmt.Errorf("%s: %.40q is neither a number above 0 nor any", name, value)
		}
		v.Field(i).SetInt(int64(n))
	}
	return r, nil
}
