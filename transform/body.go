package transform

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// This file reads the text between <tool_call> and </tool_call>, such as
//
//	{"name":"weather","args":{"city":"Oslo"}}
//	weather {"city":"Oslo"}
//	<function=weather><parameter=city>Oslo</parameter></function>
//	weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>

// A tagCall is a call that was read from the body between <tool_call> and </tool_call>. dialect names the parser that read it.
type tagCall struct{ id, name, args, dialect string }

// A bodyScan finds the end of the body of a tag: the first closing tag that is neither in a string of the body's JSON nor in a tagged
// value. It scans each byte once. Only in a body of tagged values does it search the body again, at each opening or closing tag.
type bodyScan struct {
	kind     bodyKind
	depth    int  // number of open objects and arrays
	inString bool // in a JSON string
	escaped  bool // after a backslash in a string
	complete bool // a top-level object or array of the body has been closed
}

type bodyKind uint8

const (
	bodyOpen bodyKind = iota // so far the body is only a name or white space
	bodyJSON
	bodyTagged // the body is values between tags
)

type bodyMark uint8

const (
	bodyContinues bodyMark = iota
	bodyEnds
	bodyBegins // the byte ends another opening tag inside of the body
)

// next reads c, the byte that follows body, and returns whether the body continues, ends with c, or contains a new opening tag that ends
// with c.
func (s *bodyScan) next(c byte, body []byte) bodyMark {
	switch {
	case s.inString:
		s.readString(c)
	case c == '>':
		return s.mark(body)
	case s.kind == bodyOpen && (c == '{' || c == '['):
		s.kind, s.depth = bodyJSON, 1
	case s.kind == bodyOpen && c == '<':
		s.kind = bodyTagged // or the < of the closing tag, if the body is only a name
	case s.kind == bodyJSON:
		s.readJSON(c)
	}
	return bodyContinues
}

// readString reads a byte in a JSON string.
func (s *bodyScan) readString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
	}
}

// readJSON reads a byte of JSON outside of strings.
func (s *bodyScan) readJSON(c byte) {
	switch c {
	case '"':
		s.inString = s.depth > 0
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
		s.complete = s.complete || s.depth == 0
	}
}

// mark returns what the byte > means that follows body: it may be the last byte of a closing or an opening tag.
func (s *bodyScan) mark(body []byte) bodyMark {
	mark := bodyContinues
	switch {
	case bytes.HasSuffix(body, []byte(tagClose[:len(tagClose)-1])):
		mark = bodyEnds
	case bytes.HasSuffix(body, []byte(tagOpen[:len(tagOpen)-1])):
		mark = bodyBegins
	}
	if mark != bodyContinues && s.kind == bodyTagged && inValue(body) {
		return bodyContinues
	}
	return mark
}

// inValue reports whether a tag at the end of body would be part of a value: a parameter or argument is not closed yet, as in
//
//	<function=weather><parameter=city>Os
//
// or the JSON that a function has in place of parameters is incomplete, as in
//
//	<function=weather>{"city":"Os
func inValue(body []byte) bool {
	last := func(tag string) int { return bytes.LastIndex(body, []byte(tag)) } // -1: none
	opened, closed := max(last("<parameter="), last("<arg_value>")), max(last("</parameter>"), last("</arg_value>"))
	if opened > closed {
		return true
	}
	function := last("<function=")
	if function < 0 || function < last("</function>") {
		return false
	}
	_, content, _ := bytes.Cut(body[function:], []byte{'>'})
	content = bytes.TrimLeft(content, " \t\r\n")
	if !bytes.HasPrefix(content, []byte{'{'}) {
		return false
	}
	_, err := rawjson.Scan(content, 0)
	return err != nil
}

// closed reports whether the body is one JSON value that is complete. A body without a closing tag is read only if it is closed: for the
// other forms, the end is unknown.
func (s *bodyScan) closed() bool {
	return s.kind == bodyJSON && s.complete && s.depth == 0 && !s.inString
}

// readCalls reads the body of a tag in one of these forms: JSON with name and arguments as in the dialect hermes, or with `args`, or under
// `function`; a name followed by JSON; a bare name; or the tagged values of the dialects qwen3-coder and glm. It returns false if the body
// has none of these forms. limit bounds the payload in bytes.
func readCalls(body string, tools []*lathe.ToolSpec, limit int) ([]tagCall, bool) {
	trimmed := strings.TrimSpace(body)
	switch {
	case trimmed == "":
		return nil, false
	case strings.HasPrefix(trimmed, "<function="):
		return readDialect("qwen3-coder", body, tools, limit)
	case trimmed[0] == '{':
		if c, ok := readObject(trimmed); ok {
			return []tagCall{c}, true
		}
		return readDialect(tagDialect, body, tools, limit)
	case trimmed[0] == '[':
		return readDialect(tagDialect, body, tools, limit)
	case strings.Contains(trimmed, "<arg_key>"):
		return readDialect("glm", body, tools, limit)
	}
	name := nameIn(trimmed)
	args := strings.TrimSpace(trimmed[len(name):])
	isValid := args == "" || isObject(args)
	if name == "" || !isValid {
		return nil, false
	}
	return []tagCall{{name: name, args: args, dialect: tagDialect}}, true
}

// readDialect reads the body with the parser of the named dialect. It returns false unless the whole body is complete calls.
func readDialect(name, body string, tools []*lathe.ToolSpec, limit int) ([]tagCall, bool) {
	found, ok := dialect.Lookup(name)
	if !ok {
		return nil, false
	}
	parser := found.NewParser(&dialect.Options{Tools: tools, MaxPayloadBytes: limit})
	deltas, err := parser.Flush(parser.Append(nil, tagOpen+body+tagClose))
	if err != nil {
		return nil, false
	}
	var calls []tagCall
	var args strings.Builder
	for i := range deltas {
		switch d := &deltas[i]; d.Kind {
		case lathe.DeltaCallStart:
			args.Reset()
			calls = append(calls, tagCall{id: d.ID, name: d.Name, dialect: name})
		case lathe.DeltaCallArgs:
			args.WriteString(d.Text)
		case lathe.DeltaCallEnd:
			c := &calls[len(calls)-1]
			c.args = args.String()
			if d.ID != "" {
				c.id = d.ID
			}
			if d.Incomplete {
				return nil, false
			}
		case lathe.DeltaText:
			if strings.TrimSpace(d.Text) != "" {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return calls, len(calls) > 0
}

// readObject reads the two forms of JSON that the dialect hermes does not include, and refuses all others:
//
//	{"name":"weather","args":{"city":"Oslo"}}
//	{"id":"1","function":{"name":"weather","arguments":{"city":"Oslo"}}}
func readObject(text string) (tagCall, bool) {
	b := []byte(text)
	if rawjson.Check(b, rawjson.Limits{}) != nil {
		return tagCall{}, false
	}
	call := b // the object with the name and the arguments
	function := rawjson.At(b, "function")
	hasOnlyArgs := rawjson.At(b, "args") != nil && rawjson.At(b, "arguments") == nil && rawjson.At(b, "parameters") == nil
	switch {
	case rawjson.Kind(function) == '{' && stringIn(b, "name") == "":
		call = function
	case function != nil || !hasOnlyArgs:
		return tagCall{}, false
	}
	c := tagCall{id: stringIn(b, "id"), name: stringIn(call, "name"), dialect: tagDialect}
	for _, key := range [...]string{"arguments", "parameters", "args"} {
		if raw := rawjson.At(call, key); raw != nil {
			c.args = string(raw)
			break
		}
	}
	return c, isName(c.name)
}

// stringIn returns the string under key. It returns "" if the object has none there.
func stringIn(obj []byte, key string) string {
	text, err := rawjson.AppendUnquote(nil, rawjson.At(obj, key))
	if err != nil {
		return ""
	}
	return string(text)
}

func isObject(text string) bool {
	_, ok := rawjson.Object([]byte(text))
	return ok
}

// nameIn returns the tool name at the beginning of text, after leading white space. It returns "" if none exists.
func nameIn(text string) string {
	text = strings.TrimSpace(text)
	n := 0
	for n < len(text) && isNameByte(text[n]) {
		n++
	}
	return text[:n]
}

func isName(s string) bool { return s != "" && nameIn(s) == s && len(s) <= maxName }

const maxName = 256

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}
