package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gbnf"
)

// This file describes, for constraints, the calls of dialects whose arguments are JSON, such as
//
//	<tool_call>{"name": "add", "arguments": {"a":1}}</tool_call>

// layout derives the callLayout of a family from call, the pattern of a call that its form writes: see [jsonForm].
func (f *jsonFamily) layout(call string) *callLayout {
	l := &callLayout{think: f.think, marks: f.openings(), starts: f.starts}
	parts := newPattern(call) // fixed texts at even indexes, placeholders at odd ones
	end := len(parts) - 1
	parts[0], parts[end] = f.moveOuter(l, parts[0], parts[end])
	// Without a mark that text cannot contain, a call begins a line, and a turn has one call or one list of calls.
	l.quiet = len(l.marks) == 0 || quietPattern(f, call)
	l.once = l.quiet
	l.call = func(c *constrainer, t *lathe.ToolSpec) []piece { return f.pieces(parts, c, t) }
	return l
}

// moveOuter moves the texts that surround a section or list of calls to l. first and last are the texts at the two ends of the pattern of a
// call; the results are the parts of them that each call has.
func (f *jsonFamily) moveOuter(l *callLayout, first, last string) (before, after string) {
	for _, s := range f.sections {
		inner, begins := strings.CutPrefix(first, s[0])
		rest, ends := strings.CutSuffix(last, s[1])
		if begins && ends {
			l.before, l.between, l.after = s[0], `"\n"?`, s[1]
			first, last = inner, rest
		}
	}
	mark, object, opens := strings.Cut(first, "[{")
	endMark, closes := strings.CutPrefix(last, "}]")
	if opens && closes { // the calls are elements of a JSON array
		l.before, l.after = mark+"[", "]"+endMark
		l.between, l.separator = `"," " "?`, ", "
		first, last = "{"+object, "}"
	}
	if f.starts {
		l.before = f.blocks[0].opens[0]
		first = strings.TrimPrefix(first, l.before)
	}
	return first, last
}

// pieces returns the pieces of a call of the tool t, whose pattern is parts.
func (f *jsonFamily) pieces(parts pattern, c *constrainer, t *lathe.ToolSpec) []piece {
	name, quote := piece{text: t.Name, name: true}, piece{text: `"`}
	var out []piece
	for i, s := range parts {
		if i%2 == 0 { // a fixed text
			if s != "" {
				out = append(out, piece{text: s})
			}
			continue
		}
		switch s {
		case placeQuotedName:
			out = append(out, quote, name, quote)
		case placeName:
			out = append(out, name)
		case placeQuotedID:
			out = append(out, quote, f.idPiece(), quote)
		case placeID:
			out = append(out, f.idPieces(name)...)
		default: // placeText
			out = append(out, c.arguments(t))
		}
	}
	return out
}

// idPieces returns the pieces of the id of a call of the tool name.
func (f *jsonFamily) idPieces(name piece) []piece {
	switch f.id {
	case idInName:
		return []piece{{text: "functions."}, name, {text: ":"}, regexPiece("[0-9]{1,3}")}
	case idLate:
		return []piece{optionalID}
	}
	return []piece{f.idPiece()}
}

// idPiece returns the piece of an id of letters and digits.
func (f *jsonFamily) idPiece() piece {
	if f.id == idLate {
		return regexPiece("[a-zA-Z0-9]{9}")
	}
	return regexPiece("[a-zA-Z0-9]{1,16}")
}

// quietPattern reports whether the calls that a family writes begin with a mark that ordinary text may contain.
func quietPattern(f *jsonFamily, call string) bool {
	for i := range f.blocks {
		for _, open := range f.blocks[i].opens {
			if strings.HasPrefix(call, open) {
				return f.blocks[i].quiet
			}
		}
	}
	return false
}

// openings returns the marks by which the parser recognizes a call or a section of calls.
func (f *jsonFamily) openings() (list []string) {
	for i, text := range f.list {
		m := f.kinds[i]
		opensCall := m.kind == markOpen && (f.starts || !f.blocks[m.n].quiet)
		if opensCall || m.kind == markSection {
			list = append(list, text)
		}
	}
	return list
}

// regexPiece returns a piece that matches the regular expression regex, which must be a valid grammar expression, too.
func regexPiece(regex string) piece {
	return piece{expr: regex, format: func() string { return `{"type":"regex","pattern":` + quoteJSON(regex) + "}" }}
}

// optionalID is the id of a call of Mistral with the mark before it, which may be missing, and the mark of the arguments. Models of
// earlier versions write no id.
var optionalID = piece{expr: `(("[CALL_ID]" [a-zA-Z0-9]{9})? "[ARGS]")`, format: func() string {
	return `{"type":"or","elements":[{"type":"const_string","value":"[ARGS]"},{"type":"sequence","elements":[{"type":"const_string","value":"[CALL_ID]"},{"type":"regex","pattern":"[a-zA-Z0-9]{9}"},{"type":"const_string","value":"[ARGS]"}]}]}`
}}

// tagsLayout returns the callLayout of the dialect tags.
func tagsLayout() *callLayout {
	return &callLayout{think: plainThink, marks: tagOpenings, call: func(c *constrainer, t *lathe.ToolSpec) []piece {
		return []piece{{text: `<tool name="`}, {text: t.Name, name: true}, {text: `" args>`}, c.arguments(t), {text: "</tool>"}}
	}}
}

// harmonyLayout returns the callLayout of harmony: thinking and commentary, then one call or the answer. The header of a call has the
// order that [Dialect.AppendCall] writes, or that of OpenAI's documentation. The mark that ends the turn is optional, because servers
// stop at it and do not return it.
func harmonyLayout() *callLayout {
	const json = "<|constrain|>json<|message|>"
	return &callLayout{
		call: func(c *constrainer, t *lathe.ToolSpec) []piece {
			to := " to=functions." + t.Name
			header := gbnf.AnyOf(gbnf.Literal(to+"<|channel|>commentary "+json), gbnf.Literal("<|channel|>commentary"+to+" "+json))
			return []piece{{expr: header}, c.arguments(t)}
		},
		root: func(c *constrainer) string {
			text := c.b.TextWithout([]string{"<|"})
			message := func(channel string) string {
				return gbnf.Sequence(gbnf.Literal("<|channel|>"+channel+"<|message|>"), text, gbnf.Literal("<|end|><|start|>assistant"))
			}
			call := gbnf.Sequence(c.oneCall(), gbnf.Optional(gbnf.Literal("<|call|>")))
			if c.must {
				return gbnf.Sequence(gbnf.Repeat(message("analysis"), 0, -1), call)
			}
			final := gbnf.Sequence(gbnf.Literal("<|channel|>final<|message|>"), text, gbnf.Optional(gbnf.Literal("<|return|>")))
			return gbnf.Sequence(gbnf.Repeat(gbnf.AnyOf(message("analysis"), message("commentary")), 0, -1), gbnf.AnyOf(call, final))
		},
	}
}
