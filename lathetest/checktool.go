package lathetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// Arguments are the arguments, as JSON texts, with which [TestTool] calls a tool.
type Arguments struct {
	Good []string // texts for which the tool must return a result; at least one. Each is used several times, also concurrently
	Bad  []string // texts for which the tool must return an error that names the fault; at least one if the tool has arguments
}

// A toolCheck checks one part of the contract of [lathe.Tool]. check returns an error if the tools that open returns violate it.
type toolCheck struct {
	name  string
	check func(open func() lathe.Tool, args *Arguments) error
}

var toolChecks = []toolCheck{
	{"the definition is valid", checkDefinition},
	{"good arguments are answered", checkGood},
	{"bad arguments are refused", checkBad},
	{"several goroutines at once", checkParallel},
	{"a tool returns after its context is done", checkContext},
}

// TestTool checks that the tools that open returns satisfy the contract of [lathe.Tool]: a valid definition with a declared effect, results
// for good arguments and errors for bad ones, concurrent calls, and a prompt return when the context is done. It really executes the calls,
// under a policy that allows all.
func TestTool(t *testing.T, open func() lathe.Tool, args *Arguments) {
	for _, c := range toolChecks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(open, args); err != nil {
				t.Error(err)
			}
		})
	}
}

// answer calls the tool once with args and returns the event of its result. If the tool panics, it returns an error.
func answer(t lathe.Tool, args string) (*event.ToolCallResult, error) {
	var panicked *tool.PanicError
	o := &Options{Tools: []lathe.Tool{t}}
	o.Runner.OnError = func(_ context.Context, _ *lathe.CallInfo, err error) { errors.As(err, &panicked) }
	rec, err := run(context.Background(), NewModel(Call(t.Spec().Name, args), Text("Done.")), "Go.", o)
	if err != nil {
		return nil, err
	}
	if panicked != nil {
		return nil, fmt.Errorf("the arguments %s make the tool panic: %w", args, panicked)
	}
	results := Only[*event.ToolCallResult](rec.Events)
	if len(results) != 1 {
		return nil, errors.Join(fmt.Errorf("the call has %d results, want 1", len(results)), rec.Err)
	}
	return results[0], nil
}

func checkDefinition(open func() lathe.Tool, _ *Arguments) error {
	t := open()
	spec := t.Spec()
	if spec == nil {
		return errors.New("Spec returns nil")
	}
	var errs []error
	if spec.Effect == lathe.EffectUndeclared {
		errs = append(errs, errors.New("the effect is not declared: the tool counts as one that writes"))
	}
	if strings.TrimSpace(spec.Description) == "" {
		errs = append(errs, errors.New("the description is empty: a model cannot know when to call the tool"))
	}
	if again := t.Spec(); again != spec {
		errs = append(errs, errors.New("Spec does not return the same value at each call"))
	}
	_, err := tool.NewSet(t)
	return errors.Join(append(errs, err)...)
}

func checkGood(open func() lathe.Tool, args *Arguments) error {
	if args == nil || len(args.Good) == 0 {
		return errors.New("Arguments.Good is empty")
	}
	var errs []error
	for _, a := range args.Good {
		res, err := answer(open(), a)
		if err == nil && res.ErrorType != "" {
			err = fmt.Errorf("the arguments %s are answered %s: %s %s", a, res.ErrorType, res.Result, res.Cause)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func checkBad(open func() lathe.Tool, args *Arguments) error {
	t := open()
	if args == nil || len(args.Bad) == 0 {
		if strings.Contains(string(t.Spec().Schema), `"properties"`) {
			return errors.New("Arguments.Bad is empty, and the tool has arguments")
		}
		return nil
	}
	var errs []error
	for _, a := range args.Bad {
		res, err := answer(t, a)
		if err == nil {
			err = namesFault(a, res.ErrorType)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// namesFault returns an error if the code of a result does not say that the arguments are wrong.
func namesFault(args string, code lathe.Code) error {
	switch code {
	case "":
		return fmt.Errorf("the arguments %s are accepted", args)
	case lathe.CodeInternal, lathe.CodeTimeout, lathe.CodeUnavailable:
		return fmt.Errorf("the arguments %s are answered %s, which does not say that they are wrong", args, code)
	}
	return nil
}

func checkParallel(open func() lathe.Tool, args *Arguments) error {
	if args == nil || len(args.Good) == 0 {
		return errors.New("Arguments.Good is empty")
	}
	t := open()
	return atOnce(func(i int) error {
		res, err := answer(t, args.Good[i%len(args.Good)])
		if err == nil && res.ErrorType != "" {
			err = fmt.Errorf("a call beside others is answered %s", res.ErrorType)
		}
		return err
	})
}

// checkContext makes a call that the runner ends after 10 ms, and returns an error if the tool continues.
func checkContext(open func() lathe.Tool, args *Arguments) (err error) {
	if args == nil || len(args.Good) == 0 {
		return errors.New("Arguments.Good is empty")
	}
	t := open()
	left := leaked(func() {
		spec := *t.Spec()
		spec.Timeout = 10 * time.Millisecond
		_, err = answer(impatient{t, &spec}, args.Good[0])
	})
	return errors.Join(err, left)
}

// impatient replaces the definition of a tool.
type impatient struct {
	lathe.Tool
	spec *lathe.ToolSpec
}

func (i impatient) Spec() *lathe.ToolSpec { return i.spec }
