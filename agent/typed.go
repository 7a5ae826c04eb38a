package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/loop"
)

// RunAs executes one run, as [Agent.Run] does, and returns its answer as a value of type T. The model receives the JSON Schema of T, which
// [tool.SchemaOf] describes, in place of a ResponseFormat of the agent's sampling. If the JSON form of T is not an object, as with
// []string, the schema is that of an object with T as its only member, value. If the answer of the model does not match the schema, the
// model is asked again with the error, max_answer_repairs times.
//
// If no answer matches, or the run ends by a limit, the error has the code invalid_answer, and the result contains the text of the last
// answer. If the run is parked, the error wraps [ErrWaiting], and [ValueOf] returns the value later. If T has no JSON Schema, the error has
// the code invalid_config, and no run is started. On an error, value is the zero value or incomplete.
func RunAs[T any](ctx context.Context, a *Agent, prompt ...lathe.Message) (value T, res *event.Result, err error) {
	f, err := formatOf[T]()
	if err != nil {
		return value, nil, err
	}
	if res, err = f.ask(a).Run(ctx, prompt...); err != nil {
		return value, res, err
	}
	err = f.read(res, &value)
	return value, res, err
}

// ValueOf returns the answer in res, the result of [Agent.Wait], as a value of type T. It is for runs of [RunAs] that were parked. res must
// not be nil. The error has the code invalid_answer if the run did not end with an answer, or if the answer does not fit T.
func ValueOf[T any](res *event.Result) (value T, err error) {
	f, err := formatOf[T]()
	if err == nil {
		err = f.read(res, &value)
	}
	return value, err
}

// A Partial is a value that [StreamAs] yields: the part of the answer that was received so far, or the complete answer.
type Partial[T any] struct {
	// Value has the fields that were received so far. A string may be incomplete; a number, true, false or null is complete.
	Value T
	// Result is the result of the run if Value is the complete answer, and nil before.
	Result *event.Result
}

// StreamAs executes one run, as [RunAs] does. While the model writes, it yields partial values; then it yields the complete answer, whose
// Partial has the Result. A partial value may come from a turn that does not end with the answer: each value replaces the one before. If
// RunAs would return an error, the last pair has that error. If the range ends early, the run is cancelled.
func StreamAs[T any](ctx context.Context, a *Agent, prompt ...lathe.Message) iter.Seq2[Partial[T], error] {
	return func(yield func(Partial[T], error) bool) {
		f, err := formatOf[T]()
		if err != nil {
			yield(Partial[T]{}, err)
			return
		}
		var text strings.Builder
		read := 0 // the length of the text that the last value was read from
		var last Partial[T]
		for e, err := range f.ask(a).Stream(ctx, prompt...) {
			if err != nil {
				yield(last, err)
				return
			}
			switch d := e.Data.(type) {
			case *event.ModelCallStarted:
				text.Reset()
				read = 0
			case *event.TextDelta:
				text.WriteString(d.Text)
				// Each value is read from the whole text, so the steps grow with it: the time is linear in the length of the answer.
				if n := text.Len(); n < read+max(16, read/16) {
					continue
				}
				read = text.Len()
				var p Partial[T]
				if f.decode(complete([]byte(text.String())), &p.Value) == nil && !yield(p, nil) {
					return
				}
			default:
				if end := loop.Ended(d); end != nil {
					last.Result = end
				}
			}
		}
		yield(last, f.read(last.Result, &last.Value))
	}
}

// A format is the response format of a Go type.
type format struct {
	source json.RawMessage // the value of [lathe.Sampling].ResponseFormat
	boxed  bool            // the type is not a JSON object: it is sent as an object with one field, value
}

// formatOf returns the response format of T.
func formatOf[T any]() (*format, error) {
	t := reflect.TypeFor[T]()
	fail := func(err error) (*format, error) {
		return nil, lathe.CodeInvalidConfig.Wrap("agent: answer of type "+t.String(), err)
	}
	s, err := schema.For(t)
	if err != nil {
		return fail(err)
	}
	f := &format{}
	if string(rawjson.At(s, "type")) != `"object"` {
		f.boxed = true
		s = fmt.Appendf(nil, `{"additionalProperties":false,"properties":{"value":%s},"required":["value"],"type":"object"}`, s)
	}
	named := map[string]any{"name": formatName(t), "schema": json.RawMessage(s)}
	if allRequired(s) { // a server takes a strict schema only then; otherwise the answer is checked here all the same
		named["strict"] = true
	}
	if f.source, err = json.Marshal(map[string]any{"type": "json_schema", "json_schema": named}); err != nil {
		return fail(err)
	}
	return f, nil
}

// formatName returns the name of a type in the form that servers accept for a schema: 1 to 64 of the characters a-z, A-Z, 0-9 and _.
func formatName(t reflect.Type) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", r) {
			return r
		}
		return '_'
	}, t.Name()), "_")
	name = cmp.Or(name, "answer")
	return name[:min(len(name), 64)]
}

// ask returns the agent whose runs have the format.
func (f *format) ask(a *Agent) *Agent {
	in := a.in
	sampling := a.sampling
	if in.Sampling != nil {
		sampling = *in.Sampling
	}
	sampling.ResponseFormat = f.source
	in.Sampling = &sampling
	return a.With(in)
}

// read decodes the answer of a run.
func (f *format) read(res *event.Result, v any) error {
	if res.Reason != lathe.ReasonAnswered {
		return codeInvalidAnswer.Errorf("agent: answer", "the run ended %s, before an answer that was checked against the JSON Schema", res.Reason)
	}
	if err := f.decode([]byte(res.Answer), v); err != nil {
		return codeInvalidAnswer.Errorf("agent: answer", "the answer matches its JSON Schema and does not fit the Go type: %w", err)
	}
	return nil
}

// codeInvalidAnswer is the code of a run that ends with [lathe.ReasonInvalidAnswer].
const codeInvalidAnswer = lathe.Code(lathe.ReasonInvalidAnswer)

var errNoValue = errors.New("no value")

func (f *format) decode(text []byte, v any) error {
	if f.boxed {
		var found bool
		if text, found = rawjson.Get(text, "value"); !found {
			return errNoValue
		}
	}
	return json.Unmarshal(text, v)
}

// allRequired reports whether each object in a schema that [schema.For] has derived requires all of its members and allows no others.
func allRequired(s []byte) bool {
	var doc any
	return json.Unmarshal(s, &doc) == nil && strictly(doc)
}

// strictly is allRequired for a decoded schema.
func strictly(doc any) bool {
	switch doc := doc.(type) {
	case []any:
		return !slices.ContainsFunc(doc, func(v any) bool { return !strictly(v) })
	case map[string]any:
		if members, ok := doc["properties"].(map[string]any); ok || doc["type"] == "object" {
			required, _ := doc["required"].([]any)
			if len(required) != len(members) || doc["additionalProperties"] != false {
				return false
			}
		}
		for _, v := range doc {
			if !strictly(v) {
				return false
			}
		}
	}
	return true
}
