package dialect

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxHeaderBytes is the maximal length, in bytes, of the header of a message; a longer header is text.
const maxHeaderBytes = 1024

// A header is the text before `<|message|>`: the role, the channel, the recipient (in the role or the channel part) and the content type.
// The two forms of the header of a call are
//
//	assistant to=functions.write<|channel|>commentary <|constrain|>json<|message|>
//	assistant<|channel|>commentary to=functions.write <|constrain|>json<|message|>
//
// The parts, which marks separate, are collected by add and part. resolve then parses their words into the second group of fields, which
// share the memory of buf.
type header struct {
	buf      []byte        // the text of all parts, without the marks
	parts    [8]headerPart // the first part is the role
	n        int           // number of parts in use
	implicit bool          // no mark was read yet: the header may turn out to be text

	role, channel, recipient, contentType []byte
	unparsed                              []byte // text after the known words: the content of the message, if `<|message|>` is missing
	foreign                               bool   // the role is not the assistant's
}

// A headerPart is a part of a header: mark precedes it (markStart for the role), and from is its offset in buf.
type headerPart struct {
	mark, from int
}

func (h *header) reset() {
	h.buf = h.buf[:0]
	h.parts[0] = headerPart{mark: markStart}
	h.n = 1
	h.implicit = false
}

// add appends text to the current part. It returns false, and does not append s, if the header would exceed maxHeaderBytes.
func (h *header) add(s string) bool {
	if len(h.buf)+len(s) > maxHeaderBytes {
		return false
	}
	h.buf = append(h.buf, s...)
	return true
}

// part begins the next part, after mark. Parts beyond the array belong to the last one.
func (h *header) part(mark int) {
	h.implicit = false
	if h.n < len(h.parts) {
		h.parts[h.n] = headerPart{mark: mark, from: len(h.buf)}
		h.n++
	}
}

// text returns the header as the model wrote it.
func (h *header) text() string {
	var b []byte
	for i, p := range h.parts[:h.n] {
		if i > 0 {
			b = append(b, harmonyTokens[p.mark]...)
		}
		b = append(b, h.bytes(i)...)
	}
	return string(b)
}

// bytes returns the text of part i.
func (h *header) bytes(i int) []byte {
	end := len(h.buf)
	if i+1 < h.n {
		end = h.parts[i+1].from
	}
	return h.buf[h.parts[i].from:end]
}

// content is the kind of a message's content.
type content uint8

const (
	contentFinal content = iota
	contentAnalysis
	contentCommentary
	contentCall
	contentTool    // a payload on the `tool` channel
	contentPlain   // text without a channel
	contentUnknown // text on a channel of unknown name
)

// delta returns the kind of the deltas of the content.
func (c content) delta() lathe.DeltaKind {
	switch c {
	case contentAnalysis:
		return lathe.DeltaReasoning
	case contentCommentary:
		return lathe.DeltaCommentary
	default:
		return lathe.DeltaText
	}
}

// resolve parses the collected parts. A message with a recipient is a call on any channel. knows reports whether a word is the name of an
// offered tool.
func (h *header) resolve(knows func(string) bool) content {
	h.role, h.channel, h.recipient, h.contentType, h.unparsed = nil, nil, nil, nil, nil
	h.foreign = false
	for i, p := range h.parts[:h.n] {
		h.readPart(p.mark, h.bytes(i), knows)
	}
	switch string(h.role) {
	case "assistant", "":
	case "analysis", "commentary", "final": // the channel's mark is missing
		if h.channel == nil {
			h.channel = h.role
		}
	case "user", "system", "developer":
		h.foreign = true
		return contentPlain
	default:
		h.foreign = true
		if len(h.recipient) == 0 && len(h.channel) == 0 && h.n == 1 {
			h.unparsed = h.buf // no role at all: text
			return contentPlain
		}
		return contentCommentary // the answer of a tool, written by the model
	}
	if name := h.name(); len(name) > 0 {
		h.recipient = name
		return contentCall
	}
	return h.byChannel()
}

// name returns the name of the tool that the recipient names; nil if the recipient is no tool.
func (h *header) name() []byte {
	switch string(h.recipient) {
	case "", "assistant", "user", "all", "functions", "functions.":
		return nil
	}
	return bytes.TrimPrefix(h.recipient, []byte(functionsPrefix))
}

// functionsPrefix is the namespace of all tools. Models write a tool's name with or without it.
const functionsPrefix = "functions."

const headerSpace = " \t\r\n"

// readPart parses the words of one part, which mark precedes, into the fields of h. The first word is what the mark announces, unless it is a
// recipient. Other words are known by their form: `to=NAME`, the name of a tool, or `json`. What follows the last known word is unparsed.
func (h *header) readPart(mark int, text []byte, knows func(string) bool) {
	to := []byte("to=")
	text = bytes.TrimLeft(text, headerSpace)
	if !bytes.HasPrefix(text, to) {
		text = bytes.TrimLeft(h.readFirst(mark, text), headerSpace)
	}
	for len(text) > 0 {
		word, rest := cutBefore(text, headerSpace+"<")
		mayBeTool := mark == markChannel && h.recipient == nil
		switch {
		case bytes.HasPrefix(text, to):
			h.recipient, rest = cutBefore(text[len(to):], headerSpace+"{[\"<")
		case mayBeTool && (bytes.HasPrefix(word, []byte(functionsPrefix)) || knows(string(word))):
			h.recipient = word
		case h.recipient != nil && h.contentType == nil && isContentType(word):
			h.contentType = word
		default:
			h.addUnparsed(text)
			return
		}
		text = bytes.TrimLeft(rest, headerSpace)
	}
}

// readFirst parses the word that mark announces: the role, the channel, the recipient or the content type. It returns the text after it.
func (h *header) readFirst(mark int, text []byte) (rest []byte) {
	if len(text) == 0 {
		return nil
	}
	word, rest := cutBefore(text, headerSpace+"<")
	switch mark {
	case markStart:
		h.role = word
	case markChannel:
		if n := bytes.Index(word, []byte("to=")); n > 0 { // a recipient may follow the channel without white space
			word, rest = word[:n], text[n:]
		}
		h.channel = bytes.TrimFunc(word, isNoLetter)
	case markRecipient:
		h.recipient = word
	case markConstrain: // JSON may follow the content type without white space
		n := len(text) - len(bytes.TrimLeftFunc(text, isASCIILetter))
		h.contentType, rest = text[:n], text[n:]
	}
	return rest
}

// addUnparsed appends text of a part that follows its known words to unparsed.
func (h *header) addUnparsed(text []byte) {
	if h.unparsed == nil {
		h.unparsed = text
	} else {
		h.unparsed = append(append([]byte(nil), h.unparsed...), text...)
	}
}

func isContentType(word []byte) bool {
	return string(word) == "json" || string(word) == "code"
}

// cutBefore divides text before the first of the characters, all of which are ASCII.
func cutBefore(text []byte, characters string) (word, after []byte) {
	n := bytes.IndexAny(text, characters)
	if n < 0 {
		n = len(text)
	}
	return text[:n:n], text[n:]
}

func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }

func isASCIILetter(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) }

func isNoLetter(r rune) bool { return !isASCIILetter(r) }

// channelPrefixes are beginnings of the names of channels. Misspelled names count as the channel that they resemble.
var channelPrefixes = [...]struct {
	prefix  string
	content content
}{
	{"comment", contentCommentary}, {"analy", contentAnalysis}, {"think", contentAnalysis},
	{"thought", contentAnalysis}, {"reason", contentAnalysis}, {"final", contentFinal}, {"answer", contentFinal},
}

// byChannel returns the content of the named channel, without regard to case.
func (h *header) byChannel() content {
	channel := string(h.channel)
	switch {
	case channel == "":
		return contentPlain
	case strings.EqualFold(channel, "tool"):
		return contentTool
	}
	for _, known := range channelPrefixes {
		n := len(known.prefix)
		if len(channel) >= n && strings.EqualFold(channel[:n], known.prefix) {
			return known.content
		}
	}
	return contentUnknown
}
