package dialect

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Parser turns the text of one model turn into deltas of the kinds Text, Reasoning, Commentary, CallStart, CallArgs, CallEnd and
// ParseError.
//
// The joined deltas (adjacent pieces of one kind concatenated) do not depend on how the text was divided into pieces. At most one call is
// open at a time; its Index counts from 0. If the id of a call follows its arguments in the text, CallEnd has the id and CallStart has
// none. Argument text is the model's own, byte for byte, or JSON that the parser writes (see [ArgumentWriter]); it is returned as it
// arrives. The caller may retain the strings of the deltas; they share memory with the text that was passed in.
//
// Text of a call that cannot be read is returned as text, and a ParseError follows. The field Text of the ParseError is the beginning of
// the call (at most 200 bytes), Bytes the length of the call, and Name the tool, or "" if the name could not be read. If the call had
// already been started by a CallStart, the ParseError has the Index of that call and revokes it, and a CallEnd follows. Otherwise its Index
// is -1.
//
// A Parser must not be used by several goroutines at once.
type Parser interface {
	// Append parses text, the next piece of the turn. It appends the resulting deltas to dst and returns the extended slice.
	Append(dst []lathe.Delta, text string) []lathe.Delta
	// Flush ends the turn. It appends the last deltas to dst and returns the extended slice. The only error is [ErrIncomplete], if the text
	// ended inside a call; the deltas are complete in this case, too. The Parser must not be used afterwards.
	Flush(dst []lathe.Delta) ([]lathe.Delta, error)
}

// A fullParser is a Parser with all optional methods. All parsers of this package are.
type fullParser interface {
	Parser
	Counter
	Thinker
	ArgumentWriter
	setInPrefix(inPrefix bool)
}

// ErrIncomplete reports that the text ended inside a call. The [lathe.DeltaCallEnd] of that call has Incomplete set, or a
// [lathe.DeltaParseError] reports the call as unreadable.
var ErrIncomplete = errors.New("dialect: the text ends inside a call")

// Options configure a [Parser]. The zero value is useful.
type Options struct {
	// Tools are the tools that the model was offered. A format without an unambiguous mark of a call accepts calls of these tools only. A
	// format that does not write the types of values takes the types from the schemas of the tools.
	Tools []*lathe.ToolSpec
	// MaxPayloadBytes is the setting max_payload_bytes, the maximum length of a call in bytes. A longer call is a ParseError with the code
	// tool_payload_too_large, whose text the parser returns as unreadable text. The parser reads the call to its end: what follows is text
	// again. The length is that of the payload in harmony and tags, that from the mark of the call to the end of its JSON in the JSON
	// formats, and that from the mark to the end of the call in the others. If MaxPayloadBytes is 0 or the largest int, MaxArgsBytes applies
	// instead, and a payload on harmony's channel `tool` has at most 8,192 bytes.
	MaxPayloadBytes int
	// MaxArgsBytes is the setting max_tool_args_bytes. If MaxPayloadBytes sets no limit, a call may have MaxArgsBytes and 4 KiB for its
	// marks, in bytes; 0: 200,000.
	MaxArgsBytes int
	// AllowDeprecatedSyntax is the setting allow_deprecated_syntax: `<tool:NAME>{…}` is read as a call. Otherwise it is text.
	AllowDeprecatedSyntax bool
	// IgnoreOpenThoughts is the setting calls_in_open_thought: ignore. Calls inside a thought that is never closed are part of the thought.
	IgnoreOpenThoughts bool
	// BareCalls is the setting bare_calls: a message is read as a call, although it has no mark of a call, if its whole text is one JSON
	// object, in a code fence or not, with the name and the arguments of an offered tool.
	BareCalls bool
	// ThinkingStartsOpen is the setting thinking: starts_open. It says that the prompt ends inside a block of thinking, as the templates of
	// some models do. The parser then ignores an opening mark of thinking that the model repeats.
	ThinkingStartsOpen bool
	// Prefix is the part at the end of the prompt that belongs to the model's turn, such as an open think tag. The parser reads it before
	// the text and returns no deltas for it, except for a call that begins in Prefix and continues in the text.
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
	o.toolPayload = maxToolPayload
	if o.MaxPayloadBytes > 0 && o.MaxPayloadBytes != math.MaxInt {
		o.toolPayload = o.MaxPayloadBytes
		return o
	}
	o.MaxPayloadBytes = o.MaxArgsBytes
	if o.MaxPayloadBytes <= 0 {
		o.MaxPayloadBytes = lathe.Limits{}.WithDefaults().MaxToolArgsBytes
	}
	o.MaxPayloadBytes += maxMarkup
	return o
}

// A Dialect is one format in which models write tool calls as text, with its parser and its encoder. The dialect auto has the parser of
// [NewAuto] and writes calls as the dialect tags does. The methods of a Dialect may be called from several goroutines at once.
type Dialect struct {
	name   string
	models []string // parts of the names of models that write the dialect, lower case
	marks  []string // unambiguous openings, by which auto selects the dialect
	form

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
		models: strings.Fields("gpt-oss gpt_oss gptoss"),
		marks:  harmonyOpenings(),
		form:   harmonyForm,
	},
	{
		name:     "tags",
		marks:    tagOpenings,
		form:     tagsForm,
		oldMarks: []string{"<tool:"},
	},
}, jsonDialects, taggedDialects)

// auto is not in table, because newAuto reads table.
var auto = func() *Dialect {
	d := &Dialect{name: "auto", form: tagsForm}
	d.parser = newAuto
	return d
}()

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

// ForModel returns the name of the dialect that the model with this name writes. It searches the name for the words of [Dialect.Models],
// without regard to case. The first match in the name decides, because the name of a fine-tuned model begins with its own family; of
// several matches at one place, the longest decides. ok is false if no word matches.
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
