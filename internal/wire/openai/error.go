package openai

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	texts "github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
)

// maxErrorText bounds each text of a parsed [APIError], in bytes.
const maxErrorText = 2048

// An APIError is an error in the form of OpenAI's API: the error response of a server, an error within a stream, or the error that
// ParseRequest returns.
type APIError = wire.APIError

// AppendError appends the body of an error response.
func AppendError(to []byte, e *APIError) []byte {
	return wire.JSON(to).Raw(wire.ObjectOf("error",
		wire.ObjectOf("message", e.Message, "type", ErrorType(e), "param", OrNull(e.Param), "code", OrNull(e.Code))))
}

// ErrorType returns the type of an error or, if it has none, the one for its status.
func ErrorType(e *APIError) string {
	if e.Type == "" && e.Status >= 400 && e.Status < 500 {
		return "invalid_request_error"
	}
	return cmp.Or(e.Type, "server_error")
}

// OrNull returns text as a JSON string, or null if it is empty.
func OrNull(text string) wire.JSON {
	if text == "" {
		return wire.JSON("null")
	}
	return wire.Quoted(text)
}

// ParseError parses the body of a response with the given HTTP status. It supports OpenAI's form and those of other servers. If the body is
// not JSON, only the status is used.
func ParseError(status int, body []byte) *APIError {
	e := &APIError{}
	if rawjson.Check(body, rawjson.Limits{}) == nil {
		if top, ok := readError(firstElement(body)); ok { // Google's servers send an array with the object
			e = top
		}
	} else if b := bytes.TrimSpace(body); len(b) > 0 && b[0] == '<' {
		e.Message = "the server answered with an HTML page"
	}
	e.Status = status
	return e
}

// readError reads an object that contains an error in one of the known forms; false if it contains none.
func readError(obj []byte) (*APIError, bool) {
	inner := rawjson.At(obj, "error")
	if kind(inner) == '{' {
		return errorObject(inner), true
	}
	e := errorObject(obj)
	switch kind(inner) {
	case '"':
		e.Message = boundedText(inner)
		return e, true
	case 0, 'n':
	default:
		return e, true
	}
	return e, e.Message != "" || rawjson.TextAt(obj, "object") == "error"
}

func errorObject(obj []byte) *APIError {
	e := &APIError{}
	upstream := ""
	for k, v := range rawjson.Members(obj) {
		switch rawjson.Text(k) {
		case "message", "msg":
			e.Message = boundedText(v)
		case "detail":
			e.Message = cmp.Or(e.Message, boundedText(v))
		case "metadata":
			upstream = upstreamError(v)
		case "type":
			e.Type = boundedText(v)
		case "param":
			e.Param = boundedText(v)
		case "code":
			e.Code = boundedText(v)
			e.Status = cmp.Or(httpStatus(v), e.Status)
		case "status", "status_code", "http_status":
			if n := httpStatus(v); n != 0 && e.Status == 0 {
				e.Status = n
			} else if e.Type == "" {
				e.Type = boundedText(v)
			}
		}
	}
	if upstream != "" {
		e.Message = texts.Cut(strings.TrimLeft(e.Message+" ("+upstream+")", " "), maxErrorText)
	}
	return e
}

// upstreamError returns the name and the error message of the server to which a router passed the request, from the metadata that the
// router adds to its own error. From
//
//	{"provider_name":"Acme","raw":"{\"error\":{\"message\":\"no capacity\"}}"}
//
// it returns "Acme: no capacity"; "" if the metadata has neither.
func upstreamError(metadata []byte) string {
	if kind(metadata) != '{' {
		return ""
	}
	message := upstreamMessage(rawjson.At(metadata, "raw"))
	return strings.Trim(boundedText(rawjson.At(metadata, "provider_name"))+": "+message, ": ")
}

// upstreamMessage returns the message of the error in raw: an error object, a list of these, or a string that contains either or is plain
// text. It returns "" for other values and for an HTML page.
func upstreamMessage(raw []byte) string {
	if kind(raw) == '"' {
		text := rawjson.AppendUnquoteLossy(nil, raw)
		switch {
		case rawjson.Check(text, rawjson.Limits{}) == nil:
			raw = text[rawjson.SkipSpace(text, 0):]
		case bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
			return ""
		default:
			return string(texts.Cut(text, maxErrorText))
		}
	}
	raw = firstElement(raw)
	if kind(raw) == '{' {
		if e, ok := readError(raw); ok {
			return e.Message
		}
	}
	return ""
}

// firstElement returns the first element of an array, and all other values unchanged.
func firstElement(v []byte) []byte {
	for el := range rawjson.Elements(v) {
		return el
	}
	return v
}

func httpStatus(v []byte) int {
	if n, err := strconv.Atoi(string(value(v).body())); err == nil && n >= 100 && n < 600 {
		return n
	}
	return 0
}

// boundedText returns the text of a string, or the JSON text of a number, an object or an array, truncated to maxErrorText bytes. It
// returns "" for other values.
func boundedText(v []byte) string {
	switch kind(v) {
	case '"':
		v = rawjson.AppendUnquoteLossy(nil, v)
	case 'n', 't', 'f':
		return ""
	}
	return string(texts.Cut(v, maxErrorText))
}

// kind returns the first byte of a value, which determines its type; 0 for an empty value.
func kind(v []byte) byte { return rawjson.Kind(v) }
