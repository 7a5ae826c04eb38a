package wire

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/lathe-run/lathe"
)

// AppendURL appends the URL of a blob as a JSON string or, if it has none, a data URL of its data.
func AppendURL(dst JSON, b *lathe.Blob) JSON {
	if b.URL != "" {
		return dst.Quote(b.URL)
	}
	dst = dst.Quote("data:" + cmp.Or(b.MediaType, "application/octet-stream") + ";base64,")
	return JSON(base64.StdEncoding.AppendEncode(dst[:len(dst)-1], b.Data)).Lit(`"`)
}

// SetURL sets the URL of a blob to url, the value of the member name. If url is a base64 data URL, it sets the data and the media type
// instead. Data URLs in other forms are kept as URLs.
func (o Object) SetURL(b *lathe.Blob, name, url string) {
	b.URL = url
	rest, ok := strings.CutPrefix(url, "data:")
	head, body, comma := strings.Cut(rest, ",")
	media, encoded := strings.CutSuffix(head, ";base64")
	if !ok || !comma || !encoded || media == "" || strings.Contains(media, ";") {
		return
	}
	data, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		o.Fail(name, "The data after base64 must be base64.")
	}
	b.URL, b.MediaType, b.Data = "", media, data
}
