package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// result shows the end of a call; indent precedes the calls of a run that a call started.
func (s *screen) result(d *event.ToolCallResult, indent string) {
	if d.Status == "ok" {
		delete(s.failures, d.Tool)
		s.printLine("green", "✓", fmt.Sprintf("%s%s  %s in %s", indent, d.Tool, bytesText(len(d.Result)), took(d.LatencyMS)))
		return
	}
	why, ofChild := refusalText(d), indent != ""
	if !ofChild { // s.unread has no calls of child runs
		if call := s.removeUnread(d.ErrorType); call != nil {
			why = cmp.Or(why, unreadText(call))
		}
	}
	why = cmp.Or(why, failureText(d.Result))
	reason := string(d.ErrorType)
	if why != "" {
		reason += ": " + why
	}
	if !ofChild {
		if s.failures == nil {
			s.failures = map[string]string{}
		}
		s.failures[d.Tool] = reason
	}
	s.printLine("red", "✗", fmt.Sprintf("%s%s  %s", indent, d.Tool, reason))
}

// refusalText returns why a call was not made or was stopped, from the fields of its result, or "".
func refusalText(d *event.ToolCallResult) string {
	switch {
	case d.ErrorType == lathe.CodePolicyDenied && d.PolicyDecision == lathe.Ask.String():
		return "rule " + d.PolicyRule + " asks, and no approver can be asked here; " + ruleAdvice(d.PolicyRule, d.Tool)
	case d.ErrorType == lathe.CodePolicyDenied:
		return "rule " + d.PolicyRule + "; " + ruleAdvice(d.PolicyRule, d.Tool)
	case d.Limit != "":
		return "limit " + d.Limit
	}
	return printable(d.Cause)
}

// maxFailureText is the number of bytes of a failure text in one line.
const maxFailureText = 200

// failureText returns why a call failed, from the result for the model: the detail of the error, or the text of the tool. It is "" if the
// result has neither.
func failureText(result string) string {
	raw := []byte(result) // in another form it has no failure text
	said, data := rawjson.TextAt(raw, "error", "detail"), rawjson.At(raw, "data")
	for first := range rawjson.Elements(rawjson.At(raw, "errors")) { // in an envelope; the others are left out
		said = rawjson.TextAt(first, "detail")
		break
	}
	said = cmp.Or(said, rawjson.Text(data), rawjson.TextAt(data, "error"))
	return printable(text.Clip(text.OneLine(said), maxFailureText))
}

// removeUnread removes and returns the first unreadable call to which a result with the code belongs, or nil. For a truncated answer the
// code of all results is incomplete_call.
func (s *screen) removeUnread(code lathe.Code) *event.ToolCallParseError {
	i := slices.IndexFunc(s.unread, func(d *event.ToolCallParseError) bool { return d.Error == code || code == lathe.CodeIncompleteCall })
	if i < 0 {
		return nil
	}
	call := s.unread[i]
	s.unread = slices.Delete(s.unread, i, i+1)
	return call
}

// printUnread writes a line for each unreadable call without a result, for example with on_parse_error retry_without_tools.
func (s *screen) printUnread() {
	for _, d := range s.unread {
		s.printLine("yellow", "!", fmt.Sprintf("%s: %s", d.Error, unreadText(d)))
	}
	s.unread = s.unread[:0]
}

// unreadText describes an unreadable call. A server that parses calls itself may not send the text.
func unreadText(d *event.ToolCallParseError) string {
	if d.ExcerptBytes == 0 {
		return "a call of the model could not be read"
	}
	return "a call of the model could not be read, " + bytesText(d.ExcerptBytes)
}

// maxNamed is the largest number of tools that are named in one line.
const maxNamed = 5

// printWithheld shows the tools that are not offered to the model because of the policy or a missing approver, so that a user does not search
// for the cause elsewhere.
func (s *screen) printWithheld(tools *event.ToolsDigest) {
	var denied, asked []string
	for _, held := range tools.Withheld {
		switch held.Reason {
		case event.WithheldPolicy:
			denied = append(denied, held.Tool)
		case event.WithheldApproval, event.WithheldUndeclared:
			asked = append(asked, held.Tool)
		case event.WithheldDepth, event.WithheldMode: // the user has requested it
		}
	}
	for _, group := range []struct {
		names []string
		why   string
	}{{denied, "the policy denies them"}, {asked, "they need an approval, and no approver can be asked here"}} {
		if n := len(group.names); n > 0 {
			names := strings.Join(group.names[:min(n, maxNamed)], ", ")
			if n > maxNamed {
				names += fmt.Sprintf(" and %d more", n-maxNamed)
			}
			s.printLine("dim", "·", fmt.Sprintf("not offered to the model: %s; %s (policy.tools in lathe.yaml decides by name)", names, group.why))
		}
	}
}

// attemptText describes a failed attempt of a model call. It contains the error text of the server, but not the parts of it that quote the
// request.
func attemptText(d *event.ModelCallFinished) string {
	kind := lathe.UpstreamKind(d.ErrorCode)
	if kind == lathe.UpstreamLoading {
		return "the model server loads the model; waiting for it, up to loading_timeout"
	}
	text := fmt.Sprintf("attempt %d of the model call failed: ", d.Attempt)
	if kind == lathe.UpstreamAborted && d.ErrorMessage != "" {
		return text + d.ErrorMessage
	}
	if kind == lathe.UpstreamAborted {
		text += connectionLost
	} else {
		text += d.ErrorCode
	}
	if d.UpstreamStatus != 0 {
		text += fmt.Sprintf(" (HTTP %d)", d.UpstreamStatus)
	}
	if d.ErrorMessage != "" {
		text += ": " + strings.TrimRight(printable(d.ErrorMessage), ".")
	}
	return text
}
