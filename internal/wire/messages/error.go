package messages

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	texts "github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
)

const (
	// maxErrorText bounds each text of a parsed error, in bytes.
	maxErrorText = 2048
	// overflowCode is the error code for a conversation that exceeds the context of the model.
	overflowCode = string(lathe.CodeContextLength)
	overflowText = "prompt is too long"
)

// errorTypes are the error types of the wire with their HTTP statuses.
var errorTypes = []struct {
	status int
	typ    string
}{
	{400, "invalid_request_error"}, {401, "authentication_error"}, {402, "billing_error"}, {403, "permission_error"},
	{404, "not_found_error"}, {413, "request_too_large"}, {429, "rate_limit_error"}, {500, "api_error"}, {504, "timeout_error"},
	{529, "overloaded_error"},
}

// errorType returns the error type of this wire for an error of any wire.
func errorType(e *wire.APIError) string {
	for _, t := range errorTypes {
		if e.Type == t.typ {
			return t.typ
		}
	}
	switch e.Code {
	case overflowCode:
		return "invalid_request_error"
	case "rate_limit_exceeded", "insufficient_quota":
		return "rate_limit_error"
	}
	for _, t := range errorTypes {
		if e.Status == t.status {
			return t.typ
		}
	}
	switch {
	case e.Status == 503:
		return "overloaded_error"
	case e.Status == 408:
		return "timeout_error"
	case e.Status >= 400 && e.Status < 500:
		return "invalid_request_error"
	}
	switch strings.ToLower(e.Type) {
	case "rate_limit_exceeded", "resource_exhausted", "insufficient_quota":
		return "rate_limit_error"
	case "overloaded", "unavailable", "service_unavailable":
		return "overloaded_error"
	case "invalid_argument", "invalid_request":
		return "invalid_request_error"
	case "permission_denied":
		return "permission_error"
	case "unauthenticated":
		return "authentication_error"
	case "not_found":
		return "not_found_error"
	case "deadline_exceeded":
		return "timeout_error"
	}
	return "api_error"
}

// AppendError appends the body of an error response, which is also the data of an error event.
func (Codec) AppendError(to []byte, e *wire.APIError) []byte {
	inner := wire.ObjectOf("type", errorType(e), "message", errorMessage(e), "details", wire.JSON(e.Details))
	return wire.JSON(to).Raw(wire.ObjectOf("type", "error", "error", inner, "request_id", wire.Optional(e.RequestID)))
}

// errorMessage returns the message in the style of the wire, preceded by the name of the parameter at fault. For a conversation that
// exceeds the context, it is the message by which clients recognise this error.
func errorMessage(e *wire.APIError) string {
	if e.Code == overflowCode {
		return overflowMessage(e.Message)
	}
	if e.Param == "" || strings.Contains(e.Message, e.Param) {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

var (
	maximumTokens   = lazy.Regexp(`(?i)(?:maximum|limit|context (?:length|window|size))[^0-9]{0,60}([0-9]+)`)
	requestedTokens = lazy.Regexp(`(?i)(?:resulted in|requested|contains?|has|input is|count(?: of)?|\()[^0-9]{0,40}([0-9]+)`)
)

// overflowMessage returns "prompt is too long: N tokens > M maximum" if the message contains both numbers, otherwise "prompt is too long: "
// and the message.
func overflowMessage(message string) string {
	if strings.Contains(strings.ToLower(message), overflowText) {
		return message
	}
	message = texts.Cut(message, maxErrorText)
	limit, used := maximumTokens().FindStringSubmatch(message), requestedTokens().FindStringSubmatch(message)
	if limit != nil && used != nil {
		m, err1 := strconv.ParseInt(limit[1], 10, 64)
		n, err2 := strconv.ParseInt(used[1], 10, 64)
		if err1 == nil && err2 == nil && n > m {
			return overflowText + ": " + used[1] + " tokens > " + limit[1] + " maximum"
		}
	}
	return overflowText + ": " + message
}

// ParseError parses the body of a response with a status of 400 or above or, if status is 0, an error event. It ignores a body that is not
// JSON.
func (Codec) ParseError(status int, body []byte) *wire.APIError {
	e := &wire.APIError{Status: status}
	if rawjson.Check(body, rawjson.Limits{}) != nil {
		if rawjson.Kind(body[rawjson.SkipSpace(body, 0):]) == '<' {
			e.Message = "the server answered with an HTML page"
		}
		return e
	}
	e.RequestID = bounded(get(body, "request_id"))
	inner := get(body, "error")
	switch rawjson.Kind(inner) {
	case '{':
	case '"':
		e.Message = bounded(inner)
		inner = body
	default:
		inner = body
	}
	if typ := bounded(get(inner, "type")); typ != "error" {
		e.Type = typ
	}
	for _, name := range [...]string{"message", "msg", "detail"} {
		if e.Message == "" {
			e.Message = bounded(get(inner, name))
		}
	}
	e.Code, e.Param = bounded(get(inner, "code")), bounded(get(inner, "param"))
	e.RetryAfter = seconds(get(inner, "retry_after"))
	if e.Code == "" && overflows(e) {
		e.Code = overflowCode
	}
	return e
}

// overflows reports whether the error means that the conversation exceeds the context of the model.
func overflows(e *wire.APIError) bool {
	if e.Status != 400 && e.Status != 413 && e.Status != 0 {
		return false
	}
	message := strings.ToLower(e.Message)
	return strings.Contains(message, overflowText) || strings.Contains(message, "exceed context limit")
}

// seconds parses a number of seconds. It returns 0 if v is not a number from 0 to 1e9.
func seconds(v []byte) float64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f < 0 || f > 1e9 {
		return 0
	}
	return f
}

// bounded returns the text of a string or the digits of a number, truncated to maxErrorText bytes, and "" for other values.
func bounded(v []byte) string {
	s := string(v)
	switch rawjson.Kind(v) {
	case '"':
		s = rawjson.Text(v)
	case 0, '{', '[', 't', 'f', 'n':
		return ""
	}
	return texts.Cut(s, maxErrorText)
}
