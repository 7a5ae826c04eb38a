// Package digest computes hashes of arguments, tools, approvals and prompts, so that records can be compared without containing text.
//
// All hashes are SHA-256 in lower-case hexadecimal and depend only on the arguments of the functions. All functions may be called from
// several goroutines at once.
package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Mode selects what [ArgsPreview] hashes. The zero value is Compat.
type Mode uint8

// Modes of [ArgsPreview].
const (
	Compat Mode = iota // the first PreviewLength characters of the canonical text
	Full               // the whole canonical text
	Keyed              // HMAC of the whole canonical text
)

// PreviewLength is the number of characters that [Compat] hashes.
const PreviewLength = 200

// previewHex is the number of hexadecimal digits that ArgsPreview returns.
const previewHex = 32

// ArgsPreview returns the first 32 hexadecimal digits of a hash of the argument text args.
//
// The hash is that of the canonical text, which is the output of Python's json.dumps(args, sort_keys=True) (see [rawjson.AppendPython]):
// equal values have equal hashes, however they were written. If args is not a JSON value, or exceeds the default limits of [rawjson.Check],
// the bytes of args are hashed in every mode.
//
// If there are few possible arguments, they can be found from the hashes of Compat and Full by trying them all; for Keyed this requires the
// key. Keyed without a key returns "", because the hash would not be safe.
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

// ArgsDigest returns the hash that binds an approval to one call: to the run, the call id, the tool, the schema of the tool, and the
// arguments. Schema and arguments are compared by value: their RFC 8785 form is hashed, or their bytes if they are not valid for
// [rawjson.Check].
//
// The hashed text has these fields, each preceded by its length in eight bytes, so that different lists of fields never have the same
// bytes: "lathe approval 1", run id, call id, tool, "json" or "text", the SHA-256 of the schema, "json" or "text", the arguments.
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

// canonical returns the RFC 8785 form of text and "json"; if text has none, it returns text and "text".
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
