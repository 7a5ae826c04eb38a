// Package mock makes tools with configured answers: values, errors, and the faults of real tools. Tests and evaluations use them if a tool
// must hang, return too much data, return a wrong value or fail temporarily. They have no side effects, apart from those of a [Func]. The
// runner treats them like every tool, with the same limits, policy and redaction.
package mock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
)

// MaxBytes is the maximum of [Answer].Size.
const MaxBytes = 64 << 20

// A Kind is what a mock does in one call.
type Kind string

// The kinds of [Answer].
const (
	KindValue Kind = "value" // returns Data
	KindRaw   Kind = "raw"   // returns Text unchanged: text that is not JSON is an invalid output
	KindEcho  Kind = "echo"  // returns its arguments
	KindSize  Kind = "size"  // returns a JSON string of Size bytes, including the quotes
	KindError Kind = "error" // fails with Code; with Data as the output that the model reads
	KindHang  Kind = "hang"  // blocks until its context is done, and returns the error of the context
	KindPanic Kind = "panic" // panics
	KindNone  Kind = "none"  // returns neither an output nor an error
	KindFunc  Kind = "func"  // returns what Func returns
)

// An Answer is what a mock does in one call. The zero value returns null. Kind says which other fields are used.
type Answer struct {
	Kind Kind            `json:"kind,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	Text string          `json:"text,omitempty"`
	Size int             `json:"size,omitempty"` // at most [MaxBytes]
	Code lathe.Code      `json:"code,omitempty"` // "": execution_failed
	// Func is called for [KindFunc] with the arguments, which it must not change, by several goroutines at once if calls are concurrent.
	Func func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) `json:"-"`
}

// Value returns an Answer whose output is data, the text of a JSON value.
func Value(data string) Answer { return Answer{Kind: KindValue, Data: json.RawMessage(data)} }

// Text returns an Answer whose output is s as a JSON string.
func Text(s string) Answer {
	data, err := json.Marshal(s)
	if err != nil {
		panic("mock: a string has a JSON form")
	}
	return Answer{Kind: KindValue, Data: data}
}

// Raw returns an Answer whose output is exactly the bytes of b, which need not be JSON or UTF-8.
func Raw(b string) Answer { return Answer{Kind: KindRaw, Text: b} }

// Func returns an Answer whose output is the result of fn: see [Answer].Func.
func Func(fn func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)) Answer {
	return Answer{Kind: KindFunc, Func: fn}
}

// Echo returns an Answer whose output is the arguments of the call.
func Echo() Answer { return Answer{Kind: KindEcho} }

// Size returns an Answer whose output is a JSON string of n bytes, including its quotes. It panics if n is not from 2 to [MaxBytes].
func Size(n int) Answer {
	if n < 2 || n > MaxBytes {
		panic("mock: a size is from 2 to MaxBytes")
	}
	return Answer{Kind: KindSize, Size: n}
}

// Error returns an Answer with which the call fails with this code.
func Error(code lathe.Code) Answer { return Answer{Kind: KindError, Code: code} }

// Hang returns an Answer with which the call blocks until the runner cancels it.
func Hang() Answer { return Answer{Kind: KindHang} }

// Panic returns an Answer with which the tool panics.
func Panic() Answer { return Answer{Kind: KindPanic} }

// Flap returns n answers that fail with this code, followed by the answer then. It is for a tool that recovers. n must not be negative.
func Flap(n int, code lathe.Code, then Answer) []Answer {
	return append(slices.Repeat([]Answer{Error(code)}, n), then)
}

// A Tool is a [lathe.Tool] with prepared answers: call n gets answer n, and calls beyond the last answer get the last one. Without answers
// it returns null. It records the arguments of its calls. Its methods may be called from several goroutines at once.
type Tool struct {
	spec    *lathe.ToolSpec
	answers []Answer

	mu    sync.Mutex
	calls []json.RawMessage
}

var _ lathe.Tool = (*Tool)(nil)

// New returns a mock with a copy of spec, which must not be nil. In the copy it fills in missing fields: a schema that accepts any object, an
// allowlist of all fields, and the origin "mock".
func New(spec *lathe.ToolSpec, answers ...Answer) *Tool {
	s := *spec
	if s.Schema == nil {
		s.Schema = json.RawMessage(`{"type":"object"}`)
	}
	if s.Allowlist == nil {
		s.Allowlist = []string{"*"}
	}
	if s.Origin == "" {
		s.Origin = "mock"
	}
	return &Tool{spec: &s, answers: slices.Clone(answers)}
}

// Spec returns the definition of the tool.
func (t *Tool) Spec() *lathe.ToolSpec { return t.spec }

// Calls returns the arguments of the calls so far, in order. Calls that the runner refused are not among them.
func (t *Tool) Calls() []json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.calls)
}

// errMock is wrapped by every error of a mock.
var errMock = errors.New("the mock is configured to fail")

// Call records the arguments and returns the next answer, or does what its Kind says.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	a := t.next(args)
	switch a.Kind {
	case KindRaw:
		return &lathe.Output{Data: json.RawMessage(a.Text)}, nil
	case KindEcho:
		return &lathe.Output{Data: slices.Clone(args)}, nil
	case KindSize:
		return &lathe.Output{Data: json.RawMessage(`"` + strings.Repeat("x", a.Size-2) + `"`)}, nil
	case KindError:
		code := cmp.Or(a.Code, lathe.CodeExecutionFailed)
		if a.Data != nil {
			return &lathe.Output{Data: slices.Clone(a.Data), IsError: true, Code: code}, nil
		}
		return nil, code.Wrap("mock", errMock)
	case KindHang:
		<-ctx.Done()
		return nil, ctx.Err()
	case KindPanic:
		panic("mock: the mock is configured to panic")
	case KindFunc:
		return a.Func(ctx, args)
	case KindNone:
		return nil, nil //nolint:nilnil // what a careless tool does is the point
	default:
		return &lathe.Output{Data: slices.Clone(a.Data)}, nil
	}
}

func (t *Tool) next(args json.RawMessage) Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.calls)
	t.calls = append(t.calls, slices.Clone(args))
	if len(t.answers) == 0 {
		return Answer{}
	}
	return t.answers[min(n, len(t.answers)-1)]
}
