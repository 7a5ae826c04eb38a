package gemini

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
)

// maxErrorText bounds each text of a parsed error, in bytes.
const maxErrorText = 2048

// typePrefix is the prefix of the types of error details.
const typePrefix = "type.googleapis.com/google.rpc."

// statuses are the status names of the wire with their HTTP statuses. If several have the same HTTP status, the first one is written.
var statuses = []struct {
	http int
	word string
}{
	{400, "INVALID_ARGUMENT"}, {400, "FAILED_PRECONDITION"}, {400, "OUT_OF_RANGE"},
	{401, "UNAUTHENTICATED"}, {403, "PERMISSION_DENIED"}, {404, "NOT_FOUND"}, {409, "ABORTED"}, {409, "ALREADY_EXISTS"},
	{429, "RESOURCE_EXHAUSTED"}, {499, "CANCELLED"}, {500, "INTERNAL"}, {500, "UNKNOWN"}, {500, "DATA_LOSS"},
	{501, "UNIMPLEMENTED"}, {503, "UNAVAILABLE"}, {504, "DEADLINE_EXCEEDED"},
}

// types are the error types of other wires, each with its HTTP status.
var types = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
	"request_too_large": 413, "rate_limit_error": 429, "insufficient_quota": 429, "api_error": 500, "server_error": 500,
	"timeout_error": 504, "overloaded_error": 503,
}

// statusOf returns the HTTP status and the status name for an error.
func statusOf(e *wire.APIError) (int, string) {
	status := e.Status
	for _, s := range statuses {
		if s.word == e.Type {
			if status < 400 || status > 599 {
				status = s.http
			}
			return status, s.word
		}
	}
	if status < 400 || status > 599 {
		if status = types[e.Type]; status == 0 {
			status = 500
		}
	}
	for _, s := range statuses {
		if s.http == status {
			return status, s.word
		}
	}
	switch {
	case status < 500:
		return status, "INVALID_ARGUMENT"
	case status == 502, status == 529:
		return status, "UNAVAILABLE"
	}
	return status, "INTERNAL"
}

const (
	codeContextLength = "context_length_exceeded"
	// overflow is the text by which clients of this wire recognise that the prompt is too long.
	overflow = "exceeds the maximum number of tokens"
)

// AppendError implements [wire.Served].
func (Codec) AppendError(to []byte, e *wire.APIError) []byte {
	status, word := statusOf(e)
	message := e.Message
	if e.Code == codeContextLength && !strings.Contains(message, overflow) {
		message = strings.TrimRight("The input token count "+overflow+" allowed. "+message, " ")
	}
	var details []wire.JSON
	add := func(typ, name string, value any) {
		details = append(details, wire.ObjectOf("@type", typePrefix+typ, name, value))
	}
	if e.Code != "" {
		add("ErrorInfo", "reason", e.Code)
	}
	if e.Param != "" {
		add("BadRequest", "fieldViolations", wire.ArrayOf(wire.ObjectOf("field", e.Param, "description", message)))
	}
	if e.RetryAfter > 0 {
		add("RetryInfo", "retryDelay", strconv.FormatFloat(e.RetryAfter, 'f', -1, 64)+"s")
	}
	if e.RequestID != "" {
		add("RequestInfo", "requestId", e.RequestID)
	}
	return wire.JSON(to).Raw(wire.ObjectOf("error", wire.ObjectOf("code", status, "message", message, "status", word, "details", wire.ArrayOf(details...))))
}

// ParseError implements [wire.Upstream].
func (Codec) ParseError(status int, body []byte) *wire.APIError {
	e := &wire.APIError{}
	body = bytes.TrimSpace(body)
	if rawjson.Check(body, rawjson.Limits{}) == nil {
		if rawjson.Kind(body) == '[' { // the error of a stream is in an array
			for el := range rawjson.Elements(body) {
				body = el
				break
			}
		}
		if inner := get(body, "error"); inner != nil {
			e = readError(inner)
		}
	} else if rawjson.Kind(body) == '<' {
		e.Message = "the server answered with an HTML page"
	}
	if status != 0 {
		e.Status = status
	}
	if e.Code == "API_KEY_INVALID" && e.Status == 400 { // the key is at fault, not the request
		e.Status, e.Type = 401, "UNAUTHENTICATED"
	}
	return e
}

// readError reads the value of the member error of a response.
func readError(v []byte) *wire.APIError {
	e := &wire.APIError{}
	if rawjson.Kind(v) != '{' {
		e.Message = boundedText(v)
		return e
	}
	for key, v := range rawjson.Members(v) {
		switch string(key) {
		case `"code"`:
			if n, must := parseInt32(v); must == "" && n >= 100 && n < 600 {
				e.Status = n
			}
		case `"message"`:
			e.Message = boundedText(v)
		case `"status"`:
			e.Type = boundedText(v)
		case `"details"`:
			for detail := range rawjson.Elements(v) {
				readDetail(e, detail)
			}
		}
	}
	if e.Code == "" && strings.Contains(e.Message, overflow) {
		e.Code = codeContextLength
	}
	return e
}

// readDetail reads one object in details of an error.
func readDetail(e *wire.APIError, v []byte) {
	switch strings.TrimPrefix(rawjson.TextAt(v, "@type"), typePrefix) {
	case "ErrorInfo":
		e.Code = boundedText(get(v, "reason"))
	case "BadRequest":
		for violation := range rawjson.Elements(get(v, "fieldViolations")) {
			e.Param = boundedText(get(violation, "field"))
			break
		}
	case "RetryInfo":
		delay := strings.TrimSuffix(rawjson.Text(get(v, "retryDelay")), "s")
		if f, err := strconv.ParseFloat(delay, 64); err == nil && f > 0 && f < 1e9 {
			e.RetryAfter = f
		}
	case "RequestInfo":
		e.RequestID = boundedText(get(v, "requestId"))
	}
}

// boundedText returns the text of a string, truncated to maxErrorText bytes, and "" for any other value.
func boundedText(v []byte) string { return text.Cut(rawjson.Text(v), maxErrorText) }

// Refused implements [wire.Upstream].
func (Codec) Refused(e *wire.APIError) string {
	if e == nil || e.Status != 400 {
		return ""
	}
	text := strings.ToLower(e.Message)
	unknown := strings.Contains(text, "unknown name") || strings.Contains(text, "cannot find field")
	unsupported := unknown || strings.Contains(text, "not support")
	mentions := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case unknown && mentions("jsonschema", "json_schema"):
		return featureJSONSchema
	case unknown && mentions(`"id"`):
		return featureIDs
	case mentions("missing a thought_signature", "missing a `thought_signature`"):
		return featureUnsigned
	case unsupported && mentions("thinking level", "thinking_level", "thinkinglevel"):
		return featureLevel
	case unsupported && mentions("thinking"):
		return featureThinking
	}
	return ""
}
