package responses

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// AppendError implements [wire.Served]. The body has the form of all APIs of OpenAI.
func (Codec) AppendError(dst []byte, e *wire.APIError) []byte { return openai.AppendError(dst, e) }

// ParseError implements [wire.Upstream]. It parses the body of an error response, an `error` event in either of its forms, and a failed
// response.
func (Codec) ParseError(status int, body []byte) *wire.APIError {
	if rawjson.Check(body, rawjson.Limits{}) == nil {
		if inner := get(body, "response"); inner != nil { // data of the event response.failed
			body = inner
		}
	}
	e := openai.ParseError(status, body)
	if e.Type == "error" { // the type of the event, not of the error
		e.Type = ""
	}
	if n, err := strconv.Atoi(e.Code); status == 0 && err == nil && n >= 400 && n < 600 {
		e.Status = n
	}
	return e
}

// Refused implements [wire.Upstream].
func (Codec) Refused(e *wire.APIError) string {
	if e == nil || e.Status != 400 && e.Status != 422 {
		return ""
	}
	message := strings.ToLower(e.Message)
	switch {
	case e.Code == "invalid_encrypted_content": // about this request only: another model or account wrote the content
		return wire.FeatureBound
	case strings.Contains(message, "encrypted content is not supported"),
		(e.Param == "include" || strings.HasPrefix(e.Param, "include[")) && strings.Contains(message, "encrypted_content"):
		return featureEncrypted
	case strings.HasPrefix(e.Param, "tools") && strings.Contains(message, "custom"):
		return featureCustom
	}
	return ""
}

// errorCode returns the code of a failed response: that of e or, if e has none, one that clients of this wire support.
func errorCode(e *wire.APIError) string {
	switch {
	case e.Code != "":
		return e.Code
	case e.Status == 429:
		return "rate_limit_exceeded"
	case e.Status >= 400 && e.Status < 500:
		return "invalid_prompt"
	}
	return "server_error"
}
