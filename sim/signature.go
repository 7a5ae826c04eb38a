package sim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Some vendors sign the reasoning of their models and require that clients send it back unchanged, in its place and to the same model.
// The simulated model does the same: a signature contains the name of the model and digests of the reasoning and of the first call after
// it. Equal turns of one model have equal signatures. The signature is not secret: any program can compute it. It is the base64 of fields
// separated by zero bytes, of which the last but one may be missing:
//
//	sim/signature/1  MODEL  DIGEST-OF-REASONING  DIGEST-OF-CALL  DIGEST-OF-PRECEDING-MESSAGES  DIGEST-OF-THESE-FIELDS

// signatureHead is the first field of a signature.
const signatureHead = "sim/signature/1"

// sign returns the signature of a turn of the model.
func sign(model string, t *Turn) string {
	call := ""
	if len(t.Calls) > 0 {
		call = orderKey(t.Calls[0].Name, t.Calls[0].Arguments)
	}
	fields := []string{model, digest(t.Reasoning + t.hidden), digest(call)}
	if t.before != "" {
		fields = append(fields, t.before)
	}
	return encodeSignature(fields...)
}

func encodeSignature(fields ...string) string {
	text := signatureHead + "\x00" + strings.Join(fields, "\x00")
	return base64.StdEncoding.EncodeToString([]byte(text + "\x00" + digest(text)))
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// A signed contains the fields of a signature.
type signed struct {
	model, thoughts, call string
	before                string // see [exchange.before]; "" if the signature is not bound to the preceding messages
}

// readSignature parses a signature. ok is false if data is no signature or was changed.
func readSignature(data string) (s signed, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return s, false
	}
	fields := strings.Split(string(raw), "\x00")
	if len(fields) < 5 || len(fields) > 6 {
		return s, false
	}
	fields = fields[1 : len(fields)-1] // without signatureHead and the last digest
	s = signed{model: fields[0], thoughts: fields[1], call: fields[2]}
	if len(fields) > 3 {
		s.before = fields[3]
	}
	return s, encodeSignature(fields...) == data
}

// ownID returns the id of the n-th call, from 1, of a model that refuses unsigned calls. A request must contain the signatures of calls
// with such ids; calls of other models need none.
func ownID(model string, n int) string { return ownPrefix(model) + itoa(n) }

func ownPrefix(model string) string { return "call_" + digest(model)[:8] + "_" }

// refusedSignatures returns the error of a history with a signature that was changed, belongs to another model or is out of place, or
// with a call of the model after the last user message without signature. It returns nil for all others.
func refusedSignatures(p *protocol, model string, history []lathe.Message) *wire.APIError {
	step := 0 // index of the message after the last user message
	for i := range history {
		if history[i].Role == lathe.RoleUser {
			step = i + 1
		}
	}
	for i := range history {
		if history[i].Role != lathe.RoleAssistant {
			continue
		}
		if words := checkSignatures(p, model, history[i].Parts, i >= step); words != "" {
			return refusal(p, i, words)
		}
	}
	return nil
}

// checkSignatures returns the fault of the signatures in an assistant message; "" if none exists. required says that calls of the model
// must be signed.
func checkSignatures(p *protocol, model string, parts []lathe.Part, required bool) string {
	isSigned := false
	calls := 0
	for i, part := range parts {
		switch part := part.(type) {
		case lathe.Reasoning:
			hasSignature := part.Data != "" && (part.Field == p.data || part.Field == redactedThinking)
			if !hasSignature || isDummy(part.Data) {
				continue
			}
			s, ok := readSignature(part.Data)
			switch {
			case !ok:
				return "The signature of the reasoning is invalid: it was changed, or it is none of this server."
			case s.model != model:
				return "The signature of the reasoning is of another model."
			case part.Text != "" && digest(part.Text) != s.thoughts:
				return "The reasoning is not the one that was signed."
			case calls > 0 || digest(firstCall(parts[i:])) != s.call:
				return "The signature of the reasoning is out of place: it stands before the call that it was written for."
			}
			isSigned = true
		case lathe.ToolCall:
			if calls == 0 && required && !isSigned && strings.HasPrefix(part.ID, ownPrefix(model)) {
				return "The call " + part.ID + " came without the signature of the reasoning that led to it."
			}
			calls++
		default: // other parts are not signed
		}
	}
	return ""
}

// firstCall returns the orderKey of the first call in parts; "" if none exists.
func firstCall(parts []lathe.Part) string {
	for _, part := range parts {
		if c, ok := part.(lathe.ToolCall); ok {
			return orderKey(c.Name, c.Arguments)
		}
	}
	return ""
}

// isDummy reports whether a signature is one of the placeholders that Google's servers accept for calls of other models.
func isDummy(data string) bool {
	return data == "skip_thought_signature_validator" || data == "context_engineering_is_the_way_to_go"
}
