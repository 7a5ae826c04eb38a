package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// bareCalls reads a message as a call if its whole text is one JSON object, in a code fence or not, that has the name of an offered tool
// and arguments of types that the tool's schema allows (bare_calls). It buffers text while the text may be such an object, and passes all
// other deltas of its parser on.
type bareCalls struct {
	wrapped
	opts    Options
	held    []lathe.Delta // the buffered deltas of text that may be a call
	text    []byte        // the text of held
	js      jsonScan      // scanner of the object
	at      int           // offset in text of the first unread byte; white space, the fence and the object before it are read
	fenced  bool          // a code fence precedes the object
	begun   bool          // the object has begun: js is in use
	looked  int           // bytes that rest has converted so far; a test proves by it that the time is linear
	decided bool          // the text is no call: all deltas are passed on
	deltas  []lathe.Delta // the deltas of the last piece
}

func (b *bareCalls) Append(dst []lathe.Delta, text string) []lathe.Delta {
	if b.decided {
		return b.Parser.Append(dst, text)
	}
	b.deltas = b.Parser.Append(b.deltas[:0], text)
	return b.pass(dst)
}

func (b *bareCalls) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	if b.decided {
		return b.Parser.Flush(dst)
	}
	var err error
	b.deltas, err = b.Parser.Flush(b.deltas[:0])
	if dst = b.pass(dst); b.decided {
		return dst, err
	}
	if c, ok := b.call(); ok {
		return append(dst, lathe.Delta{Kind: lathe.DeltaCallStart, ID: c.ID, Name: c.Name},
			lathe.Delta{Kind: lathe.DeltaCallArgs, Text: c.Arguments}, lathe.Delta{Kind: lathe.DeltaCallEnd}), err
	}
	return b.release(dst), err
}

// pass appends the deltas of the last piece to dst, without text that may be a call: that is buffered.
func (b *bareCalls) pass(dst []lathe.Delta) []lathe.Delta {
	for i := range b.deltas {
		d := b.deltas[i]
		switch {
		case b.decided, d.Kind == lathe.DeltaReasoning && len(b.text) == 0:
			dst = append(dst, d)
			continue
		case d.Kind == lathe.DeltaText && !d.Unreadable:
			b.held, b.text = append(b.held, d), append(b.text, d.Text...)
			if b.mayBe() {
				continue
			}
			dst = b.release(dst)
		default:
			dst = append(b.release(dst), d)
		}
	}
	return dst
}

// release appends the buffered deltas to dst and ends the search: the text is no call.
func (b *bareCalls) release(dst []lathe.Delta) []lathe.Delta {
	b.decided = true
	dst = append(dst, b.held...)
	b.held, b.text = nil, nil
	return dst
}

// mayBe reads the buffered text on and reports whether it may still be the beginning of a message that is one call.
func (b *bareCalls) mayBe() bool {
	if len(b.text) > b.opts.MaxPayloadBytes {
		return false
	}
	rest := b.rest()
	if !b.begun {
		if !b.fenced {
			if (len(rest) < len(fence+"json\n") && strings.HasPrefix(fence+"json\n", rest)) || strings.HasPrefix(fence+"\n", rest) {
				return true
			}
			if after, ok := strings.CutPrefix(rest, fence); ok {
				b.fenced = true
				b.at += len(rest) - len(strings.TrimPrefix(after, "json"))
				rest = b.rest()
			}
		}
		if rest == "" {
			return true
		}
		if rest[0] != '{' {
			return false
		}
		b.begun, b.js = true, jsonScan{lax: true}
	}
	b.at += b.js.scan(rest)
	rest = b.rest()
	return b.js.state != jsonBad && (rest == "" || b.js.state == jsonDone && strings.HasPrefix(strings.TrimRight(rest, " \t\r\n"), "`") && len(rest) <= maxGapBytes)
}

// rest skips white space at the offset and returns the unread text from there.
func (b *bareCalls) rest() string {
	body := string(b.text[b.at:])
	b.looked += len(body)
	rest := trimSpace(body)
	b.at += len(body) - len(rest)
	return rest
}

// call returns the call that the whole text describes; false if it describes none of an offered tool.
func (b *bareCalls) call() (lathe.ToolCall, bool) {
	text := []byte(strings.TrimSpace(string(b.text)))
	if object, _, ok := rawjson.RepairObject(text); ok {
		text = object
	}
	if !rawjson.IsObject(text, rawjson.Limits{}) {
		return lathe.ToolCall{}, false
	}
	var c lathe.ToolCall
	for key, value := range rawjson.Members(text) {
		switch rawjson.Text(key) {
		case "name":
			c.Name = rawjson.Text(value)
		case "arguments", "parameters":
			c.Arguments += string(value)
		case "id":
			c.ID = rawjson.Text(value)
		case "type":
		default:
			return lathe.ToolCall{}, false
		}
	}
	r := reader{opts: b.opts}
	c.Name = r.toolName([]byte(c.Name))
	for _, t := range b.opts.Tools {
		if t.Name == c.Name && takes(t, []byte(c.Arguments)) {
			if c.ID == "" {
				c.ID = r.newID()
			}
			return c, true
		}
	}
	return lathe.ToolCall{}, false
}

// takes reports whether args is a JSON object with all members that the schema of the tool requires, whose strings and nulls the schema
// allows. Other types are not compared.
func takes(t *lathe.ToolSpec, args []byte) bool {
	if !rawjson.IsObject(args, rawjson.Limits{}) || !fits(t, args) {
		return false
	}
	for key, value := range rawjson.Members(args) {
		have := typeOther
		switch value[0] {
		case '"':
			have = typeString
		case 'n':
			have = typeNull
		}
		if may := propertyTypes(t.Schema, rawjson.Text(key)); may != 0 && may&have == 0 {
			return false
		}
	}
	return true
}
