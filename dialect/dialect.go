package dialect

import (
	"errors"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Parser turns the text of one model turn into deltas of the kinds Text, Reasoning, Commentary,
// CallStart, CallArgs, CallEnd and ParseError.
//
// Joined (neighbouring pieces of one kind made one), the deltas do not depend on how the text was
// cut into pieces. At most one call is open at a time; its Index counts from 0. Where a call's id
// stands after its arguments, CallEnd has it, and CallStart has none. Argument text is
// the model's own, byte for byte, or JSON that the parser writes (see [ArgumentWriter]), and comes as it is read. The strings of the deltas may be kept;
// the text that is handed in is kept as long as they are.
//
// What cannot be read stays text and is followed by a ParseError: its Text is the beginning
// (at most 200 bytes), Bytes the whole length, Name the tool where it could be read. A ParseError
// while a call is open takes that call back: it has the call's Index, the text of the whole
// attempt has been given as text, and CallEnd follows. Otherwise its Index is -1.
//
// A Parser is used by one goroutine at a time.
type Parser interface {
	// Append reads the next piece and appends what it says to dst.
	Append(dst []lathe.Delta, text string) []lathe.Delta
	// Flush ends the text. The deltas are complete whatever the error, which is [ErrIncomplete]
	// or nil. After it the Parser must not be used.
	Flush(dst []lathe.Delta) ([]lathe.Delta, error)
}

// ErrIncomplete says that the text ended inside a call. The call's CallEnd, or its ParseError,
// says the same.
var ErrIncomplete = errors.New("dialect: the text ends inside a call")

// Options are the choices of a [Parser]. The zero value is useful.
type Options struct {
	// Tools are the tools that the model was offered. Formats without an unmistakable mark take
	// only their names as calls, and formats without types of their own take types from the schemas.
	Tools []*lathe.ToolSpec
	// MaxPayloadBytes (max_payload_bytes) bounds a call; 0: 8 192. A longer one is a ParseError with the code
	// tool_payload_too_large. In harmony and tags the payload counts, in the JSON formats the call from its mark to the end
	// of its JSON. In the tagged, Gemma and Python formats it bounds what is held back of a call.
	MaxPayloadBytes int
	// AllowDeprecatedSyntax (allow_deprecated_syntax) takes `<tool:NAME>{…}` for a call. Else it is text.
	AllowDeprecatedSyntax bool
	// Prefix is text that stands in the prompt before the model's own: the beginning of its turn,
	// such as an open think tag. It is read and says nothing, but for a call that it leaves open.
	Prefix string
	// Rand is a source of random numbers for the ids of calls whose format carries none; nil: such
	// calls have no id.
	Rand func() uint64
}

const defaultMaxPayloadBytes = 8192

// A Dialect is one way to write tool calls as text: how they are read and how they are written.
// Its methods may be called from several goroutines at once.
type Dialect struct {
	name   string
	models []string // parts of the names of models that write it, lower case
	marks  []string // unmistakable openings, by which auto knows it
	parser func(o Options) Parser
	form   form

	oldMarks []string // openings of a deprecated syntax
	ownMarks []string // of thinking and text, which models of no other dialect write: [NewAuto] goes by them, too
}

// Name returns the dialect's name in configuration and events.
func (d *Dialect) Name() string { return d.name }

// Models returns the words in the names of models by which [ForModel] knows the dialect.
func (d *Dialect) Models() []string { return slices.Clone(d.models) }

// NewParser returns a parser for one turn. opts may be nil and is copied.
func (d *Dialect) NewParser(opts *Options) Parser {
	return withPrefix(d.parser, opts)
}

// table lists the dialects. Adding one is a row here and a file with its name.
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

// auto is apart from table because it reads it.
var auto = &Dialect{name: "auto", parser: newAuto, form: tagsForm}

// Lookup returns the dialect of that name, `auto` among them.
func Lookup(name string) (*Dialect, bool) {
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

// ForModel returns the name of the dialect that a model of that name writes. It looks for the
// names of families anywhere in it, without regard to case. The first in the name decides, for a
// model that was tuned from another has its own family before the other's; then the longest.
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
