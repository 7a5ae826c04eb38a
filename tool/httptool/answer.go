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

// Limits of answers; the egress client bounds them before.
const (
	maxErrorBytes = 16 << 10 // of an answer that is an error: what is longer is left out
	minSecret     = 6        // bytes from which a credential is looked for in answers
)

// statusField is the field of an error that holds the HTTP status.
const statusField = "http_status"

// imageTypes are shown as images.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// answer reads a response by its content type.
func (t *httpTool) answer(resp *http.Response) (*lathe.Output, error) {
	if resp.StatusCode >= 300 { // redirects that could be followed have been
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

// read returns a body as JSON, or as an image.
func (t *httpTool) read(contentType string, b []byte) (data []byte, blobs []lathe.Blob, ok bool) {
	if len(b) == 0 {
		return []byte("null"), nil, true
	}
	typ, params, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "":
		if !utf8.Valid(b) {
			return nil, nil, false
		}
		return t.text(b), nil, true
	case err != nil:
		return nil, nil, false
	case isJSON(typ):
		return t.scrubJSON(b), nil, true // the runner looks at whether it is JSON
	case imageTypes[typ]:
		if http.DetectContentType(b) != typ {
			return nil, nil, false // what is shown as an image is one
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

// errorAnswer is an output that says the status, and what the server says, as far as the allowlist
// lets it: the members of an object, or else `body`.
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
		if string(rawjson.AppendUnquoteLossy(nil, k)) != statusField {
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

// hide notes a credential that no answer may show, and what it is made of.
func (t *httpTool) hide(value string) {
	t.hideOne(value)
	scheme, token, ok := strings.Cut(value, " ")
	if !ok {
		return
	}
	t.hideOne(token)
	if pair, err := base64.StdEncoding.DecodeString(token); err == nil && strings.EqualFold(scheme, "basic") {
		_, password, _ := strings.Cut(string(pair), ":")
		t.hideOne(string(pair))
		t.hideOne(password)
	}
}

func (t *httpTool) hideOne(value string) { t.secret = appendForms(t.secret, value) }

// appendForms appends what a credential may look like in an answer.
func appendForms(dst [][]byte, value string) [][]byte {
	if len(value) < minSecret {
		return dst
	}
	for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
		if !slices.ContainsFunc(dst, func(s []byte) bool { return string(s) == form }) {
			dst = append(dst, []byte(form))
		}
	}
	return dst
}

// secrets are what no answer may show: the tool's credentials, and the tokens that there are now.
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

// scrub takes the tool's credentials out of what a server says.
func scrub(b []byte, secrets [][]byte) []byte {
	for _, s := range secrets {
		b = bytes.ReplaceAll(b, s, []byte(secret.Redacted))
	}
	return b
}

// scrubJSON is scrub that also sees what is written with escapes, as many encoders write & and /.
// Text that is not JSON passes as scrub leaves it, and is refused later.
func (t *httpTool) scrubJSON(b []byte) []byte {
	secrets := t.secrets()
	b = scrub(b, secrets)
	if len(secrets) == 0 || bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var out []byte
	done := 0 // b[:done] is in out
	for i := 0; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		start := i
		for i++; i < len(b) && b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		if i >= len(b) || bytes.IndexByte(b[start:i], '\\') < 0 {
			continue
		}
		plain := rawjson.AppendUnquoteLossy(nil, b[start:i+1])
		if clean := scrub(plain, secrets); !bytes.Equal(clean, plain) {
			out = rawjson.AppendQuote(append(out, b[done:start]...), string(clean))
			done = i + 1
		}
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}
