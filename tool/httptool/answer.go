package httptool

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// Limits of answers, besides those of the egress client.
const (
	maxErrorBytes = 16 << 10 // of an error response: a longer body is omitted
	minSecret     = 6        // length in bytes from which a credential is searched for in answers
)

// statusField is the member of an error output with the HTTP status.
const statusField = "http_status"

// imageTypes are the media types that are returned as images.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// answer converts a response to an output, by its content type.
func (t *httpTool) answer(resp *http.Response) (*lathe.Output, error) {
	if resp.StatusCode >= 300 { // redirects that could be followed were followed
		return t.errorAnswer(resp), nil
	}
	if t.def.Method == http.MethodHead {
		return &lathe.Output{Data: fmt.Appendf(nil, `{"%s":%d}`, statusField, resp.StatusCode)}, nil
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, t.failed(err)
	}
	data, blobs, ok := t.read(resp.Header.Get("Content-Type"), b)
	if !ok {
		return nil, tool.Fail(lathe.CodeInvalidOutput, "the answer is of a type that is not read: JSON, text and images are")
	}
	return &lathe.Output{Data: t.def.withoutWriteOnly(resp.StatusCode, data), Blobs: blobs}, nil
}

// read returns a body as JSON, or as an image. ok is false for other types.
func (t *httpTool) read(contentType string, b []byte) (data []byte, blobs []lathe.Blob, ok bool) {
	if len(b) == 0 {
		return []byte("null"), nil, true
	}
	typ, params, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "" && utf8.Valid(b):
		return t.text(b), nil, true
	case err != nil: // also without a content type
		return nil, nil, false
	case isJSON(typ):
		return t.scrubJSON(b), nil, true // the runner checks that it is JSON
	case imageTypes[typ]:
		if http.DetectContentType(b) != typ {
			return nil, nil, false // the content is not an image of this type
		}
		return []byte("null"), []lathe.Blob{{MediaType: typ, Data: b}}, true
	case strings.HasPrefix(typ, "text/"), typ == "application/xml", strings.HasSuffix(typ, "+xml"), typ == "application/yaml", typ == "application/javascript":
		switch strings.ToLower(params["charset"]) {
		case "", "utf-8", "utf8", "us-ascii":
		case "iso-8859-1", "latin1":
			b = fromLatin1(b)
		default:
			return nil, nil, false
		}
		return t.text(b), nil, true
	}
	return nil, nil, false
}

func (t *httpTool) text(b []byte) []byte {
	return rawjson.AppendQuote(nil, string(scrub(b, t.secrets())))
}

func fromLatin1(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

// errorAnswer returns an output with the status and the body of the response: the members of an object, or any other value as `body`. The
// allowlist applies to it.
func (t *httpTool) errorAnswer(resp *http.Response) *lathe.Output {
	data := append([]byte(`{"`+statusField+`":`), strconv.Itoa(resp.StatusCode)...)
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes+1))
	if err == nil && len(b) > 0 && len(b) <= maxErrorBytes {
		data = t.appendError(data, resp, b)
	}
	return &lathe.Output{IsError: true, Code: codeOf(resp.StatusCode), Data: append(data, '}')}
}

func (t *httpTool) appendError(data []byte, resp *http.Response, b []byte) []byte {
	body, _, ok := t.read(resp.Header.Get("Content-Type"), b)
	body = bytes.TrimSpace(t.def.withoutWriteOnly(resp.StatusCode, body))
	if !ok || rawjson.Check(body, rawjson.Limits{}) != nil || string(body) == "null" {
		return data
	}
	if body[0] != '{' {
		return append(append(data, `,"body":`...), body...)
	}
	for k, v := range rawjson.Members(body) {
		if rawjson.Text(k) != statusField {
			data = append(append(append(append(data, ','), k...), ':'), v...)
		}
	}
	return data
}

func codeOf(status int) lathe.Code {
	switch status {
	case http.StatusTooManyRequests:
		return lathe.CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return lathe.CodeUnavailable
	default:
		return lathe.CodeExecutionFailed
	}
}

// hide records a credential, and the parts of it, that no answer may contain.
func (t *httpTool) hide(value string) {
	scheme, token, _ := strings.Cut(value, " ")
	t.secret = appendForms(t.secret, value, token)
	if pair, err := base64.StdEncoding.DecodeString(token); err == nil && strings.EqualFold(scheme, "basic") {
		_, password, _ := strings.Cut(string(pair), ":")
		t.secret = appendForms(t.secret, string(pair), password)
	}
}

// appendForms appends the forms in which credentials may occur in an answer.
func appendForms(dst [][]byte, values ...string) [][]byte {
	for _, value := range values {
		if len(value) < minSecret {
			continue
		}
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
			if !slices.ContainsFunc(dst, func(s []byte) bool { return string(s) == form }) {
				dst = append(dst, []byte(form))
			}
		}
	}
	return dst
}

// secrets returns what no answer may contain: the tool's credentials, and the current tokens.
func (t *httpTool) secrets() [][]byte {
	if t.opts.Tokens == nil {
		return t.secret
	}
	out := slices.Clone(t.secret)
	for _, token := range t.opts.Tokens() {
		out = appendForms(out, token.Reveal())
	}
	return out
}

// scrub replaces the secrets in a text of the server.
func scrub(b []byte, secrets [][]byte) []byte {
	for _, s := range secrets {
		b = bytes.ReplaceAll(b, s, []byte(secret.Redacted))
	}
	return b
}

// scrubJSON replaces the secrets in JSON, also in strings with escapes, which many encoders use for & and /. Text that is not JSON is only
// changed by scrub.
func (t *httpTool) scrubJSON(b []byte) []byte {
	secrets := t.secrets()
	b = scrub(b, secrets)
	if len(secrets) == 0 || bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var out []byte
	done := 0 // b[:done] is in out
	for at := 0; ; {
		start, end := nextString(b, at)
		if end == 0 {
			break
		}
		at = end
		literal := b[start:end]
		if bytes.IndexByte(literal, '\\') < 0 {
			continue
		}
		plain := rawjson.AppendUnquoteLossy(nil, literal)
		if clean := scrub(plain, secrets); !bytes.Equal(clean, plain) {
			out = rawjson.AppendQuote(append(out, b[done:start]...), string(clean))
			done = end
		}
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// nextString returns the bounds of the first string literal in JSON that begins at or after an index. end is 0 if none is complete.
func nextString(b []byte, at int) (start, end int) {
	offset := bytes.IndexByte(b[at:], '"')
	if offset < 0 {
		return 0, 0
	}
	start = at + offset
	for i := start + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return start, i + 1
		}
	}
	return 0, 0
}
