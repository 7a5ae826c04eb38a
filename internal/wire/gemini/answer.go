package gemini

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// appendPart appends a chunk with a file that the model generated, or with an opaque part of this wire, and the pending signature.
func (w *Writer) appendPart(dst wire.JSON, d *lathe.Delta) wire.JSON {
	own := d.Name == string(lathe.WireGemini)
	switch p := d.Part.(type) {
	case lathe.Blob:
		switch {
		case len(p.Raw) > 0 && own:
			return w.chunk(dst, func(dst wire.JSON) wire.JSON { return appendSigned(dst, compact(p.Raw), w.take()) })
		case len(p.Data) > 0 || p.URL != "":
			return w.chunk(dst, func(dst wire.JSON) wire.JSON {
				return appendSignature(appendBlobValue(append(dst, '{'), &p), w.take()).Lit("}")
			})
		}
	case lathe.Opaque:
		if own && wire.Kind(p.JSON) == '{' {
			return w.chunk(dst, func(dst wire.JSON) wire.JSON { return appendSigned(dst, compact(p.JSON), w.take()) })
		}
	default: // other parts have deltas of their own
	}
	return dst
}

// reasonWord returns the finishReason of an answer. broken is set if the answer has a call that the wire cannot express.
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

// blocked reports whether the answer is the refusal of the prompt: a content filter stopped it before any part.
func blocked(f *lathe.Finish) bool {
	return f.Reason == lathe.FinishContentFilter && len(f.Message.Parts) == 0
}

// appendBlocked appends the beginning of the object that reports a refused prompt.
func appendBlocked(dst wire.JSON, f *lathe.Finish) wire.JSON {
	word := "SAFETY"
	switch f.RawReason {
	case "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK":
		word = f.RawReason
	}
	return dst.Lit(`{"promptFeedback":{"blockReason":"`).Lit(word).Lit(`"}`)
}
