package gemini

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

var _ wire.Counter = Codec{}

// CountPath returns the path of the model's method countTokens.
func (c Codec) CountPath(model string) string {
	return strings.TrimSuffix(c.Path(model, false), ":generateContent") + ":countTokens"
}

// AppendCountRequest implements [wire.Counter]. The request is the member generateContentRequest, because a request with only contents
// counts neither tools nor the system text.
func (c Codec) AppendCountRequest(dst []byte, req *lathe.Request, opts *wire.EncodeOptions) []byte {
	model := req.Model
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	body, _ := c.AppendRequest(nil, req, opts)
	return wire.JSON(dst).Lit(`{"generateContentRequest":{"model":`).Quote(model).Lit(",").Raw(body[1:]).Lit("}")
}
