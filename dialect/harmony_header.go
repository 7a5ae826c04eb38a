package dialect

import (
	"bytes"

	"github.com/lathe-run/lathe"
)

// maxHeaderBytes bounds the header of a harmony message; beyond it the header is text.
const maxHeaderBytes = 1024

// A header is what stands before `<|message|>`: the role, the channel, the recipient (in the part
// of either) and the content type. It is collected part by part and read when it is whole.
type header struct {
	buf      []byte
	parts    [8]headerPart
	n        int  // parts in use
	implicit bool // no mark was seen: the header may yet turn out to be text

	role, channel, recipient, contentType []byte
	rest                                  []byte // what is neither: the content, where `<|message|>` is missing
	unknown, foreign                      int
}

// A headerPart begins at from in buf; mark is what stood before it (markStart for the role).
type headerPart struct {
	mark, from int
}

func (h *header) reset() {
	h.buf = h.buf[:0]
	h.parts[0] = headerPart{mark: markStart}
	h.n = 1
	h.implicit = false
}

// add reads text of the part; false: it is too long to be a header, and was not added.
func (h *header) add(s string) bool {
	if len(h.buf)+len(s) > maxHeaderBytes {
		return false
	}
	h.buf = append(h.buf, s...)
	return true
}

// part begins the next part.
func (h *header) part(mark int) {
	h.implicit = false
	if h.n < len(h.parts) {
		h.parts[h.n] = headerPart{mark: mark, from: len(h.buf)}
		h.n++
	}
}

// text returns the header as it was written.
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

func (h *header) bytes(i int) []byte {
	end := len(h.buf)
	if i+1 < h.n {
		end = h.parts[i+1].from
	}
	return h.buf[h.parts[i].from:end]
}

// content is what a message holds.
type content uint8

const (
	contentFinal content = iota
	contentAnalysis
	contentCommentary
	contentCall
	contentTool // a payload on the `tool` channel
	contentPlain
)

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

// resolve reads the parts. A recipient makes a call on whatever channel it stands; knows says
// which bare words are tools.
func (h *header) resolve(knows func(string) bool) content {
	h.role, h.channel, h.recipient, h.contentType, h.rest = nil, nil, nil, nil, nil
	h.unknown, h.foreign = 0, 0
	for i, p := range h.parts[:h.n] {
		h.readPart(p.mark, h.bytes(i), knows)
	}
	switch role := string(h.role); role {
	case "assistant", "":
	case "analysis", "commentary", "final": // the channel's mark is missing
		if h.channel == nil {
			h.channel = h.role
		}
	case "user", "system", "developer":
		h.foreign = 1
		return contentPlain
	default:
		h.foreign = 1
		if len(h.recipient) == 0 && len(h.channel) == 0 && h.n == 1 {
			h.rest = h.buf // no role at all: text
			return contentPlain
		}
		return contentCommentary // a tool's answer
	}
	if name := h.name(); len(name) > 0 {
		h.recipient = name
		return contentCall
	}
	return h.byChannel()
}

// name returns the tool that the message is addressed to; nil: none.
func (h *header) name() []byte {
	switch string(h.recipient) {
	case "", "assistant", "user", "all", "functions", "functions.":
		return nil
	}
	return bytes.TrimPrefix(h.recipient, []byte(functionsPrefix))
}

// functionsPrefix is the namespace of all tools. Models write it before a tool's name, or leave it out.
const functionsPrefix = "functions."

func (h *header) readPart(mark int, text []byte, knows func(string) bool) {
	first := true
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 {
			return
		}
		if to, after := recipientWord(text); to != nil {
			h.recipient, text = to, after
			first = false
			continue
		}
		word, after := cutWord(text)
		switch {
		case mark == markStart && first:
			h.role = word
		case mark == markChannel && first:
			// A recipient may be glued to the channel.
			if n := bytes.Index(word, []byte("to=")); n > 0 {
				after = text[n:]
				word = word[:n]
			}
			h.channel = trimChannel(word)
		case mark == markRecipient && first:
			h.recipient = word
		case mark == markConstrain && first:
			word, after = cutLetters(text)
			h.contentType = word
			if len(word) == 0 {
				h.leave(text)
				return
			}
		case h.recipient == nil && mark == markChannel && (bytes.HasPrefix(word, []byte("functions.")) || knows(string(word))):
			h.recipient = word
		case h.recipient != nil && h.contentType == nil && isContentType(word):
			h.contentType = word
		default:
			h.leave(text)
			return
		}
		text, first = after, false
	}
}

// leave keeps what a part holds beyond its words.
func (h *header) leave(text []byte) {
	if h.rest == nil {
		h.rest = text
	} else {
		h.rest = append(append([]byte(nil), h.rest...), text...)
	}
}

func isContentType(word []byte) bool {
	return string(word) == "json" || string(word) == "code"
}

// recipientWord reads `to=NAME` from the front of text; nil: it does not stand there.
func recipientWord(text []byte) (name, after []byte) {
	if !bytes.HasPrefix(text, []byte("to=")) {
		return nil, text
	}
	text = text[len("to="):]
	n := bytes.IndexAny(text, " \t\r\n{[\"<")
	if n < 0 {
		n = len(text)
	}
	return text[:n:n], text[n:]
}

func cutWord(text []byte) (word, after []byte) {
	n := bytes.IndexAny(text, " \t\r\n<")
	if n < 0 {
		n = len(text)
	}
	return text[:n], text[n:]
}

func cutLetters(text []byte) (word, after []byte) {
	n := 0
	for n < len(text) && isLetter(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }

// trimChannel takes garbage off both ends of a channel's name.
func trimChannel(word []byte) []byte {
	for len(word) > 0 && !isLetter(word[0]) {
		word = word[1:]
	}
	for len(word) > 0 && !isLetter(word[len(word)-1]) {
		word = word[:len(word)-1]
	}
	return word
}

// byChannel reads the channel's name without regard to case, near names included.
func (h *header) byChannel() content {
	for i, c := range h.channel {
		h.channel[i] = lower(c)
	}
	switch string(h.channel) {
	case "final":
		return contentFinal
	case "analysis":
		return contentAnalysis
	case "commentary":
		return contentCommentary
	case "tool":
		return contentTool
	case "":
		return contentPlain
	}
	for _, near := range []struct {
		prefix string
		is     content
	}{
		{"comment", contentCommentary}, {"analy", contentAnalysis}, {"think", contentAnalysis},
		{"thought", contentAnalysis}, {"reason", contentAnalysis}, {"final", contentFinal}, {"answer", contentFinal},
	} {
		if bytes.HasPrefix(h.channel, []byte(near.prefix)) {
			return near.is
		}
	}
	h.unknown = 1
	return contentPlain
}
