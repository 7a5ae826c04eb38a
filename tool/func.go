package tool

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/text"
)

// FuncOptions are the properties of a tool that [Func] cannot derive from the Go function.
type FuncOptions struct {
	// Show lists the fields of the output that the model may receive, in the syntax of [lathe.ToolSpec].Allowlist; []string{"*"} allows
	// all.
	//
	// An empty Show allows all fields, but only if the type Out declares its fields: a string, number or boolean, a type with the method
	// MarshalText, a struct whose exported fields all have a json tag (also in structs within it), or pointers, slices and maps of these.
	// For any other type, such as any, map[string]any or *[lathe.Output], Show is required: without it [Set.Add] returns an error.
	Show []string
	// Effect declares what a call changes. A function without a declared effect counts as one that writes: a policy that requires an
	// approval for writes requires it for each call, calls are neither retried nor cached, and an interrupted call is not repeated. If an
	// approval is required and the runner has no approver, the tool is withheld from models: [Options].Log receives a warning, and
	// [Work.Withheld] and RunStarted list the tool with the reason undeclared_effect.
	Effect lathe.Effect
	// Schema is the JSON Schema of the arguments; nil: it is derived from In. To change the derived schema, pass the result of [SchemaOf].
	Schema json.RawMessage
	// OutputSchema is a schema that each output must satisfy; nil: outputs are not checked.
	OutputSchema  json.RawMessage
	SchemaVersion string        // a name of the caller for the version of the schema, recorded in events
	Hidden        bool          // never sent to a model; a call of it gets the result unknown_tool
	Target        []string      // the argument fields that name what a call acts on: tool_failure_policy counts failures for each target
	Timeout       time.Duration // of one call; 0: the limit tool_timeout
	// CacheTTL is the time for which the output of a call is reused for equal calls of the same principal. It has no effect unless Effect
	// is ReadOnly; 0: outputs are not cached.
	CacheTTL    time.Duration
	Concurrency int     // maximum number of concurrent calls in this process, others wait until their deadline; 0: no limit
	Rate        float64 // maximum number of calls per second, others end with rate_limited; 0: no limit
	// Backend names what the function depends on, such as a database; "": nothing. Tools with the same Backend share a circuit breaker
	// ([Options].Circuit) and BackendConcurrency, the maximum number of their concurrent calls; 0: no limit.
	Backend            string
	BackendConcurrency int
	Origin             string // where the tool comes from, for events, policies and [Set.Replace]; "": "go"
	// Labels describe the data of the tool for policies, such as [lathe.LabelReadsPrivate].
	Labels []string
	// StartsRun must be true if the function may start runs with its context. A call that would start a run deeper than max_depth then ends
	// without calling the function, and [ScopeFrom] returns, in the function, the limits of the run to start. See also package agenttool.
	StartsRun bool
	// CheckOutcome, if not nil, determines the outcome of a call that an earlier process started, as [OutcomeChecker] describes. The Data
	// of its output must be the JSON form of what the function would have returned.
	CheckOutcome func(ctx context.Context, call *lathe.CallMeta) (Recovery, error)
}

// originGo is the default origin of a tool that [Func] makes.
const originGo = "go"

// Func returns a tool that calls fn. In is a struct or a map; the schema of the arguments is derived from it, as [SchemaOf] describes. opts
// may be nil: no declared effect, and the default Show.
//
// Arguments are decoded strictly: names are case-sensitive, unknown names are errors, and an integer field accepts any number without a
// fraction, such as 1.0 or 1e2. A number in a field of type any becomes a [encoding/json.Number]. Arguments that satisfy the schema but do
// not fit In end the call with invalid_arguments.
//
// The result is encoded as JSON with sorted map keys. If Out is *[lathe.Output], it is used as it is. The model receives the text of an
// error made by [Fail]; for any other error it receives only the fixed text of the code.
//
// Func itself returns no error. [Set.Add] reports an unusable definition: fn is nil, In has no JSON form, a tag of In contradicts its
// field, Show is empty although Out requires it, or Show names a field that Out does not have.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts *FuncOptions) lathe.Tool {
	var o FuncOptions
	if opts != nil {
		o = *opts
	}
	if o.Origin == "" {
		o.Origin = originGo
	}
	var unshown error
	if len(o.Show) == 0 {
		o.Show, unshown = []string{"*"}, checkShownByDefault(reflect.TypeFor[Out]())
	}
	t := &function[In, Out]{fn: fn, err: unshown, checkOutcome: o.CheckOutcome, startsRun: o.StartsRun, spec: lathe.ToolSpec{
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
			t.err = fmt.Errorf("no schema for its input: %w. Correct the type, or set FuncOptions.Schema: SchemaOf returns a derived schema with adjustments", err)
		}
		t.spec.Schema = s
	}
	if t.err == nil {
		t.err = checkShow(reflect.TypeFor[Out](), o.Show)
	}
	return t
}

// checkShow returns an error if a path of Show begins with a name that the output does not have. It checks only outputs whose JSON form is
// known from their type: structs.
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
	fields := rawjson.At(s, "properties")
	if string(rawjson.At(s, "additionalProperties")) != "false" {
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

// hasOwnJSON reports whether a type encodes its own JSON.
func hasOwnJSON(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
		t.Implements(reflect.TypeFor[jsonv2.MarshalerTo]())
}

type function[In, Out any] struct {
	spec lathe.ToolSpec
	fn   func(context.Context, In) (Out, error)
	err  error // returned by Set.Add
	// checkOutcome may be nil.
	checkOutcome func(context.Context, *lathe.CallMeta) (Recovery, error)
	startsRun    bool
}

// StartsRun implements [RunStarter].
func (f *function[In, Out]) StartsRun() bool { return f.startsRun }

func (f *function[In, Out]) Spec() *lathe.ToolSpec { return &f.spec }

func (f *function[In, Out]) broken() error { return f.err }

// CheckOutcome implements [OutcomeChecker]. If the options have no CheckOutcome, the outcome is unknown.
func (f *function[In, Out]) CheckOutcome(ctx context.Context, call *lathe.CallMeta) (Recovery, error) {
	if f.checkOutcome == nil {
		return Recovery{}, nil
	}
	return f.checkOutcome(ctx, call)
}

func (f *function[In, Out]) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	var in In
	if err := jsonv2.Unmarshal(args, &in, strict); err != nil {
		return nil, misfit(err)
	}
	v, err := f.fn(ctx, in)
	if err != nil {
		return nil, err
	}
	if out, ok := any(v).(*lathe.Output); ok {
		return out, nil
	}
	data, err := jsonv2.Marshal(v, plain)
	if err != nil {
		return nil, lathe.CodeInvalidOutput.Wrap("tool: write output", err)
	}
	return &lathe.Output{Data: data}, nil
}

// strict contains the options for decoding arguments. It is read-only.
var strict = jsonv2.JoinOptions(
	jsonv2.RejectUnknownMembers(true),
	jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(readNumber)),
)

// plain contains the options for encoding outputs. It is read-only.
var plain = jsonv2.JoinOptions(
	jsonv2.Deterministic(true),
	jsonv2.WithMarshalers(jsonv2.MarshalToFunc(writeDigits)),
)

// writeDigits encodes a Number as a JSON number; by default it would become a string.
func writeDigits(enc *jsontext.Encoder, n json.Number) error {
	if n == "" { // the zero value
		n = "0"
	}
	return enc.WriteValue(jsontext.Value(n))
}

// misfit returns the error for arguments that do not match the Go types. It does not use the error text of the decoder, which may quote
// arguments.
func misfit(err error) error {
	var se *jsonv2.SemanticError
	if errors.As(err, &se) && se.JSONPointer != "" {
		if se.GoType != nil {
			return Fail(lathe.CodeInvalidArguments, "the value at %s does not fit %s", se.JSONPointer, se.GoType.Kind())
		}
		return Fail(lathe.CodeInvalidArguments, "the value at %s is not accepted", se.JSONPointer)
	}
	return Fail(lathe.CodeInvalidArguments, "the arguments do not fit what the tool takes")
}
