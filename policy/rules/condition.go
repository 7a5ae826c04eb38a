package rules

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/lathe-run/lathe"
)

// A compiler compiles conditions. It makes their CEL environment, which all share, for the first one.
type compiler struct {
	maxCost uint64
	env     *cel.Env
	broken  error
}

func (c *compiler) environment() (*cel.Env, error) {
	if c.env == nil && c.broken == nil {
		c.env, c.broken = cel.NewEnv(
			cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
			cel.Variable("tool", cel.StringType),
			cel.Variable("effect", cel.StringType),
			cel.Variable("origin", cel.StringType),
			cel.Variable("principal", cel.StringType),
			cel.Variable("session", cel.StringType),
			cel.Variable("depth", cel.IntType),
			cel.Variable("turn", cel.IntType),
			cel.Variable("seq", cel.IntType),
			cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
			cel.Variable("used", cel.MapType(cel.StringType, cel.IntType)),
			cel.CrossTypeNumericComparisons(true),
			cel.DefaultUTCTimeZone(true),
			cel.ParserRecursionLimit(maxWhenDepth),
			cel.ParserExpressionSizeLimit(maxWhenBytes),
			cel.ExtendedValidations(),
		)
	}
	return c.env, c.broken
}

func (c *compiler) compile(text string) (cel.Program, Problems) {
	env, err := c.environment()
	if err != nil {
		return nil, Problems{{Field: "when", Message: err.Error()}}
	}
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		var bad Problems
		for _, e := range issues.Errors() {
			bad = append(bad, Problem{Field: "when", Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: explain(e.Message)})
			if strings.HasPrefix(e.Message, "Syntax error: ") {
				break // later errors of the parser follow from its first
			}
		}
		return nil, bad
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, Problems{{Field: "when", Line: 1, Column: 1,
			Message: fmt.Sprintf("a condition is true or false, and this is of type %s: compare it with something", ast.OutputType())}}
	}
	prg, err := env.Program(ast, cel.CostLimit(c.maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, Problems{{Field: "when", Line: 1, Column: 1, Message: err.Error()}}
	}
	return prg, nil
}

// evaluate returns the value of the condition. It returns an error for a value that is not a bool, and for a panic of the CEL library.
func evaluate(prg cel.Program, vars *variables) (yes bool, err error) {
	defer func() {
		if recover() != nil {
			yes, err = false, errors.New("it broke off")
		}
	}()
	out, _, err := prg.Eval(vars)
	if err != nil {
		if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) {
			return false, errors.New("the cost limit is reached")
		}
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("it is not true or false")
	}
	return bool(b), nil
}

// variables are the variables of a condition for one call. The arguments are decoded when a condition first reads them.
type variables struct {
	call *lathe.CallInfo
	args map[string]any
	bad  error
}

var _ interpreter.Activation = (*variables)(nil)

// ResolveName implements [interpreter.Activation]: it returns the value of a variable.
func (v *variables) ResolveName(name string) (any, bool) {
	c := v.call
	switch name {
	case "args":
		if v.args == nil && v.bad == nil {
			v.args, v.bad = decode(c.Args)
		}
		if v.bad != nil {
			return types.NewErr("the arguments cannot be read"), true
		}
		return v.args, true
	case "tool":
		return c.Tool.Name, true
	case "effect":
		return c.Tool.Effect.String(), true
	case "origin":
		return c.Tool.Origin, true
	case "principal":
		return c.Run.Principal, true
	case "session":
		return c.Run.SessionID, true
	case "depth":
		return c.Run.Depth, true
	case "turn":
		return c.Turn, true
	case "seq":
		return c.Seq, true
	case "labels":
		if c.Run.Labels == nil {
			return map[string]string{}, true
		}
		return c.Run.Labels, true
	case "used":
		used := map[string]int{}
		for _, u := range c.Used {
			used[u.Name] = u.Calls
		}
		return used, true
	}
	return nil, false
}

// Parent implements [interpreter.Activation]: it returns nil, because there are no other variables.
func (*variables) Parent() interpreter.Activation { return nil }
