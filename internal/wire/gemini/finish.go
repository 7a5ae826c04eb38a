package gemini

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// finishReason maps a finishReason of the wire to the internal one. It returns false if the word is not known.
func finishReason(word string) (lathe.FinishReason, bool) {
	switch word {
	case "STOP":
		return lathe.FinishStop, true
	case "MAX_TOKENS":
		return lathe.FinishLength, true
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return lathe.FinishContentFilter, true
	case "OTHER", "NO_IMAGE", "CONTINUATION", "FINISH_REASON_UNSPECIFIED":
		return lathe.FinishUnknown, true
	}
	if strings.HasPrefix(word, "IMAGE_") {
		return lathe.FinishContentFilter, true
	}
	return lathe.FinishUnknown, false
}

// badCall reports whether a finish reason means that the server could not parse a call of the model. The same request may succeed if it is
// repeated.
func badCall(word string) bool {
	switch word {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE":
		return true
	}
	return false
}

// codeBadCall is the error code of an answer with such a finish reason.
const codeBadCall = "bad_call"

func (a *Assembler) takeFinish(word string) {
	if badCall(word) {
		e := &wire.APIError{Status: 502, Type: "INTERNAL", Code: codeBadCall, Message: "The model wrote a call that its server could not read (" + word + ")."}
		if a.message != "" {
			e.Message = a.message
		}
		a.Err = e
		return
	}
	if a.finish != "" {
		a.Damage(faultFinishRepeated)
	}
	a.finish = word
	a.Grow(len(word))
	if _, known := finishReason(word); !known {
		a.Damage(faultFinishUnknown)
	}
	if a.partial != nil {
		if word != "MAX_TOKENS" {
			a.Damage(faultFinishMismatch)
		}
		a.cutPartial()
	}
}

// takeFeedback reads promptFeedback. If the prompt was refused, the answer ends as a refusal, not as an error.
func (a *Assembler) takeFeedback(v []byte) {
	reason := rawjson.Text(get(v, "blockReason"))
	if reason == "" || reason == "BLOCKED_REASON_UNSPECIFIED" || reason == "BLOCK_REASON_UNSPECIFIED" || a.finish != "" {
		return
	}
	a.finish, a.blocked = reason, true
	if text := boundedText(get(v, "blockReasonMessage")); text != "" {
		a.close()
		a.Grow(len(text))
		a.parts = append(a.parts, lathe.Refusal{Text: text})
		a.Emit(lathe.Delta{Kind: lathe.DeltaRefusal, Text: text})
	}
}

// reason returns the internal finish reason, from the content of the answer and the finishReason of the server.
func (a *Assembler) reason() lathe.FinishReason {
	if a.blocked {
		return lathe.FinishContentFilter
	}
	r, _ := finishReason(a.finish)
	if a.calls > 0 && (r == lathe.FinishStop || r == lathe.FinishUnknown) {
		return lathe.FinishToolCalls
	}
	return r
}

// Finish implements [wire.Assembler].
func (a *Assembler) Finish(cleanEOF bool) (*lathe.Finish, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	if a.finish == "" || a.broken {
		return nil, wire.ErrIncomplete
	}
	if a.partial != nil { // the call began after the finish reason
		a.Damage(faultFinishMismatch)
		a.cutPartial()
	}
	a.close()
	if !cleanEOF {
		a.Fault(faultCutAfterFinish)
	}
	return &lathe.Finish{
		Message:   lathe.Message{Role: lathe.RoleAssistant, Parts: trimEmpty(a.parts), Wire: lathe.WireGemini},
		Reason:    a.reason(),
		RawReason: a.finish,
		Usage:     a.usage,
		Model:     a.Model, ResponseID: a.ID,
		Faults: a.Faults,
	}, nil
}

// Complete implements [wire.Assembler]. It also accepts a body that is a JSON array of the objects of a stream.
func (a *Assembler) Complete(dst []lathe.Delta, body []byte) ([]lathe.Delta, *lathe.Finish, error) {
	body = bytes.TrimSpace(body)
	var err error
	switch rawjson.Kind(body) {
	case '{':
		dst, err = a.Append(dst, "", body)
	case '[':
		if rawjson.Check(body, answerLimits) != nil {
			return dst, nil, wire.ErrNoAnswer
		}
		for el := range rawjson.Elements(body) {
			if dst, err = a.Append(dst, "", el); err != nil {
				break
			}
		}
	default:
		return dst, nil, wire.ErrNoAnswer
	}
	if err == nil && a.finish == "" && len(a.parts) == 0 && a.text.Len() == 0 {
		return dst, nil, wire.ErrNoAnswer
	}
	if err != nil {
		return dst, nil, err
	}
	f, err := a.Finish(true)
	return dst, f, err
}
