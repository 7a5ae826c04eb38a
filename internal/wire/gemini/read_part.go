package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// dataNames are the members of a part that contain its data.
var dataNames = strings.Fields("text functionCall functionResponse inlineData fileData executableCode codeExecutionResult toolCall toolResponse")

var (
	contentNames  = newNameSet("role parts")
	partNames     = newNameSet("thought " + fieldSignature + " " + strings.Join(dataNames, " "))
	blobNames     = newNameSet("mimeType data fileUri displayName")
	callNames     = newNameSet("id name args")
	resultNames   = newNameSet("id name response parts")
	responseNames = newNameSet("output error")
)

// A rawPart is a part of a content, with its members not yet decoded.
type rawPart struct {
	data      string // name of the member that contains the data; "": none
	value     []byte // value of that member
	text      string // text, if data is "text"
	thought   bool
	signature string
	rest      []lathe.Member // other members that are not read
	whole     []byte         // JSON of the whole part
}

// parts yields the parts of a content or of a functionResponse.
func (r *reader) parts(o wire.Object) iter.Seq[rawPart] {
	return func(yield func(rawPart) bool) {
		if o.Get("parts") == nil {
			return
		}
		for el := range o.Elements("parts") {
			if !yield(r.part(el)) {
				return
			}
		}
	}
}

// part reads the members of a part. It fails if the part has more than one member with data.
func (r *reader) part(v []byte) rawPart {
	o := r.object("", v, partNames)
	p := rawPart{whole: v, thought: o.Bool("thought"), signature: o.OptString(fieldSignature)}
	for _, name := range dataNames {
		value := o.Get(name)
		switch {
		case value == nil:
			continue
		case p.data != "":
			r.Fail("", "A part has one of %s and %s, not both.", p.data, name)
		case name == "text":
			p.text = o.String(name)
		default:
			o.RawObject(name)
		}
		p.data, p.value = name, value
	}
	p.rest = o.Rest()
	return p
}

// partOf reads a part of an answer; ok is false if it is not valid.
func partOf(v []byte) (p rawPart, ok bool) {
	r := reader{Reader: wire.NewReader(nil)}
	err := r.Try(func() { p = r.part(v) })
	return p, err == nil
}

// looseText reads a part that partOf refuses although it is text: a member of another type counts as empty, and the last of equal members
// counts. ok is false if the part has other members.
func looseText(part []byte) (p rawPart, ok bool) {
	for key, v := range rawjson.Members(part) {
		switch string(key) {
		case `"text"`:
			p.data, p.text = "text", rawjson.Text(v)
		case `"thought"`:
			p.thought = string(v) == "true"
		case `"thoughtSignature"`, `"thought_signature"`:
			p.signature = rawjson.Text(v)
		default:
			return rawPart{}, false
		}
	}
	return p, true
}

// raw returns a copy of the part without its signature.
func (p *rawPart) raw() json.RawMessage {
	if p.signature == "" {
		return bytes.Clone(p.whole)
	}
	return without(p.whole, fieldSignature)
}

func (p *rawPart) hasBlob() bool { return p.data == "inlineData" || p.data == "fileData" }

// blob reads a part with inlineData or fileData.
func (r *reader) blob(p *rawPart) lathe.Blob {
	o := r.object(p.data, p.value, blobNames)
	b := lathe.Blob{MediaType: o.OptString("mimeType"), Name: o.OptString("displayName"), URL: o.OptString("fileUri")}
	var ok bool
	b.Data, ok = decodeBase64(o.OptString("data"))
	if !ok {
		o.Fail("data", "Must be base64.")
	}
	hasURL, hasData := b.URL != "", len(b.Data) > 0
	if hasURL == hasData {
		o.Fail("", "Needs either data or the URI of a file.")
	}
	if !o.IsRead() || len(p.rest) > 0 {
		b.Raw = p.raw()
	}
	return b
}

// blobOf reads a part of an answer with inlineData or fileData; ok is false if it is not valid.
func blobOf(p *rawPart) (b lathe.Blob, ok bool) {
	r := reader{Reader: wire.NewReader(nil)}
	err := r.Try(func() { b = r.blob(p) })
	return b, err == nil
}

// decodeBase64 decodes standard and URL-safe base64, with or without padding.
func decodeBase64(s string) ([]byte, bool) {
	s = strings.TrimRight(s, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.RawURLEncoding
	}
	b, err := enc.DecodeString(s)
	return b, err == nil
}

// sealMark is the prefix of the decoded signature that a Writer writes for a carrier. The sealed text of the carrier follows it.
const sealMark = "lathe:"

// sealed returns the signature for the sealed text of a carrier.
func sealed(text string) string {
	return base64.StdEncoding.EncodeToString([]byte(sealMark + text))
}

// opened returns the sealed text in a signature that [sealed] returned, and any other signature unchanged.
func opened(signature string) string {
	b, ok := decodeBase64(signature)
	if !ok {
		return signature
	}
	if text, ok := bytes.CutPrefix(b, []byte(sealMark)); ok {
		return string(text)
	}
	return signature
}

// call reads a part with functionCall.
func (r *reader) call(p *rawPart) lathe.ToolCall {
	o := r.object(p.data, p.value, callNames)
	c := lathe.ToolCall{ID: o.OptString("id"), Name: o.OptString("name"), Arguments: "{}"}
	if args := o.OptObject("args"); args != nil {
		c.Arguments = rawjson.CompactText(args)
	}
	if c.Name == "" {
		o.Fail("name", "A call needs the name of its function.")
	}
	c.Name = r.innerName(c.Name)
	c.Extra = p.extra(o.Rest())
	return c
}

// result reads a part with functionResponse.
func (r *reader) result(p *rawPart) lathe.ToolResult {
	o := r.object(p.data, p.value, resultNames)
	t := lathe.ToolResult{CallID: o.OptString("id"), Name: o.OptString("name")}
	for part := range r.parts(o) {
		if part.hasBlob() {
			t.Blobs = append(t.Blobs, r.blob(&part))
		} else {
			r.Drop("")
		}
	}
	response := o.Get("response")
	rest := o.Rest()
	if response != nil && !r.readResponse(&t, p.data+".response", response) {
		rest = append(rest, lathe.Member{Name: "response", Value: response}) // extra copies the value
	}
	if t.Name != "" {
		t.Name = r.innerName(t.Name)
	}
	t.Extra = p.extra(rest)
	return t
}

// readResponse reads the response object of a result. It reports whether the only member is output or error, with a string as its value.
func (r *reader) readResponse(t *lathe.ToolResult, at string, v []byte) (simple bool) {
	o := r.object(at, v, responseNames)
	output, failure := o.Get("output"), o.Get("error")
	hasOne := (output != nil) != (failure != nil)
	if !hasOne || !o.IsRead() {
		t.IsError = failure != nil && string(failure) != `""` && string(failure) != "false"
		t.Content = rawjson.CompactText(v)
		return false
	}
	t.IsError = failure != nil
	if t.IsError {
		output = failure
	}
	if rawjson.Kind(output) != '"' {
		t.Content = rawjson.CompactText(output)
		return false
	}
	t.Content = rawjson.Text(output)
	return true
}

// extra returns the unknown members of a part. inner are the unknown members of the value of its data; if there are any, they become one
// more member, an object with copies of them.
func (p *rawPart) extra(inner []lathe.Member) []lathe.Member {
	if len(inner) == 0 {
		return p.rest
	}
	size := len("{}")
	for _, m := range inner {
		size += len(m.Name) + len(m.Value) + len(`"":,`)
	}
	value := make(wire.JSON, 0, size).Lit("{").Members(inner, nil).Lit("}")
	return append(p.rest, lathe.Member{Name: p.data, Value: json.RawMessage(value)})
}
