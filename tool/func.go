package tool

import (
	"context"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/text"
)

// FuncOptions are the properties of a tool that [Func] cannot derive from the Go function.
type FuncOptions struct {
	// Show names the fields of the output that the model may see, as [lathe.ToolSpec].Allowlist.
	// It is required: a tool without it cannot be registered. []string{"*"} shows everything.
	Show []string
	// Effect is what the function does to the world. A function without one is treated as one that writes: policies that
	// ask about writing ask about it, it is not retried or cached, and a call that was interrupted is not repeated. If no
	// approver is configured it is withheld from models, and [Work.Withheld] and RunStarted list it with the reason
	// undeclared_effect.
	Effect lathe.Effect
	// Schema replaces the schema that is made from the input type.
	Schema stdjson.RawMessage
	// OutputSchema, when set, is checked on each output.
	OutputSchema       stdjson.RawMessage
	SchemaVersion      string
	Hidden             bool
	Target             []string
	Timeout            time.Duration
	CacheTTL           time.Duration
	Concurrency        int
	Rate               float64
	Backend            string
	BackendConcurrency int
	Origin             string // "go" when empty
	// Labels say what the function touches, for policies: [lathe.LabelReadsPrivate] and the like.
	Labels []string
	// StartsRun says that the function starts runs with the context that it gets: max_depth bounds its calls, and
	// [ScopeFrom] says what such a run may have. See also package agenttool.
	StartsRun bool
	// CheckOutcome, when set, finds out the outcome of a call that an earlier process began: see [OutcomeChecker]. The
	// output of a finished call has the JSON form of what the function returned as its Data.
	CheckOutcome func(ctx context.Context, call *lathe.CallMeta) (Recovery, error)
}

// Func makes a tool of a Go function. Its schema is made from In, which must be a struct or a map:
// field names and descriptions come from the tags `json` and `jsonschema`. Arguments are decoded
// strictly: names are case-sensitive, unknown ones are refused, an integer field takes every number without a
// fraction, 1.0 and 1e2 too, and a number in a field of type any arrives as a [encoding/json.Number] with all its digits.
// Arguments that fit the schema but not the Go types are answered invalid_arguments.
//
// Out is written as JSON with the keys of maps in order, and a Number as the number that it is; a
// function may also return a *[lathe.Output] of its own. The model gets the text of an error made by [Fail], and the fixed
// text of the code of any other error.
//
// [Set.Add] returns the error of a definition that cannot be used: no JSON form of In, no Show, a Show that names no field of Out.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts *FuncOptions) lathe.Tool {
	var o FuncOptions
	if opts != nil {
		o = *opts
	}
	if o.Origin == "" {
		o.Origin = "go"
	}
	t := &function[In, Out]{fn: fn, checkOutcome: o.CheckOutcome, startsRun: o.StartsRun, spec: lathe.ToolSpec{
		Name: name, Description: description, Schema: slices.Clone(o.Schema), OutputSchema: slices.Clone(o.OutputSchema),
		Effect: o.Effect, Allowlist: slices.Clone(o.Show), Hidden: o.Hidden, Target: slices.Clone(o.Target),
		SchemaVersion: o.SchemaVersion, Timeout: o.Timeout, CacheTTL: o.CacheTTL, Concurrency: o.Concurrency, Rate: o.Rate,
		Backend: o.Backend, BackendConcurrency: o.BackendConcurrency, Origin: o.Origin, Labels: slices.Clone(o.Labels),
	}}
	if fn == nil {
		t.err = errors.New("the function is nil")
	}
	if len(t.spec.Schema) == 0 {
		s, err := schema.For(reflect.TypeFor[In]())
		if err != nil {
			t.err = fmt.Errorf("no schema for its input: %w", err)
		}
		t.spec.Schema = s
	}
	if t.err == nil {
		t.err = checkShow(reflect.TypeFor[Out](), o.Show)
	}
	return t
}

// checkShow returns an error if a path of Show begins with a name that no field of the output has. Only the JSON of a struct is known
// from its type.
func checkShow(out reflect.Type, show []string) error {
	for out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	if out.Kind() != reflect.Struct || out == reflect.TypeFor[lathe.Output]() || hasOwnJSON(out) || hasOwnJSON(reflect.PointerTo(out)) {
		return nil
	}
	s, err := schema.For(out)
	if err != nil {
		return nil //nolint:nilerr // what the output is shows when it is written
	}
	more, _ := rawjson.Get(s, "additionalProperties")
	fields, _ := rawjson.Get(s, "properties")
	if string(more) != "false" {
		return nil
	}
	var names []string
	if len(fields) > 0 {
		for key := range rawjson.Members(fields) {
			names = append(names, rawjson.Text(key))
		}
	}
	for _, path := range show {
		name, _, _ := strings.Cut(path, ".")
		if name == "*" || slices.Contains(names, name) {
			continue
		}
		return fmt.Errorf("the list Show has %q, and the JSON of the output has no member %q: %s", path, name, text.Suggest(name, names, "it has "+strings.Join(names, ", ")))
	}
	return nil
}

// hasOwnJSON reports whether a type writes its JSON itself.
func hasOwnJSON(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[stdjson.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
		t.Implements(reflect.TypeFor[json.MarshalerTo]())
}

type function[In, Out any] struct {
	spec lathe.ToolSpec
	fn   func(context.Context, In) (Out, error)
	err  error // returned when the tool is registered
	// checkOutcome may be nil.
	checkOutcome func(context.Context, *lathe.CallMeta) (Recovery, error)
	startsRun    bool
}

// StartsRun implements [RunStarter].
func (f *function[In, Out]) StartsRun() bool { return f.startsRun }

func (f *function[In, Out]) Spec() *lathe.ToolSpec { return &f.spec }

func (f *function[In, Out]) broken() error { return f.err }

// CheckOutcome implements [OutcomeChecker]. Without a function for it the outcome is unknown.
func (f *function[In, Out]) CheckOutcome(ctx context.Context, call *lathe.CallMeta) (Recovery, error) {
	if f.checkOutcome == nil {
		return Recovery{}, nil
	}
	return f.checkOutcome(ctx, call)
}

func (f *function[In, Out]) Call(ctx context.Context, args stdjson.RawMessage) (*lathe.Output, error) {
	var in In
	if err := json.Unmarshal(args, &in, strict); err != nil {
		return nil, misfit(err)
	}
	v, err := f.fn(ctx, in)
	if err != nil {
		return nil, err
	}
	if out, ok := any(v).(*lathe.Output); ok {
		return out, nil
	}
	data, err := json.Marshal(v, plain)
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidOutput, Op: "tool: write output", Err: err}
	}
	return &lathe.Output{Data: data}, nil
}

// strict holds how arguments are decoded. It is read only.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(readNumber)),
)

// plain holds how outputs are written. It is read only.
var plain = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(writeDigits)),
)

// writeDigits writes a number as it was read; without it, a Number would become a string.
func writeDigits(enc *jsontext.Encoder, n stdjson.Number) error {
	if n == "" { // the zero value
		n = "0"
	}
	return enc.WriteValue(jsontext.Value(n))
}

// misfit returns the error for arguments that do not fit the Go types. It does not use the text of the decoder, which may
// quote the arguments.
func misfit(err error) error {
	var se *json.SemanticError
	if errors.As(err, &se) && se.JSONPointer != "" {
		if se.GoType != nil {
			return Fail(lathe.CodeInvalidArguments, "the value at %s does not fit %s", se.JSONPointer, se.GoType.Kind())
		}
		return Fail(lathe.CodeInvalidArguments, "the value at %s is not accepted", se.JSONPointer)
	}
	return Fail(lathe.CodeInvalidArguments, "the arguments do not fit what the tool takes")
}
