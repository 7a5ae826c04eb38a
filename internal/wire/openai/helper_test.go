package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRequest appends the body of a request.
func AppendRequest(dst []byte, req *lathe.Request, opts *EncodeOptions) []byte {
	body, _ := Upstream{}.AppendRequest(dst, req, opts)
	return body
}

// AppendHead appends a request up to its messages.
func AppendHead(dst wire.JSON, req *lathe.Request, opts *EncodeOptions) wire.JSON {
	if opts == nil {
		opts = &EncodeOptions{}
	}
	dst, _ = appendHead(dst, req, opts)
	return dst
}

// AppendTail appends what follows the messages.
func AppendTail(dst wire.JSON) wire.JSON { return dst.Lit("]}") }
