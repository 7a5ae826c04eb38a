package gemini

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendAnswer implements [wire.Served]. Calls of the server and approvals have no form on this wire.
func (Codec) AppendAnswer(dst []byte, a *wire.Answer) []byte {
	start := len(dst)
	dst = append(dst, chunkHead...)
	open := len(dst)
	dst, refused, broken := appendAnswerParts(dst, a)
	if len(dst) == open {
		if blocked(a.Finish) {
			dst = appendBlocked(dst[:start], a.Finish)
			return appendEnd(dst, appendNames(nil, a.Model, answerID(&a.AnswerHead)), a.Finish, a.Extra)
		}
		dst = appendTextValue(dst, "", false, "")
	}
	dst = append(dst, `]},"finishReason":"`...)
	dst = append(append(dst, reasonWord(a.Finish, refused, broken)...), `","index":0}]`...)
	return appendEnd(dst, appendNames(nil, a.Model, answerID(&a.AnswerHead)), a.Finish, a.Extra)
}

// appendAnswerParts appends the parts of a whole answer, with the carriers in their places.
func appendAnswerParts(dst []byte, a *wire.Answer) (_ []byte, refused, broken bool) {
	w := &Writer{req: a.Request, run: answerID(&a.AnswerHead)}
	sign := func(signature string) {
		if before := w.take(); before != "" {
			dst = appendTextValue(appendComma(dst, '['), "", false, before)
		}
		w.signature = signature
	}
	hide := hidesThoughts(a.Request)
	m := &a.Finish.Message
	own := m.Wire == lathe.WireGemini
	items, calls := a.Items, 0
	carry := func(before int) {
		for len(items) > 0 && items[0].Before <= before {
			if items[0].Carrier != "" {
				sign(sealed(items[0].Carrier))
			}
			items = items[1:]
		}
	}
	for i, p := range m.Parts {
		carry(i)
		switch p := p.(type) {
		case lathe.Text:
			if !p.Unreadable && (p.Text != "" || w.signature != "") {
				dst = appendTextValue(appendComma(dst, '['), p.Text, false, w.take())
			}
		case lathe.Refusal:
			refused = true
			dst = appendTextValue(appendComma(dst, '['), p.Text, false, w.take())
		case lathe.Reasoning:
			switch {
			case p.Field == fieldSignature && own:
				sign(p.Data)
			case !hide && own && p.Field == fieldThought:
				dst = appendTextValue(appendComma(dst, '['), p.Text, true, p.Data)
			case !hide && p.Text != "":
				dst = appendTextValue(appendComma(dst, '['), p.Text, true, "")
			}
		case lathe.ToolCall:
			c := &outCall{id: p.ID, name: p.Name, args: []byte(p.Arguments), cut: p.Incomplete}
			if w.writable(c) {
				c.signature = w.take()
				dst = w.appendCall(appendComma(dst, '['), calls, c)
			}
			calls++
		default:
			before := len(dst)
			if dst = appendOwn(dst, m, p, w.signature); len(dst) > before {
				w.signature = ""
			}
		}
	}
	carry(len(m.Parts))
	sign("")
	return dst, refused, w.broken
}

// appendOwn appends a part that deltas do not contain: a file that the model generated, or an unknown part of this wire.
func appendOwn(dst []byte, m *lathe.Message, p lathe.Part, signature string) []byte {
	switch p := p.(type) {
	case lathe.Blob:
		switch {
		case len(p.Raw) > 0 && m.Wire == lathe.WireGemini:
			return appendSigned(dst, compact(p.Raw), signature)
		case len(p.Data) > 0 || p.URL != "":
			dst = appendBlobValue(append(appendComma(dst, '['), '{'), &p)
			return append(appendSignature(dst, signature), '}')
		}
	case lathe.Opaque:
		if m.Wire == lathe.WireGemini && wire.Kind(p.JSON) == '{' {
			return appendSigned(dst, compact(p.JSON), signature)
		}
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult: // have deltas
	}
	return dst
}

// reasonWord returns the finishReason of an answer. broken is whether the answer has a call that the wire cannot express.
func reasonWord(f *lathe.Finish, refused, broken bool) string {
	switch {
	case f.Reason == lathe.FinishLength:
		return "MAX_TOKENS"
	case broken:
		return "MALFORMED_FUNCTION_CALL"
	case f.Reason == lathe.FinishContentFilter:
		if r, known := finishReason(f.RawReason); known && r == f.Reason {
			return f.RawReason
		}
		return "SAFETY"
	case f.Reason == lathe.FinishUnknown:
		return "OTHER"
	case refused && f.Reason == lathe.FinishStop:
		return "SAFETY"
	}
	return "STOP"
}

// blocked reports whether the answer is the refusal of a prompt.
func blocked(f *lathe.Finish) bool {
	return f.Reason == lathe.FinishContentFilter && len(f.Message.Parts) == 0
}

// appendBlocked appends the beginning of the object for a refused prompt.
func appendBlocked(dst []byte, f *lathe.Finish) []byte {
	word := "SAFETY"
	switch f.RawReason {
	case "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK":
		word = f.RawReason
	}
	dst = append(dst, `{"promptFeedback":{"blockReason":"`...)
	return append(append(dst, word...), `"}`...)
}
