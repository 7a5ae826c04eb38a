package mcp

import (
	"cmp"
	"encoding/json"
	"mime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// resultOf converts the result of a call to the result of tools/call: the text that a model would receive, the same as structured content
// if it is a JSON object, and other content as blocks of its kind. typed is set if the client validates structured content against the
// output schema; an error then has no structured content.
func resultOf(r *lathe.ToolResult, typed bool, protocol string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{}
	if modernVersion(protocol) {
		_ = json.Unmarshal([]byte(`{"content":[],"resultType":"complete"}`), res) // resultType can only be decoded
	}
	res.IsError, res.Content = r.IsError, []mcp.Content{}
	if len(r.Blobs) == 0 || r.Content != "null" { // the result has more than blobs
		res.Content = append(res.Content, &mcp.TextContent{Text: r.Content})
	}
	if rawjson.IsObject([]byte(r.Content), rawjson.Limits{}) && !(r.IsError && typed) {
		res.StructuredContent = json.RawMessage(r.Content)
	}
	for i := range r.Blobs {
		res.Content = append(res.Content, block(&r.Blobs[i], i+1))
	}
	return res
}

// svg is the media type of SVG images, which may contain scripts: clients receive them as text.
const svg = "image/svg+xml"

// block returns the n-th blob of a result as a content block.
func block(b *lathe.Blob, n int) mcp.Content {
	kind, _, err := mime.ParseMediaType(b.MediaType)
	if err != nil {
		kind = "" // only the parameters may be invalid
	}
	switch {
	case b.URL != "" && !strings.HasPrefix(b.URL, "data:"):
		return &mcp.ResourceLink{URI: b.URL, Name: cmp.Or(b.Name, "result-"+strconv.Itoa(n)), MIMEType: b.MediaType}
	case b.URL != "":
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: b.URL, MIMEType: b.MediaType}}
	case strings.HasPrefix(kind, "image/") && kind != svg:
		return &mcp.ImageContent{MIMEType: b.MediaType, Data: b.Data}
	case strings.HasPrefix(kind, "audio/"):
		return &mcp.AudioContent{MIMEType: b.MediaType, Data: b.Data}
	}
	c := &mcp.ResourceContents{URI: b.Name, MIMEType: b.MediaType}
	if !strings.Contains(c.URI, ":") {
		c.URI = "lathe:result/" + strconv.Itoa(n)
	}
	if (strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == svg) && utf8.Valid(b.Data) {
		c.Text = string(b.Data)
	} else {
		c.Blob = b.Data
	}
	return &mcp.EmbeddedResource{Resource: c}
}
