package loop

import (
	"math"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// The functions of this file check or limit names and codes from a model or its server, because they enter events, logs and metrics.

// maxToken is the maximum length of names in events, in bytes.
const maxToken = 128

// token returns s if it is printable ASCII without blanks of at most maxToken bytes, and "" otherwise.
func token(s string) string {
	if !printable(s, '!') {
		return ""
	}
	return s
}

// label returns s, the name of a model or a provider, if it is printable ASCII of at most maxToken bytes, and "unknown" otherwise. Blanks
// are allowed.
func label(s string) string {
	if !printable(s, ' ') {
		return unknown
	}
	return s
}

func printable(s string, lowest rune) bool {
	return len(s) <= maxToken && !strings.ContainsFunc(s, func(r rune) bool { return r < lowest || r > '~' })
}

func finishReason(r lathe.FinishReason) lathe.FinishReason {
	switch r {
	case lathe.FinishStop, lathe.FinishToolCalls, lathe.FinishLength, lathe.FinishContentFilter:
		return r
	default:
		return lathe.FinishUnknown
	}
}

// parseErrorCode returns c if it is a code of a call that could not be parsed, and payload_parse_error otherwise.
func parseErrorCode(c lathe.Code) lathe.Code {
	switch c {
	case lathe.CodePayloadTooLarge, lathe.CodeInvalidJSON, lathe.CodeArgumentsTooLarge, lathe.CodeIncompleteCall:
		return c
	default:
		return lathe.CodePayloadParseError
	}
}

// dialectName returns s if it has the form of a dialect name, and own, the dialect of the model, otherwise.
func dialectName(s, own string) string {
	if s == "" || len(s) > 32 || strings.Trim(s, dialectCharacters) != "" {
		return own
	}
	return s
}

const dialectCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-._"

// providerCode returns the error code of a server, or "" if it is longer than 64 bytes or contains other characters than letters, digits,
// hyphens, dots and underscores.
func providerCode(s string) string {
	if len(s) > 64 || strings.Trim(s, dialectCharacters+"ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return s
}

func upstreamKind(k lathe.UpstreamKind) bool {
	switch k {
	case lathe.UpstreamTimeout, lathe.UpstreamRateLimited, lathe.Upstream4xx, lathe.Upstream5xx, lathe.UpstreamAborted,
		lathe.UpstreamBadProtocol, lathe.UpstreamLoading:
		return true
	default:
		return false
	}
}

// codeOf returns the code of a model's error if a model call may fail with it, and internal otherwise.
func codeOf(err error) lathe.Code {
	switch c := lathe.CodeOf(err); c {
	case "", lathe.CodeUpstream, lathe.CodeUpstreamProtocol, lathe.CodeTimeout, lathe.CodeCancelled, lathe.CodeInterrupted, lathe.CodeRateLimited,
		lathe.CodeUnavailable, lathe.CodeIncompleteCall, lathe.CodeInvalidRequest, lathe.CodeInvalidConfig, lathe.CodeConflict, lathe.CodeNotFound,
		lathe.CodeBudgetExhausted, lathe.CodePriceUnknown:
		return c
	default:
		return lathe.CodeInternal
	}
}

// faultKinds are the known kinds of a [lathe.Fault], sorted. Other kinds are counted as otherFault.
var faultKinds = []string{
	"after_done", "arguments_not_text", "arguments_replaced", "bad_line", "call_in_thought", "call_repeated", "cut_after_finish", "deprecated_syntax",
	"done_missing", "duplicate_member", "empty_line", "extra_choice", "finish_reason_mismatch", "finish_reason_missing",
	"finish_reason_repeated", "finish_reason_unknown", "function_call",
	"harmony_parse_error.foreign_role", "harmony_parse_error.header", "harmony_parse_error.stray_text",
	"harmony_parse_error.truncated_header", "harmony_parse_error.unknown_channel",
	"harmony_unexpected_order.analysis_after_final", "harmony_unexpected_order.commentary_after_final",
	"harmony_unexpected_order.extra_final", "harmony_unexpected_order.interleaved_final",
	"id_changed", "id_duplicate", "id_late", "id_missing", "index_changed", "index_invalid", "index_missing", "index_reused",
	"invalid_utf8", "leaked_call", "name_late", "name_missing", "name_repaired", "name_repeated", "name_split", "reasoning_twice",
	"split_character", "tag_call", "thinking_dropped", "thinking_mark", "tool_calls_malformed", "tool_choice_ignored", "unknown_content", "unreadable_call", "usage_invalid",
}

// otherFault is the kind that replaces every unknown kind.
const otherFault = "other"

// faults returns the faults of a turn, with known kinds, each kind once.
func faults(in []lathe.Fault) []lathe.Fault {
	if len(in) == 0 {
		return nil
	}
	out := make([]lathe.Fault, 0, min(len(in), len(faultKinds)+1))
	for _, f := range in {
		if f.Count <= 0 {
			continue
		}
		if _, known := slices.BinarySearch(faultKinds, f.Kind); !known {
			f.Kind = otherFault
		}
		if i := slices.IndexFunc(out, func(o lathe.Fault) bool { return o.Kind == f.Kind }); i >= 0 {
			out[i].Count += f.Count
			continue
		}
		out = append(out, f)
	}
	return out
}

// maxCountedCost is the maximum cost of one model call that is counted from a server's report, in US dollars.
const maxCountedCost = 1_000_000

// cost returns the cost that a server reported, at most maxCountedCost, or nil if it is not a finite number from 0.
func cost(c *float64) *float64 {
	if c == nil || !(*c >= 0) || math.IsInf(*c, 0) {
		return nil
	}
	n := min(*c, maxCountedCost)
	return &n
}

// maxCountedTokens is the maximum of each token count of one model call, so that no answer of a server makes a sum overflow.
const maxCountedTokens = 1_000_000_000_000

// usage limits each token count to 0 through maxCountedTokens.
func usage(u lathe.Usage) lathe.Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.CachedTokens, &u.CacheWriteTokens, &u.ReasoningTokens} {
		*n = min(max(*n, 0), maxCountedTokens)
	}
	return u
}
