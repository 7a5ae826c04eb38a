package loop

import (
	"math"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// What a model says about itself and about its turns enters events, logs and metrics. A model may be
// any code: its words are checked against their vocabularies here, and its names against a length.

// maxToken bounds the names that events carry.
const maxToken = 128

// token returns s when it is short printable ASCII without space, else nothing.
func token(s string) string {
	if !printable(s, '!') {
		return ""
	}
	return s
}

// label returns the name of a model or a provider, which may have spaces; "unknown" for what is none.
func label(s string) string {
	if !printable(s, ' ') {
		return unknown
	}
	return s
}

func printable(s string, lowest byte) bool {
	if len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if s[i] < lowest || s[i] > '~' {
			return false
		}
	}
	return true
}

func finishReason(r lathe.FinishReason) lathe.FinishReason {
	switch r {
	case lathe.FinishStop, lathe.FinishToolCalls, lathe.FinishLength, lathe.FinishContentFilter:
		return r
	default:
		return lathe.FinishUnknown
	}
}

// parseErrorCode returns the code of a call that could not be read.
func parseErrorCode(c lathe.Code) lathe.Code {
	switch c {
	case lathe.CodePayloadTooLarge, lathe.CodeInvalidJSON, lathe.CodeArgumentsTooLarge, lathe.CodeIncompleteCall:
		return c
	default:
		return lathe.CodePayloadParseError
	}
}

// dialectName returns the name of the dialect that a call was written in; own is that of the model.
func dialectName(s, own string) string {
	if s == "" || len(s) > 32 {
		return own
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return own
		}
	}
	return s
}

// providerCode returns a server's code; empty if it is longer than 64 bytes or has another form than codes have.
func providerCode(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	}) {
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

// codeOf is the code of a model's error, from those that a model call may fail with.
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

// faultKinds are the kinds of a [lathe.Fault]; what else a model counts is `other`.
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

// otherFault is the kind of all faults that are of no kind.
const otherFault = "other"

// faults returns what a model had to tolerate, each kind once.
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

// maxCountedCost bounds what a server says that a call cost, in US dollars.
const maxCountedCost = 1_000_000

// cost returns what a server says that a call cost, at most maxCountedCost; nil for what is no amount.
func cost(c *float64) *float64 {
	if c == nil || !(*c >= 0) || math.IsInf(*c, 0) {
		return nil
	}
	n := min(*c, maxCountedCost)
	return &n
}

// maxCountedTokens bounds each count of tokens of one model call, so that no answer of a server overflows a sum.
const maxCountedTokens = 1_000_000_000_000

// usage returns the counts of tokens: none is below zero or above maxCountedTokens.
func usage(u lathe.Usage) lathe.Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.CachedTokens, &u.CacheWriteTokens, &u.ReasoningTokens} {
		*n = min(max(*n, 0), maxCountedTokens)
	}
	return u
}
