package wire

import (
	"net/url"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Counter is the [Upstream] codec of a wire whose servers can count the tokens of a request.
type Counter interface {
	// CountPath returns the path of the request below the base URL.
	CountPath(model string) string
	// AppendCountRequest appends the body of the request that counts the tokens of req.
	AppendCountRequest(dst []byte, req *lathe.Request, opts *EncodeOptions) []byte
}

// CountURL returns the URL of a request that counts tokens.
func CountURL(base *url.URL, codec Counter, model string) (*url.URL, error) {
	return under(base, codec.CountPath(escaped(model)))
}

// ReadCount returns the number of tokens in the member name of a response. ok is false if the body is not an object with such a number.
func ReadCount(body []byte, name string) (tokens int64, ok bool) {
	if !rawjson.IsObject(body, rawjson.Limits{}) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(rawjson.At(body, name)), 10, 64)
	return n, err == nil && n >= 0
}
