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
	// Show lists the fields of the output that the model may receive, as [lathe.ToolSpec].Allowlist. []string{"*"} allows all.
	//
	// If Show is empty, all is shown of an output whose type says what that is: of a string, number or boolean, of a type with the method
	// MarshalText, of a struct whose exported fields all have a json tag, and of pointers, slices and maps of these. The fields of structs
	// within it must have tags, too. Any other output, such as one of type any, map[string]any or *[lathe.Output], requires Show: without
	// it the tool cannot be registered.
	Show []string
	// Effect declares whether the function changes anything. A function without an effect is treated as one that writes: policies that
	// require an approval for writes require it, it is neither retried nor cached, and an interrupted call is not repeated. If its calls
	// need an approval and the runner has no approver, it is withheld from models: [Options].Log receives a warning, and [Work.Withheld]
	// and RunStarted list it with the reason undeclared_effect. An agent of package agent always has an approver.
	Effect lathe.Effect
	// Schema replaces the schema that is derived from the input type. [SchemaOf] returns that schema with adjustments.
	Schema json.RawMessage
	// OutputSchema, if set, is checked for each output.
	OutputSchema  json.RawMessage
	SchemaVersion string        // recorded in events
	Hidden        bool          // it is never sent to a model, and a call of it gets the result unknown_tool
	Target        []string      // the fields of the input that name what a call acts on: tool_failure_policy counts failures by target
	Timeout       time.Duration // of one call; 0: tool_timeout of the limits
	// CacheTTL, if it is more than 0 and Effect is ReadOnly, is the time for which an equal call of the same principal gets the output of
	// an earlier one.
	CacheTTL    time.Duration
	Concurrency int     // the maximum number of concurrent calls in this process; 0: no limit
	Rate        float64 // the maximum number of calls per second; 0: no limit
	// Backend names what the function depends on, such as a database. Tools with the same Backend share its circuit and
	// BackendConcurrency, the maximum number of their concurrent calls; 0: no limit.
	Backend            string
	BackendConcurrency int
	Origin             string // "": "go"
	// Labels describe the data of the function for policies: [lathe.LabelReadsPrivate] and others.
	Labels []string
	// StartsRun reports that the function may start runs with its context: max_depth limits its calls, and [ScopeFrom] returns the limits
	// of such a run. See also package agenttool.
	StartsRun bool
	// CheckOutcome, if set, determines the outcome of a call that an earlier process started: see [OutcomeChecker]. The Data of the output
	// must be the JSON form of what the function returned.
	CheckOutcome func(ctx context.Context, call *lathe.CallMeta) (Recovery, error)
}

// originGo is the default origin of a tool that [Func] makes.
const originGo = "go"

// Func makes a tool of a Go function. opts may be nil: the tool then has no declared effect and the default Show. Its schema is derived
// from In, which must be a struct or a map, as [SchemaOf] describes. Arguments are decoded strictly: names are case-sensitive, unknown ones
// are errors, an integer field accepts every number without a fraction, also 1.0 and 1e2, and a number in a field of type any becomes a
// [encoding/json.Number] with all its digits. Arguments that match the schema but not the Go types end the call with invalid_arguments.
//
// Out is encoded as JSON with sorted map keys, and a Number with its digits. The function may also return a *[lathe.Output]. The model
// receives the text of an error made by [Fail], and the fixed text of the code for any other error.
//
// [Set.Add] returns the error of an unusable definition: In has no JSON form, a tag of In contradicts its field, Show is empty and Out
// requires it, or Show names a field that Out does not have.
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
