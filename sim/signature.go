package sim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Some vendors sign the reasoning of their models and require that clients send it back unchanged, in its place and to the same
// model. The simulated model does so too: a signature contains the name of the model and digests of the reasoning and of the
// first call after it. The same turn of the same model has the same signature. It is not a secret: any program can compute it.

// signatureHead begins the bytes of a signature.
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

// A signed has the fields of a signature.
type signed struct {
	model, thoughts, call string
	before                string // see [before]; "": the signature does not depend on it
}

// readSignature reads a signature. ok is false if it is none, or was changed.
func readSignature(data string) (s signed, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return s, false
	}
	f := strings.Split(string(raw), "\x00")
	n := len(f)
	if n != 5 && n != 6 || encodeSignature(f[1:n-1]...) != data {
		return s, false
	}
	s = signed{model: f[1], thoughts: f[2], call: f[3]}
	if n == 6 {
		s.before = f[4]
	}
	return s, true
}

// ownID returns the id under which a model that refuses unsigned calls makes its n-th call, from 1. Such calls must come back
// signed; those of other models need no signature.
func ownID(model string, n int) string { return ownPrefix(model) + itoa(n) }

func ownPrefix(model string) string { return "call_" + digest(model)[:8] + "_" }

// refusedSignatures returns the error of a history whose signatures are changed, of another model or out of place, or in
// which a call of the model, after the last message of a user, has none.
func refusedSignatures(p *protocol, model string, history []lathe.Message) *wire.APIError {
	step := 0 // the first message after the last of a user
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

// checkSignatures returns what is wrong with the signatures of an assistant message; "": nothing.
func checkSignatures(p *protocol, model string, parts []lathe.Part, required bool) string {
	isSigned := false
	calls := 0
	for i, part := range parts {
		switch part := part.(type) {
		case lathe.Reasoning:
			if part.Data == "" || part.Field != p.data && part.Field != redactedThinking {
				continue
			}
			s, ok := readSignature(part.Data)
			switch {
			case !ok && !isDummy(part.Data):
				return "The signature of the reasoning is invalid: it was changed, or it is none of this server."
			case !ok: // stands for the missing signature of another model's call
				continue
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
		default:
		}
	}
	return ""
}

// firstCall returns the key of the first call of the parts; "": none.
func firstCall(parts []lathe.Part) string {
	for _, part := range parts {
		if c, ok := part.(lathe.ToolCall); ok {
			return orderKey(c.Name, c.Arguments)
		}
	}
	return ""
}

// isDummy reports whether a signature is a placeholder, which Google's servers accept for calls of other models.
func isDummy(data string) bool {
	return data == "skip_thought_signature_validator" || data == "context_engineering_is_the_way_to_go"
}
