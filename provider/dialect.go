package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// NativeDialect is the name that stands for native tool calls: the server itself returns calls, and no dialect parses the text for them.
const NativeDialect = "native"

// DialectOptions configure [WithDialect], which copies them.
type DialectOptions struct {
	// MaxPayloadBytes is the setting max_payload_bytes: the maximum size in bytes of one call that the model writes as text; 0: the default
	// of [dialect.Options]. A lower [lathe.Request].MaxPayloadBytes takes precedence.
	MaxPayloadBytes int
	// AllowDeprecatedSyntax is the setting allow_deprecated_syntax: `<tool:NAME>{…}` is read as a call.
	AllowDeprecatedSyntax bool
	// RecoverLeakedCalls is the setting recover_leaked_calls, for servers with native tool calls that sometimes return a call as text.
	// Requests contain the tools as usual. A call in the text of the answer counts if it names an offered tool; all other text is
	// unchanged. With the dialect native, the dialect auto parses the text.
	RecoverLeakedCalls bool
	// ThinkingStartsOpen is the setting thinking: starts_open. It says that the model's template opens a block of thinking in the prompt,
	// and that the server does not separate thinking from the answer: the text up to the closing mark is reasoning. It has no effect in a
	// turn in which the server separates them.
	ThinkingStartsOpen bool
	// BareCalls is the setting bare_calls: a message is read as a call if its whole text is one JSON object with the name and the arguments
	// of an offered tool. It also applies to the dialect native.
	BareCalls bool
	// ShowUnreadableCalls is the setting show_unreadable_calls: the text of unreadable calls is part of the answer.
	ShowUnreadableCalls bool
	// Constrain names the server, `llamacpp`, `vllm` or `sglang`; "": no constraint. Requests to that server contain a grammar or a
	// structural tag, so that the model can only write calls that fit the tools: see [dialect.Dialect.Constrain]. Parts of the schemas that
	// the constraint omits are listed in Dropped of the [lathe.Finish], with paths below `constraint`. The path `constraint` alone means
	// that the request had no constraint: the tools have no grammar, the dialect is auto, or the request has the member itself.
	Constrain string
	// ConstrainAfter is the number of consecutive turns with an unreadable call after which requests are constrained; 0: all requests are.
	// With 1, the request after the first such turn is constrained.
	ConstrainAfter int
	// Rand is the source of the ids of calls whose format has none; nil: math/rand/v2.
	Rand func() uint64
}

// WithDialect returns a model that writes tools and calls as text into its requests, and parses calls from the text of the answers. The
// caller passes tools and receives calls as with any other model. name is one of [dialect.Names], or [NativeDialect], for which "" also
// stands. For native, WithDialect returns model itself, unless an option requires that the text is parsed. auto selects the dialect by the
// name of the model or, if that is not known, by the first mark in the text. A model that WithDialect makes does not pass on the optional
// methods of model, such as CountTokens and Relays, so the bytes of the server are not relayed.
//
// The server receives no `tools` member: tools are part of the system text, and calls and results are part of the messages, in the form of
// the dialect. A request without tools, in a conversation without calls, is sent unchanged and its answer is not parsed. Answers in harmony
// are always parsed, because harmony marks all text.
//
// An unreadable call yields a [lathe.DeltaParseError] and is in the message twice: as text that is Unreadable, for the model, and as a
// [lathe.ToolCall] with its ParseError set. The text deltas, which users see, omit the text of that call and the white space around calls.
// The Faults of the [lathe.Finish] count what a parser tolerated.
//
// The error has the code invalid_config: model is nil, name or Constrain is unknown, or Constrain is set for native calls.
func WithDialect(model lathe.Model, name string, opts *DialectOptions) (lathe.Model, error) {
	var o DialectOptions
	if opts != nil {
		o = *opts
	}
	wrong := func(err error) (lathe.Model, error) {
		return nil, lathe.CodeInvalidConfig.Wrap("provider: set up a dialect", err)
	}
	if model == nil {
		return wrong(errors.New("a model is required"))
	}
	name = cmp.Or(name, NativeDialect)
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
	if t.hasNativeCalls() {
		t.info.Dialect = NativeDialect
	}
	t.info.WritesCalls = !native || o.BareCalls
	return t, nil
}

// A textModel is a model that writes its calls as text. It has no Unwrap method: the bytes of the server's answers contain calls as text,
// and must not be relayed.
type textModel struct {
	model   lathe.Model
	dialect *dialect.Dialect
	opts    DialectOptions
	// native: the server has native calls, and its text is parsed for thinking and for bare calls only.
	native bool
	info   lathe.ModelInfo
	// constrain is nil if requests have no constraint.
	constrain *constrainer
}

// hasNativeCalls reports whether the server itself returns calls. Its text is then parsed in addition.
func (t *textModel) hasNativeCalls() bool { return t.native || t.opts.RecoverLeakedCalls }

// Describe returns the description of the model, with the dialect that parses its text.
func (t *textModel) Describe() lathe.ModelInfo { return t.info }

// dialectOf returns the dialect of the named model, which may differ from that of t's own model.
func (t *textModel) dialectOf(model string) *dialect.Dialect {
	if t.dialect.Name() != "auto" {
		return t.dialect
	}
	name, _ := dialect.ForModel(model)
	if d, ok := dialect.Lookup(name); ok {
		return d
	}
	return t.dialect
}

// Generate makes one call. See [lathe.Model].
func (t *textModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	if req.Relay != nil {
		own := *req
		own.Relay, req = nil, &own
	}
	name := cmp.Or(req.Model, t.info.Model)
	d := t.dialectOf(name)
	if t.hasNativeCalls() && isStructured(d) {
		d = t.dialect // apart from leaked calls, the text of such a server has no marks
	}
	tools := req.Tools
	if req.ToolChoice.Mode == lathe.ChoiceNone {
		tools = nil
	}
	plain := len(tools) == 0 && !isStructured(d) && !hasResults(req.Messages) // no message has a tool, a call or a result
	parses := len(req.TextCalls.Tools) > 0 || t.opts.ThinkingStartsOpen
	removesTools := len(req.Tools) > 0 && !t.opts.RecoverLeakedCalls
	if plain && !parses && !removesTools {
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
				r.fail(err)
				return
			}
			if !r.take(&delta) {
				return
			}
		}
	}
}

// rewritten returns the request that is sent to the wrapped model. plain says that req contains neither tools nor calls.
func (t *textModel) rewritten(d *dialect.Dialect, req *lathe.Request, tools []*lathe.ToolSpec, plain bool) *lathe.Request {
	var own lathe.Request
	switch {
	case t.hasNativeCalls():
		own = *req
		own.Messages = slices.Clone(req.Messages)
		for i := range own.Messages {
			own.Messages[i].Parts = readable(own.Messages[i].Parts)
		}
	case plain:
		own = *req
		own.Tools, own.ToolChoice, own.ParallelToolCalls = nil, lathe.ToolChoice{}, nil
	default:
		own = *render(t.writtenIn(d, req.Messages), req, tools)
	}
	own.TextCalls.ReadsThinking = true
	return &own
}

// withoutFormat returns req without its response format if the model may write calls, because a server that enforces the format would not
// allow them. dropped is the path of what it removed.
func (t *textModel) withoutFormat(req *lathe.Request, tools []*lathe.ToolSpec) (_ *lathe.Request, dropped []string) {
	if len(req.Sampling.ResponseFormat) == 0 || len(tools) == 0 || t.hasNativeCalls() {
		return req, nil
	}
	bare := *req
	bare.Sampling.ResponseFormat = nil
	return &bare, []string{"sampling.response_format"}
}

// writtenIn returns the dialect in which the conversation is rendered. For auto, it is the dialect of the first call in the history.
func (t *textModel) writtenIn(d *dialect.Dialect, messages []lathe.Message) *dialect.Dialect {
	if d.Name() != "auto" {
		return d
	}
	for _, m := range messages {
		for _, c := range m.Calls() {
			if found, ok := dialect.Lookup(c.Dialect); ok {
				return found
			}
		}
	}
	return d
}

// isStructured reports whether the dialect marks all text of a turn, not only calls.
func isStructured(d *dialect.Dialect) bool { return d.Name() == "harmony" }

// hasResults reports whether the history contains results of calls: the model may write further calls.
func hasResults(messages []lathe.Message) bool {
	return slices.ContainsFunc(messages, func(m lathe.Message) bool { return m.Role == lathe.RoleTool })
}

// unreadableTurns returns how many of the model's last turns in a row had an unreadable call. A message of the user ends the row. It
// depends on the messages only, so that a resumed run sends the same requests.
func unreadableTurns(messages []lathe.Message) (n int) {
	for _, m := range slices.Backward(messages) {
		switch {
		case m.Role == lathe.RoleTool:
		case m.Role != lathe.RoleAssistant || !slices.ContainsFunc(m.Parts, isUnreadable):
			return n
		default:
			n++
		}
	}
	return n
}

// errNativeConstraint is returned for a constraint without a dialect that writes the calls.
var errNativeConstraint = errors.New("a constraint needs a dialect by its name: the server writes native calls itself")
