package dialect

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Parser turns the text of one model turn into deltas of the kinds Text, Reasoning, Commentary,
// CallStart, CallArgs, CallEnd and ParseError.
//
// The joined deltas (adjacent pieces of one kind concatenated) do not depend on how the text was divided into pieces. At most one call is
// open at a time; its Index counts from 0. If the id of a call follows its arguments in the text, CallEnd has the id and CallStart has
// none. Argument text is the model's own, byte for byte, or JSON that the parser writes (see [ArgumentWriter]); it is returned as it
// arrives. The caller may retain the strings of the deltas; they share memory with the text that was passed in.
//
// Unreadable text stays text and is followed by a ParseError: its Text is the beginning (at most 200 bytes), Bytes the length of the
// whole, Name the tool, or "" if the name was unreadable. A ParseError during an open call revokes that call: it has the call's Index,
// the whole text of the call has been returned as text, and CallEnd follows. Otherwise its Index is -1.
//
// A Parser must not be used by several goroutines at once.
type Parser interface {
	// Append parses the next piece and appends the resulting deltas to dst.
	Append(dst []lathe.Delta, text string) []lathe.Delta
	// Flush ends the text and appends the last deltas to dst. It returns [ErrIncomplete] if the text ended inside a call, and no other
	// error; the deltas are complete in both cases. The Parser must not be used afterwards.
	Flush(dst []lathe.Delta) ([]lathe.Delta, error)
}

// ErrIncomplete reports that the text ended inside a call. The [lathe.DeltaCallEnd] of that call has Incomplete set, or a
// [lathe.DeltaParseError] reports the call as unreadable.
var ErrIncomplete = errors.New("dialect: the text ends inside a call")

// Options configure a [Parser]. The zero value is useful.
type Options struct {
	// Tools are the offered tools. Formats without an unambiguous mark accept calls of these names only. Formats whose values have no
	// type get the types from the schemas.
	Tools []*lathe.ToolSpec
	// MaxPayloadBytes (max_payload_bytes) is the maximal length of a call. A longer call is a ParseError with the code
	// tool_payload_too_large; the parser reads it to its end, so that the text after it is text. In harmony and tags the limit applies to
	// the payload, in the JSON formats to the call from its mark to the end of its JSON, and in the others to the call from its mark to
	// its end. If it is 0 or the largest int, MaxArgsBytes applies instead, and a payload on harmony's channel `tool` has at most 8,192
	// bytes.
	MaxPayloadBytes int
	// MaxArgsBytes (max_tool_args_bytes) is the maximal length of a call if MaxPayloadBytes sets none: MaxArgsBytes and 4 KiB for its marks,
	// in bytes. 0 means 200,000.
	MaxArgsBytes int
	// AllowDeprecatedSyntax (allow_deprecated_syntax) accepts `<tool:NAME>{…}` as a call. Otherwise it is text.
	AllowDeprecatedSyntax bool
	// IgnoreOpenThoughts (calls_in_open_thought: ignore) treats calls inside a thought that is never closed as a part of the thought.
	IgnoreOpenThoughts bool
	// BareCalls (bare_calls) reads a message as a call if its whole text is one JSON object, in a code fence or not, with the name and
	// the arguments of an offered tool, although it has no mark.
	BareCalls bool
	// ThinkingStartsOpen (thinking: starts_open) says that the prompt ends inside a block of thinking, as the templates of some models
	// do. The parser ignores a second opening that the model may write.
	ThinkingStartsOpen bool
	// Prefix is the end of the prompt that belongs to the model's turn, such as an open think tag.
	// The parser reads it without returning deltas, except for a call that it leaves open.
	Prefix string
	// Rand is a source of random numbers for the ids of calls whose format has none. If it is nil, such
	// calls have no id.
	Rand func() uint64

	toolPayload int // the limit on a payload on harmony's channel `tool`, in bytes
}

const (
	maxToolPayload = 8 << 10 // the default limit on a payload on harmony's channel `tool`, in bytes
	maxMarkup      = 4 << 10 // the limit on the marks, names and white space of a call, in bytes, beside its arguments
)

// bounded returns o with all limits on calls set.
func (o Options) bounded() Options {
	if o.toolPayload = maxToolPayload; o.MaxPayloadBytes > 0 && o.MaxPayloadBytes != math.MaxInt {
		o.toolPayload = o.MaxPayloadBytes
		return o
	}
	if o.MaxPayloadBytes = o.MaxArgsBytes; o.MaxPayloadBytes <= 0 {
		o.MaxPayloadBytes = lathe.Limits{}.WithDefaults().MaxToolArgsBytes
	}
	o.MaxPayloadBytes += maxMarkup
	return o
}

// A Dialect is one format of tool calls in text, with its parser and its encoder. The dialect auto has the parser of [NewAuto] and writes as
// the dialect tags. The methods of a Dialect may be called from several goroutines at once.
type Dialect struct {
	name   string
	models []string // parts of the names of models that write the dialect, lower case
	marks  []string // unambiguous openings, by which auto selects the dialect
	parser func(o Options) Parser
	form   form

	oldMarks []string // openings of a deprecated syntax, accepted with AllowDeprecatedSyntax
	ownMarks []string // marks of reasoning and text that only models of this dialect write, by which [NewAuto] also selects it
}

// Name returns the dialect's name in configuration and events.
func (d *Dialect) Name() string { return d.name }

// Models returns the parts of model names, in lower case, by which [ForModel] recognizes the models of the dialect. The caller may change the
// slice.
func (d *Dialect) Models() []string { return slices.Clone(d.models) }

// NewParser returns a parser for one turn. opts may be nil; NewParser copies it.
func (d *Dialect) NewParser(opts *Options) Parser {
	return withPrefix(d.parser, opts)
}

// table lists the dialects except auto. A new dialect is a row here, or in jsonDialects or taggedDialects, and a file with its name.
var table = slices.Concat([]*Dialect{
	{
		name:   "harmony",
		models: []string{"gpt-oss", "gpt_oss", "gptoss"},
		marks:  harmonyOpenings(),
		parser: newHarmony,
		form:   harmonyForm,
	},
	{
		name:     "tags",
		marks:    tagOpenings,
		parser:   newTags,
		form:     tagsForm,
		oldMarks: []string{"<tool:"},
	},
}, jsonDialects, taggedDialects)

// auto is not in table, because newAuto reads table.
var auto = &Dialect{name: "auto", parser: newAuto, form: tagsForm}

// Lookup returns the dialect with this name; ok is false for a name that is not in [Names].
func Lookup(name string) (found *Dialect, ok bool) {
	if name == auto.name {
		return auto, true
	}
	for _, d := range table {
		if d.name == name {
			return d, true
		}
	}
	return nil, false
}

// Names returns the names of all dialects; `auto` is the last.
func Names() []string {
	names := make([]string, 0, len(table)+1)
	for _, d := range table {
		names = append(names, d.name)
	}
	return append(names, auto.name)
}

// ForModel returns the name of the dialect that a model writes, by the name of the model. It searches for the words of [Dialect.Models]
// anywhere in the name, without regard to case. The first match in the name decides, because the name of a fine-tuned model begins with its
// own family; among matches at one place, the longest. ok is false if none matches.
func ForModel(model string) (name string, ok bool) {
	model = strings.ToLower(model)
	first, longest := len(model), 0
	for _, d := range table {
		for _, part := range d.models {
			at := strings.Index(model, part)
			if at >= 0 && (at < first || at == first && len(part) > longest) {
				name, first, longest = d.name, at, len(part)
			}
		}
	}
	return name, longest > 0
}
