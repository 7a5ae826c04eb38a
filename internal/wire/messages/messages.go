// Package messages is the codec of Anthropic's Messages (POST /v1/messages), for servers and for clients: [Codec] implements
// [wire.Served] and [wire.Upstream].
//
// The internal form has one message for each tool result and for each change of role; the wire has alternating turns of user and assistant.
// ParseRequest splits turns. AppendRequest joins messages to turns, in which the results of a step are first, in the order of the calls.
// System messages between turns keep their place.
//
// Arguments, signatures and unknown members are passed on byte for byte.
package messages

import (
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Codec is the codec of Messages. The zero value is ready for use.
type Codec struct{}

var (
	_ wire.Served   = Codec{}
	_ wire.Upstream = Codec{}
)

// Wire returns [lathe.WireMessages].
func (Codec) Wire() lathe.Wire { return lathe.WireMessages }

// Path returns "/v1/messages". Base URLs of this wire do not contain the version, as in ANTHROPIC_BASE_URL.
func (Codec) Path(string, bool) string { return "/v1/messages" }

// Vendor implements [wire.Upstream].
func (Codec) Vendor() wire.Vendor {
	return wire.Vendor{BaseURL: "https://api.anthropic.com", KeyHeader: "x-api-key", Header: "anthropic-version", Value: Version}
}

// Versions of the API, which are dates. A client may send firstVersion, Version, or any date after Version. The codec implements Version: a
// later version passes through it with the rules of Version, and is reported as newer. One difference of later versions is known: from
// newestVersion on, the API refuses the members in samplingNames.
const (
	firstVersion = "2023-01-01"
	// Version is the version of the API that this codec implements.
	Version = "2023-06-01"
	// newestVersion is the newest version of the API of which the codec knows a difference from Version.
	newestVersion = "2026-10-21"
)

// samplingNames are the members that the API refuses from newestVersion on.
var samplingNames = []string{"temperature", "top_p", "top_k"}

// AcceptsVersion reports whether version is valid: 2023-01-01, [Version] or a later date. The codec applies its own rules to requests and
// answers of later versions.
func AcceptsVersion(version string) bool {
	return version == firstVersion || version == Version || NewerVersion(version)
}

// NewerVersion reports whether version is a date after [Version].
func NewerVersion(version string) bool {
	_, err := time.Parse(time.DateOnly, version)
	return err == nil && version > Version
}

// RefusesSampling reports whether version is a date from which on the API refuses temperature, top_p and top_k.
func RefusesSampling(version string) bool { return NewerVersion(version) && version >= newestVersion }

// NewerBeta reports whether the name of a beta, such as "mcp-client-2025-11-20", ends with a date after newestVersion.
func NewerBeta(name string) bool {
	date := name[max(0, len(name)-len(time.DateOnly)):]
	return NewerVersion(date) && date > newestVersion
}

// The kinds of [lathe.Fault] that an Assembler counts.
const (
	faultBadEvent     = "bad_event"     // data that is not a JSON object; skipped
	faultUnknownEvent = "unknown_event" // an event or a delta of an unknown type; skipped
	faultOrder        = "event_order"   // an event for a block that is not open, or a block that was not closed
	faultAfterEnd     = "after_end"     // an event after message_stop; skipped
	faultPaused       = "pause_turn"    // the server paused a long turn
	faultStopReason   = "stop_reason_unknown"
	faultStopMismatch = "stop_reason_mismatch" // the reason is tool_use without a call, or another reason with a call
	faultUsage        = "usage_invalid"        // a token count that is not a number
	faultArguments    = "arguments_not_object" // a call whose input is not an object
	faultDropped      = "thinking_dropped"     // the server dropped thinking of the history, because what precedes it has changed
)

// Values of lathe.Reasoning.Field on this wire.
const (
	fieldThinking = "thinking"
	fieldRedacted = "redacted_thinking"
)

const (
	maxID    = 64 // bytes of a call's id and of a tool's name
	hashSize = 16 // hexadecimal digits of a hash in a name
)

// CallID returns the form of a call id on this wire: the id itself if it has at most 64 letters, digits, _ and -, otherwise one derived
// from its hash. Equal ids give equal results.
func CallID(id string) string { return wire.ShortID("toolu_", id, maxID) }

// shortName returns the name of a tool in the internal form: the name itself if it is valid, otherwise its valid characters followed by a
// hash.
func shortName(name string) string {
	switch {
	case name == "":
		return "unknown"
	case len(name) <= maxID && wire.PlainName(name):
		return name
	}
	return wire.Masked(name[:min(len(name), maxID-1-hashSize)]) + "_" + wire.Hash(name)[:hashSize]
}
