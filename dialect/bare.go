package dialect

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// bareCalls reads a message as a call if its whole text is one JSON object, in a code fence or not, that has the name of an offered tool
// and arguments of types that the tool's schema allows (bare_calls), such as {"name":"write","arguments":{"path":"a.txt"}}. It buffers text
// while the text may be such an object, and passes all other deltas of its parser on.
type bareCalls struct {
	wrapped
	opts   Options
	state  bareState
	held   []lathe.Delta // the buffered text, which may be a call
	size   int           // number of bytes of held
	unread string        // the end of held that is not scanned yet
	object jsonScan      // scanner of the object
	looked int           // number of bytes examined; a test proves by it that the time is linear
	deltas []lathe.Delta // the deltas of the last piece
}

// A bareState is the part of the message that is read next; only read and release set it.
type bareState uint8

const (
	bareBegin  bareState = iota // before the object and a code fence around it
	bareFenced                  // after the opening of a code fence
	bareObject                  // in the object or after it
	bareText                    // text, not a call: all deltas are passed on
)

func (b *bareCalls) Append(dst []lathe.Delta, text string) []lathe.Delta {
	if b.state == bareText {
		return b.fullParser.Append(dst, text)
	}
	b.deltas = b.fullParser.Append(b.deltas[:0], text)
	return b.pass(dst)
}

func (b *bareCalls) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	if b.state == bareText {
		return b.fullParser.Flush(dst)
	}
	var err error
	b.deltas, err = b.fullParser.Flush(b.deltas[:0])
	dst = b.pass(dst)
	if b.state == bareText {
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
	for _, d := range b.deltas {
		beforeText := d.Kind == lathe.DeltaReasoning && len(b.held) == 0
		isText := d.Kind == lathe.DeltaText && !d.Unreadable
		switch {
		case b.state == bareText, beforeText:
			dst = append(dst, d)
		case isText && b.read(d.Text):
			b.held = append(b.held, d)
		default:
			dst = append(b.release(dst), d)
		}
	}
	return dst
}

// release appends the buffered deltas to dst and ends the search: the text is no call.
func (b *bareCalls) release(dst []lathe.Delta) []lathe.Delta {
	dst = append(dst, b.held...)
	b.state, b.held = bareText, nil
	return dst
}

// read reads the next text. It returns false if the message cannot be one call.
func (b *bareCalls) read(text string) bool {
	b.size += len(text)
	if b.size > b.opts.MaxPayloadBytes {
		return false
	}
	b.unread += text
	b.looked += len(b.unread)
	b.unread = trimSpace(b.unread)
	if b.state == bareBegin {
		if strings.HasPrefix(fence+"json", b.unread) {
			return true
		}
		if after, ok := strings.CutPrefix(b.unread, fence); ok {
			b.state, b.unread = bareFenced, trimSpace(strings.TrimPrefix(after, "json"))
		}
	}
	if b.unread == "" {
		return true
	}
	if b.state != bareObject {
		b.state, b.object = bareObject, jsonScan{lax: true}
		if b.unread[0] != '{' {
			return false
		}
	}
	b.unread = trimSpace(b.unread[b.object.scan(b.unread):])
	closesFence := b.object.state == jsonDone && strings.HasPrefix(b.unread, "`") && len(b.unread) <= maxGapBytes
	return b.object.state != jsonBad && (b.unread == "" || closesFence)
}

// call returns the call that the whole text describes; false if it describes none of an offered tool.
func (b *bareCalls) call() (lathe.ToolCall, bool) {
	var text []byte
	for _, d := range b.held {
		text = append(text, d.Text...)
	}
	text = bytes.TrimSpace(text)
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
		if may := propertyTypes(t.Schema, rawjson.Text(key)); may != 0 && may&typeOf(value) == 0 {
			return false
		}
	}
	return true
}
