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

// NativeDialect is the name of no dialect: the server's own tool calls.
const NativeDialect = "native"

// DialectOptions are the choices of [WithDialect]. They are copied.
type DialectOptions struct {
	// MaxPayloadBytes (max_payload_bytes) bounds one call written as text; 0: 8 192.
	MaxPayloadBytes int
	// AllowDeprecatedSyntax (allow_deprecated_syntax) reads `<tool:NAME>{…}` as a call.
	AllowDeprecatedSyntax bool
	// RecoverLeakedCalls (recover_leaked_calls) is for servers that have calls of their own and let
	// some slip into the text: tools are sent as ever, and calls in the text are taken where they
	// name a tool that was offered. All else stays text. The dialect native stands for auto then.
	RecoverLeakedCalls bool
	// ShowUnreadableCalls (show_unreadable_calls) shows the text of calls that could not be read as a part
	// of the answer.
	ShowUnreadableCalls bool
	// Rand is the source of the ids of calls whose format carries none; nil: math/rand/v2.
	Rand func() uint64
}

// WithDialect returns model with its calls read from its text, and written into it: the caller
// gives tools and takes calls as of any other model. The names are those of [dialect.Names] and
// [NativeDialect]; with native, model itself is returned, unless leaked calls are to be recovered.
// auto goes by the name of the model, and where that says nothing, by the first mark in the text.
//
// The server gets no `tools` member. The tools stand in the system text, and calls and results in
// the messages, as the dialect writes them. A request without tools, in a conversation without
// calls, passes as it is and its answer is not scanned; harmony is read always, since it is more
// than calls.
//
// A call that cannot be read yields a [lathe.DeltaParseError], and is in the message twice: as
// text that is Unreadable, for the model, and as a [lathe.ToolCall] with its ParseError set. The
// deltas leave its text out, and the white space around calls, so that they are what people see. What a parser tolerated is in the
// Faults of the [lathe.Finish]. The error is of an unknown name.
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
	if name == NativeDialect {
		if !o.RecoverLeakedCalls {
			return model, nil
		}
		name = "auto"
	}
	d, ok := dialect.Lookup(name)
	if !ok {
		return wrong(fmt.Errorf("no dialect %q; there are %s, %s", name, NativeDialect, strings.Join(dialect.Names(), ", ")))
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	t := &textModel{model: model, dialect: d, opts: o}
	if m, ok := model.(lathe.Describer); ok {
		t.info = m.Describe()
	}
	t.info.Dialect, t.info.WritesCalls = t.dialectOf(t.info.Model).Name(), true
	if o.RecoverLeakedCalls {
		t.info.Dialect = NativeDialect
	}
	return t, nil
}

// A textModel is a model that writes its calls as text.
type textModel struct {
	model   lathe.Model
	dialect *dialect.Dialect
	opts    DialectOptions
	info    lathe.ModelInfo
}

var (
	_ lathe.Model     = (*textModel)(nil)
	_ lathe.Describer = (*textModel)(nil)
	_ lathe.Opener    = (*textModel)(nil)
)

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
	return t.generate(ctx, t.model, nil, req)
}

// Open returns the model for the turns of one run. What was rendered once stays as it is, so that
// the model beneath goes on appending to its conversation.
func (t *textModel) Open() (lathe.Model, func()) {
	s := &textSession{t: t, model: t.model}
	closeFn := func() {}
	if o, ok := t.model.(lathe.Opener); ok {
		s.model, closeFn = o.Open()
	}
	return s, closeFn
}

// A textSession is a textModel within one run.
type textSession struct {
	t     *textModel
	model lathe.Model
	sent  rendering
}

// Generate makes the next call of the run.
func (s *textSession) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return s.t.generate(ctx, s.model, &s.sent, req)
}

// Describe names the model.
func (s *textSession) Describe() lathe.ModelInfo { return s.t.info }

func (t *textModel) generate(ctx context.Context, model lathe.Model, sent *rendering, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	name := req.Model
	if name == "" {
		name = t.info.Model
	}
	d := t.dialectOf(name)
	if t.opts.RecoverLeakedCalls && isStructured(d) {
		d = t.dialect // between leaks the text of such a server is plain
	}
	tools := req.Tools
	if req.ToolChoice.Mode == lathe.ChoiceNone {
		tools = nil
	}
	if len(tools) == 0 && !isStructured(d) && !speaksOfCalls(req.Messages) {
		if len(req.Tools) == 0 || t.opts.RecoverLeakedCalls {
			return model.Generate(ctx, req)
		}
		bare := *req
		bare.Tools, bare.ToolChoice, bare.ParallelToolCalls = nil, lathe.ToolChoice{}, nil
		return model.Generate(ctx, &bare)
	}
	if sent == nil {
		sent = &rendering{}
	}
	if t.opts.RecoverLeakedCalls {
		req = withReadableCalls(req)
	} else {
		req = sent.render(t.writtenIn(d, req.Messages), req, tools)
	}
	return func(yield func(lathe.Delta, error) bool) {
		r := newReading(t, d, tools, yield)
		for delta, err := range model.Generate(ctx, req) {
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
