package dialect

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// Parse reads the whole text of one model turn that is written in the dialect with this name. It returns the text that is shown to people,
// and the tool calls in order, as [Dialect.Read] does. tools are the tools that the model was offered; see [Options]. If the format of the
// dialect has no ids of calls, Parse gives each call an id.
//
// Calls that cannot be read, or that the end of the text truncates, are neither in calls nor in visible. The error then joins one
// *[lathe.Error] for each of them, without text of the model; the other results are valid. If no dialect has the name, the error has the
// code invalid_config.
func Parse(text, name string, tools []*lathe.ToolSpec) (visible string, calls []lathe.ToolCall, err error) {
	const op = "dialect: parse"
	d, ok := Lookup(name)
	if !ok {
		return "", nil, lathe.CodeInvalidConfig.Errorf(op, "no dialect %q; there are %s", name, strings.Join(Names(), ", "))
	}
	m, failures := d.Read(slices.Values([]string{text}), &Options{Tools: tools, Rand: rand.Uint64})
	failed := false
	for _, call := range m.Calls() {
		switch {
		case call.ParseError != "":
			failed = true
		case call.Incomplete:
			failed = true
			err = errors.Join(err, lathe.CodeIncompleteCall.Wrap(op, ErrIncomplete))
		default:
			calls = append(calls, call)
		}
	}
	for _, f := range failures {
		err = errors.Join(err, f.Code.Errorf(op, "a call of %d bytes cannot be read", f.Bytes))
	}
	visible = m.Text()
	if failed || len(calls) > 0 {
		visible = strings.TrimSpace(visible)
	}
	return visible, calls, err
}
