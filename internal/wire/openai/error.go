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
		i := rawjson.SkipSpace(body, 0)
		if body[i] == '[' { // servers of Google send an array with the object
			for el := range rawjson.Elements(body) {
				body = el
				break
			}
		}
		if top, ok := readError(body); ok {
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
	behind := ""
	for k, v := range rawjson.Members(obj) {
		switch rawjson.Text(k) {
		case "message", "msg":
			e.Message = boundedText(v)
		case "detail":
			if e.Message == "" {
				e.Message = boundedText(v)
			}
		case "metadata":
			behind = wordsBehind(v)
		case "type":
			e.Type = boundedText(v)
		case "param":
			e.Param = boundedText(v)
		case "code":
			e.Code = boundedText(v)
			if n := httpStatus(v); n != 0 {
				e.Status = n
			}
		case "status", "status_code", "http_status":
			if n := httpStatus(v); n != 0 && e.Status == 0 {
				e.Status = n
			} else if e.Type == "" {
				e.Type = boundedText(v)
			}
		}
	}
	if behind != "" {
		e.Message = texts.Cut(strings.TrimLeft(e.Message+" ("+behind+")", " "), maxErrorText)
	}
	return e
}

// wordsBehind returns the name and the error text of the server behind a router, from the metadata that the router adds. The text is in
// raw: an error object, a list of these, or a string that contains either or is plain text.
func wordsBehind(metadata []byte) string {
	if kind(metadata) != '{' {
		return ""
	}
	raw := rawjson.At(metadata, "raw")
	words := ""
	if kind(raw) == '"' {
		text := rawjson.AppendUnquoteLossy(nil, raw)
		raw = nil
		switch {
		case rawjson.Check(text, rawjson.Limits{}) == nil:
			raw = text[rawjson.SkipSpace(text, 0):]
		case !bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
			words = string(texts.Cut(text, maxErrorText))
		}
	}
	if kind(raw) == '[' {
		for el := range rawjson.Elements(raw) {
			raw = el
			break
		}
	}
	if kind(raw) == '{' {
		if inner, ok := readError(raw); ok {
			words = inner.Message
		}
	}
	return strings.Trim(boundedText(rawjson.At(metadata, "provider_name"))+": "+words, ": ")
}

func httpStatus(v []byte) int {
	if kind(v) == '"' {
		v = v[1 : len(v)-1]
	}
	if n, err := strconv.Atoi(string(v)); err == nil && n >= 100 && n < 600 {
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
