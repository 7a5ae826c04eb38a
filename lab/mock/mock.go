// Package mock makes tools with configured answers: values, errors, and the faults of real tools. Tests and evaluations use them if a tool
// must hang, return too much data, return a wrong value or fail temporarily. They have no side effects, apart from those of a [Func]. The
// runner treats them like every tool, with the same limits, policy and redaction.
package mock

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
)

// MaxBytes bounds the output of an [Answer], in bytes.
const MaxBytes = 64 << 20

// A Kind is the behaviour of a mock in one call.
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

// An Answer is the result of one call of a mock. The zero value returns null.
type Answer struct {
	Kind Kind            `json:"kind,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	Text string          `json:"text,omitempty"`
	Size int             `json:"size,omitempty"` // at most [MaxBytes]
	Code lathe.Code      `json:"code,omitempty"` // empty: execution_failed
	// Func is called by an answer of [KindFunc], with the arguments of the call, which it must not change. Calls that
	// are made at the same time call it at the same time.
	Func func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) `json:"-"`
}

// Value returns an answer with a JSON value.
func Value(data string) Answer { return Answer{Kind: KindValue, Data: json.RawMessage(data)} }

// Text returns an answer with a JSON string, for example a text with instructions for a model.
func Text(s string) Answer {
	data, err := json.Marshal(s)
	if err != nil {
		panic("mock: a string has a JSON form")
	}
	return Answer{Kind: KindValue, Data: data}
}

// Raw returns an answer with these bytes, which need not be JSON or UTF-8.
func Raw(b string) Answer { return Answer{Kind: KindRaw, Text: b} }

// Func returns an answer with the result of fn: see [Answer].
func Func(fn func(ctx context.Context, args json.RawMessage) (*lathe.Output, error)) Answer {
	return Answer{Kind: KindFunc, Func: fn}
}

// Echo returns an answer with the arguments of the call.
func Echo() Answer { return Answer{Kind: KindEcho} }

// Size returns an answer with a JSON string of n bytes. It panics if n is not from 2 to [MaxBytes].
func Size(n int) Answer {
	if n < 2 || n > MaxBytes {
		panic("mock: a size is from 2 to MaxBytes")
	}
	return Answer{Kind: KindSize, Size: n}
}

// Error returns an answer with an error of this code.
func Error(code lathe.Code) Answer { return Answer{Kind: KindError, Code: code} }

// Hang returns an answer that blocks until the runner cancels the call.
func Hang() Answer { return Answer{Kind: KindHang} }

// Panic returns an answer that panics.
func Panic() Answer { return Answer{Kind: KindPanic} }

// Flap returns n errors of this code, followed by the answer then.
func Flap(n int, code lathe.Code, then Answer) []Answer {
	return append(slices.Repeat([]Answer{Error(code)}, n), then)
}

// A Tool is a lathe.Tool with configured answers: the n-th call gets the n-th answer, and calls beyond the last answer get the last one.
// Without answers it returns null. It records the arguments of its calls. It may be called from several goroutines at once.
type Tool struct {
	spec    *lathe.ToolSpec
	answers []Answer

	mu    sync.Mutex
	calls []json.RawMessage
}

var _ lathe.Tool = (*Tool)(nil)

// New returns a mock. It fills in missing fields of the spec: a schema that accepts any object, an allowlist that shows everything, and the
// origin "mock".
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

// Calls returns the arguments of the calls that reached the tool, in order.
func (t *Tool) Calls() []json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.calls)
}

// errMock is wrapped by every error of a mock.
var errMock = errors.New("the mock is configured to fail")

// Call records the arguments and returns the next answer.
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
		code := a.Code
		if code == "" {
			code = lathe.CodeExecutionFailed
		}
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
