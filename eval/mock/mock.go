// Package mock makes tools whose answers are written down: values, errors, and the ways in which real
// tools misbehave. They stand where a test or an evaluation wants a tool that hangs, floods, lies or
// fails now and then. They touch nothing, and like every tool they are called by the runner only, so
// that what they do meets the same limits, policy and redaction as the real thing.
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

// A Kind says what a mock does when it is called.
type Kind string

// The kinds of [Answer].
const (
	KindValue Kind = "value" // returns Data
	KindRaw   Kind = "raw"   // returns Text as it is: what is not JSON is an invalid output
	KindEcho  Kind = "echo"  // returns its arguments
	KindSize  Kind = "size"  // returns a JSON string of Size bytes, the quotes included
	KindError Kind = "error" // fails with Code; with Data, as an output that the model is shown
	KindHang  Kind = "hang"  // returns when it is told to stop, with the error of its context
	KindPanic Kind = "panic" // panics
	KindNone  Kind = "none"  // returns neither an output nor an error
)

// An Answer is what a mock does at one call. The zero value returns null.
type Answer struct {
	Kind Kind            `json:"kind,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	Text string          `json:"text,omitempty"`
	Size int             `json:"size,omitempty"` // at most [MaxBytes]
	Code lathe.Code      `json:"code,omitempty"` // empty: execution_failed
}

// Value answers with JSON.
func Value(data string) Answer { return Answer{Kind: KindValue, Data: json.RawMessage(data)} }

// Text answers with a JSON string: the answer for texts that want something of a model.
func Text(s string) Answer {
	data, err := json.Marshal(s)
	if err != nil {
		panic("mock: a string has a JSON form")
	}
	return Answer{Kind: KindValue, Data: data}
}

// Raw answers with those bytes, which need not be JSON nor UTF-8.
func Raw(b string) Answer { return Answer{Kind: KindRaw, Text: b} }

// Echo answers with the arguments of the call.
func Echo() Answer { return Answer{Kind: KindEcho} }

// Size answers with a JSON string of n bytes. It panics when n is not from 2 to [MaxBytes].
func Size(n int) Answer {
	if n < 2 || n > MaxBytes {
		panic("mock: a size is from 2 to MaxBytes")
	}
	return Answer{Kind: KindSize, Size: n}
}

// Error answers with an error of that code.
func Error(code lathe.Code) Answer { return Answer{Kind: KindError, Code: code} }

// Hang answers not at all, until the runner gives up.
func Hang() Answer { return Answer{Kind: KindHang} }

// Panic answers with a panic.
func Panic() Answer { return Answer{Kind: KindPanic} }

// Flap fails n times with that code and then answers.
func Flap(n int, code lathe.Code, then Answer) []Answer {
	return append(slices.Repeat([]Answer{Error(code)}, n), then)
}

// A Tool is a lathe.Tool that answers as it was told: the n-th call gets the n-th answer, and each
// call beyond the last the last one. Without answers it returns null. It counts its calls: that is
// the effect that it would have had. It may be called from several goroutines at once.
type Tool struct {
	spec    *lathe.ToolSpec
	answers []Answer

	mu    sync.Mutex
	calls []json.RawMessage
}

var _ lathe.Tool = (*Tool)(nil)

// New makes a mock. What the spec leaves out is filled in: a schema that takes any object, an
// allowlist that shows everything, the origin "mock".
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

// Spec returns the definition.
func (t *Tool) Spec() *lathe.ToolSpec { return t.spec }

// Calls returns the arguments of the calls that reached the tool, in order.
func (t *Tool) Calls() []json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.calls)
}

// errMock is what an error of a mock wraps.
var errMock = errors.New("the mock was told to fail")

// Call does what the next answer says.
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
		return nil, &lathe.Error{Code: code, Op: "mock", Err: errMock}
	case KindHang:
		<-ctx.Done()
		return nil, ctx.Err()
	case KindPanic:
		panic("mock: the mock was told to panic")
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
