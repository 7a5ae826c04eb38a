package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// NativeDialect is the name for the server's own tool calls, which no dialect parses.
const NativeDialect = "native"

// DialectOptions are the choices of [WithDialect]. They are copied.
type DialectOptions struct {
	// MaxPayloadBytes (max_payload_bytes) bounds one call written as text; 0: as of [dialect.Options].
	MaxPayloadBytes int
	// AllowDeprecatedSyntax (allow_deprecated_syntax) reads `<tool:NAME>{…}` as a call.
	AllowDeprecatedSyntax bool
	// RecoverLeakedCalls (recover_leaked_calls) is for servers that have calls of their own and let
	// some slip into the text: tools are sent as ever, and calls in the text are taken where they
	// name a tool that was offered. All else stays text. The dialect native stands for auto then.
	RecoverLeakedCalls bool
	// ThinkingStartsOpen (thinking: starts_open) says that the model's template opens a block of thinking in the prompt, and that its server
	// does not tell thinking and answer apart: the text up to the closing mark is reasoning. It has no effect in a turn whose server does.
	ThinkingStartsOpen bool
	// BareCalls (bare_calls) takes a message that is nothing but one JSON object with the name and the arguments of an offered tool for a
	// call, with native too.
	BareCalls bool
	// ShowUnreadableCalls (show_unreadable_calls) shows the text of calls that could not be read as a part
	// of the answer.
	ShowUnreadableCalls bool
	// Constrain names the server, `llamacpp`, `vllm` or `sglang`, whose requests get a grammar or a structural tag that makes the model
	// write calls of the dialect that fit the tools: see [dialect.Dialect.Constrain]. "": none. What it does not say of the schemas is
	// among Dropped of the [lathe.Finish], below `constraint`; `constraint` alone says that there was none, because the tools have no
	// grammar, the dialect is auto, or the request has the member itself.
	Constrain string
	// ConstrainAfter is how many turns in a row must have had a call that could not be read before requests are constrained; 0: all are.
	// With 1, the model is asked again with the error under the constraint; with 2, once without it before.
	ConstrainAfter int
	// Rand is the source of the ids of calls whose format carries none; nil: math/rand/v2.
	Rand func() uint64
}

// WithDialect returns a model that writes tools and calls into the text of its requests and parses calls from the text of
// the answers. The caller passes tools and receives calls as with any other model. The names are those of [dialect.Names] and
// [NativeDialect]; with native, WithDialect returns model itself, unless an option has the text scanned. auto chooses the
// dialect by the name of the model or, if the name does not decide, by the first mark in the text.
//
// The server gets no `tools` member: tools are written into the system text, and calls and results into the messages, in
// the form of the dialect. A request of a run without tools, in a conversation without calls, is sent unchanged and its answer is not
// scanned. Answers in harmony are always parsed, since harmony marks more than calls.
//
// A call that cannot be parsed yields a [lathe.DeltaParseError] and is in the message twice: as text that is Unreadable, for
// the model, and as a [lathe.ToolCall] with its ParseError set. The text deltas are what users see: they leave out the text of
// that call and the white space around calls. What a parser tolerated is in the Faults of the [lathe.Finish]. An unknown name
// is an error of code invalid_config.
func WithDialect(model lathe.Model, name string, opts *DialectOptions) (lathe.Model, error) {
	var o DialectOptions
	if opts != nil {
		o = *opts
	}
	wrong := func(err error) (lathe.Model, error) {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "provider: set up a dialect", Err: err}
	}
	if model == nil {
		return wrong(errors.New("a model is required"))
	}
	if name == "" {
		name = NativeDialect
	}
	native := false
	constrain, err := newConstrainer(o.Constrain)
	if err != nil {
		return wrong(err)
	}
	if constrain != nil && (name == NativeDialect || o.RecoverLeakedCalls) {
		return wrong(errNativeConstraint)
	}
	if name == NativeDialect {
		if !o.RecoverLeakedCalls && !o.ThinkingStartsOpen && !o.BareCalls {
			return model, nil
		}
		native, name = !o.RecoverLeakedCalls, "auto"
	}
	d, ok := dialect.Lookup(name)
	if !ok {
		return wrong(fmt.Errorf("no dialect %q; there are %s, %s", name, NativeDialect, strings.Join(dialect.Names(), ", ")))
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	t := &textModel{model: model, dialect: d, opts: o, info: model.Describe(), constrain: constrain, native: native}
	t.info.Dialect = t.dialectOf(t.info.Model).Name()
	if native || o.RecoverLeakedCalls {
		t.info.Dialect = NativeDialect
	}
	t.info.WritesCalls = !native || o.BareCalls
	return t, nil
}

// A textModel is a model that writes its calls as text. It has no Unwrap method: the bytes of the server's answers hold calls
// as text, and must not be relayed.
type textModel struct {
	model   lathe.Model
	dialect *dialect.Dialect
	opts    DialectOptions
	// native says that the server has calls of its own, and that its text is scanned for thinking and for bare calls.
	native bool
	info   lathe.ModelInfo
	// constrain is nil if requests have no constraint.
	constrain *constrainer
}

// Describe names the model, and the dialect that it is read with.
func (t *textModel) Describe() lathe.ModelInfo { return t.info }

// dialectOf returns the dialect of the model of that name, which may be another than the one that
// t was set up with.
func (t *textModel) dialectOf(model string) *dialect.Dialect {
	if t.dialect.Name() != "auto" {
		return t.dialect
	}
	if name, ok := dialect.ForModel(model); ok {
		if d, ok := dialect.Lookup(name); ok {
			return d
		}
	}
	return t.dialect
}

// Generate makes one call. See [lathe.Model].
func (t *textModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	if req.Relay != nil {
		own := *req
		own.Relay, req = nil, &own
	}
	return t.generate(ctx, req)
}

func (t *textModel) generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	name := req.Model
	if name == "" {
		name = t.info.Model
	}
	d := t.dialectOf(name)
	if (t.native || t.opts.RecoverLeakedCalls) && isStructured(d) {
		d = t.dialect // between leaks the text of such a server is plain
	}
	tools := req.Tools
	if req.ToolChoice.Mode == lathe.ChoiceNone {
		tools = nil
	}
	plain := len(tools) == 0 && !isStructured(d) && !speaksOfCalls(req.Messages) // the request says nothing of tools
	if plain && len(req.TextCalls.Tools) == 0 && !t.opts.ThinkingStartsOpen && (len(req.Tools) == 0 || t.opts.RecoverLeakedCalls) {
		return t.model.Generate(ctx, req)
	}
	opts := dialectOptions(req, tools, t.opts.MaxPayloadBytes)
	choice, single := req.ToolChoice, req.ParallelToolCalls != nil && !*req.ParallelToolCalls
	constrained := t.constrain != nil && len(tools) > 0 && unreadableTurns(req.Messages) >= t.opts.ConstrainAfter
	req = t.rewritten(d, req, tools, plain)
	req, dropped := t.withoutFormat(req, tools)
	if constrained {
		constrainedReq, loosened := t.constrain.apply(req, d, tools, choice, single)
		req, dropped = constrainedReq, append(dropped, loosened...)
	}
	return func(yield func(lathe.Delta, error) bool) {
		r := newReading(t, d, opts, yield)
		r.dropped = dropped
		for delta, err := range t.model.Generate(ctx, req) {
			if err != nil {
				r.broken(err)
				return
			}
			if !r.take(&delta) {
				return
			}
		}
	}
}

// rewritten returns the request that the wrapped model is sent, in the dialect. It is plain if it says nothing of tools.
func (t *textModel) rewritten(d *dialect.Dialect, req *lathe.Request, tools []*lathe.ToolSpec, plain bool) *lathe.Request {
	var own lathe.Request
	switch {
	case t.native, t.opts.RecoverLeakedCalls:
		own = *withReadableCalls(req)
	case plain:
		own = *req
		own.Tools, own.ToolChoice, own.ParallelToolCalls = nil, lathe.ToolChoice{}, nil
	default:
		own = *render(t.writtenIn(d, req.Messages), req, tools)
	}
	own.TextCalls.ReadsThinking = true
	return &own
}

// withoutFormat returns req without its response format if the model may write calls, which a server would not let it do under the format,
// and what that drops.
func (t *textModel) withoutFormat(req *lathe.Request, tools []*lathe.ToolSpec) (_ *lathe.Request, dropped []string) {
	if len(req.Sampling.ResponseFormat) == 0 || len(tools) == 0 || t.native || t.opts.RecoverLeakedCalls {
		return req, nil
	}
	bare := *req
	bare.Sampling.ResponseFormat = nil
	return &bare, []string{"sampling.response_format"}
}

// writtenIn returns the dialect that a conversation is rendered in: where the first mark decides,
// that of the calls that were made.
func (t *textModel) writtenIn(d *dialect.Dialect, messages []lathe.Message) *dialect.Dialect {
	if d.Name() != "auto" {
		return d
	}
	for i := range messages {
		for _, p := range messages[i].Parts {
			if c, ok := p.(lathe.ToolCall); ok {
				if found, ok := dialect.Lookup(c.Dialect); ok {
					return found
				}
			}
		}
	}
	return d
}

// isStructured reports whether all that a model of the dialect says stands between marks, calls or not.
func isStructured(d *dialect.Dialect) bool { return d.Name() == "harmony" }

// speaksOfCalls reports whether there is a call in the history: the model may go on making some.
func speaksOfCalls(messages []lathe.Message) bool {
	for i := range messages {
		if messages[i].Role == lathe.RoleTool {
			return true
		}
	}
	return false
}
