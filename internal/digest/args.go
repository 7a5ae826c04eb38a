// Package digest names arguments, tools, approvals and prompts by hashes, so that records can tell
// equal from different without holding any text.
//
// All hashes are SHA-256 in lower-case hexadecimal, and depend on nothing but what the functions
// are given. Functions may be called from several goroutines at once.
package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Mode says how [ArgsPreview] hashes. The zero value is Compat.
type Mode uint8

// The modes.
const (
	Compat Mode = iota // the first PreviewLength characters of the canonical text
	Full               // the whole canonical text
	Keyed              // HMAC of the whole canonical text
)

// PreviewLength is the number of characters that [Compat] takes.
const PreviewLength = 200

// previewHex is the number of hexadecimal digits that ArgsPreview keeps.
const previewHex = 32

// ArgsPreview returns the first 32 hexadecimal digits of a hash of the argument text args.
//
// The canonical text is what Python's json.dumps(args, sort_keys=True) prints (see
// [rawjson.AppendPython]), so that equal values have equal hashes however they were written.
// Text that is no JSON value, or is beyond the default limits of [rawjson.Check], has no
// canonical text: then all of args is hashed as it is, in every mode.
//
// Few possible arguments can be guessed from Compat and Full by trying them all; Keyed needs key
// for that. Keyed without a key returns "" rather than a hash that only looks safe.
func ArgsPreview(args []byte, mode Mode, key []byte) string {
	text, err := rawjson.AppendPython(make([]byte, 0, len(args)+len(args)/4), args)
	switch {
	case err != nil:
		text = args
	case mode == Compat:
		text = text[:min(len(text), PreviewLength)]
	}
	if mode != Keyed {
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:previewHex/2])
	}
	if len(key) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:previewHex/2])
}

// ArgsDigest returns the hash that binds an approval to one call: to the run, the call id, the
// tool, the tool's schema and the arguments. Schema and arguments count by their values: their
// RFC 8785 form is hashed, or, where they are not valid under [rawjson.Check], their bytes.
//
// It is the hash of these fields, each with its length in eight bytes before it, so that no two
// lists of fields have the same bytes: "lathe approval 1", run id, call id, tool, "json" or "text",
// the SHA-256 of the schema, "json" or "text", the arguments.
func ArgsDigest(runID, callID, tool string, schema, args []byte) string {
	form, schemaKind := canonical(schema)
	schemaSum := sha256.Sum256(form)
	form, kind := canonical(args)
	var b []byte
	for _, s := range [...]string{"lathe approval 1", runID, callID, tool, schemaKind} {
		b = appendField(b, s)
	}
	b = appendField(b, schemaSum[:])
	b = appendField(b, kind)
	b = appendField(b, form)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonical returns the RFC 8785 form of text and "json", or text and "text".
func canonical(text []byte) (form []byte, kind string) {
	form, err := rawjson.AppendCanonical(make([]byte, 0, len(text)), text)
	if err != nil {
		return text, "text"
	}
	return form, "json"
}

func appendField[T string | []byte](b []byte, s T) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
