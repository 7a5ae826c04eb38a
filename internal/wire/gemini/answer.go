package gemini

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// partValue returns the part in a delta, or nil for a part that this wire cannot express. sign returns the signature that the part gets.
func partValue(d *lathe.Delta, sign func() string) wire.JSON {
	own := d.Name == string(lathe.WireGemini)
	switch p := d.Part.(type) {
	case lathe.Blob:
		switch {
		case len(p.Raw) > 0 && own:
			return signed(compact(p.Raw), sign())
		case len(p.Data) > 0 || p.URL != "":
			return appendBlobValue(wire.JSON("{"), &p).OptStr(fieldSignature, sign()).Lit("}")
		}
	case lathe.Opaque:
		if own && rawjson.Kind(p.JSON) == '{' {
			return signed(compact(p.JSON), sign())
		}
	default: // other parts have deltas of their own
	}
	return nil
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
