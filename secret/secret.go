// Package secret contains a type for keys, tokens and passwords that fmt, JSON and slog do not print. It also finds and removes such values
// in text from outside.
//
// A [Secret] contains one value. [Scrub] removes known values, and text that looks like a key or is assigned to the name of a secret, from
// error texts. [ScrubProse] removes more, from texts of models and people. A [Finder] finds many known values at once, in every encoding in
// which they may be written.
package secret

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
)

// Redacted is the text that is printed in place of a secret.
const Redacted = "[redacted]"

// A Secret is a key, token or password. It is printed as [Redacted] by every verb of fmt, in JSON, in text encodings and in slog, also
// inside other structs; only Reveal returns the value. The zero Secret is empty. Secrets may be copied and used by several goroutines at
// once.
type Secret struct {
	// The value is in a function, because reflection cannot look into one: fmt calls no method of an unexported field, but prints the
	// memory of the field.
	reveal func() string
}

// New returns a Secret of s. New("") is the zero Secret.
func New(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{reveal: func() string { return s }}
}

// Reveal returns the value, "" for the zero Secret.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether the value is "".
func (s Secret) IsZero() bool { return s.reveal == nil }

// Equal reports whether both values are equal. Its time does not depend on where they differ, only on their lengths.
func (s Secret) Equal(o Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
}

// String returns Redacted, and "" for the zero Secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return Redacted
}

// Format writes the result of String, for every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText returns the result of String, so that JSON, XML and YAML do not have the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns the result of String, so that slog does not log the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
