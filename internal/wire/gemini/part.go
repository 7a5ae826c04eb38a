package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

var (
	contentNames = newNameSet("role", "parts")
	partNames    = newNameSet("text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData", "fileData",
		"executableCode", "codeExecutionResult", "toolCall", "toolResponse")
	blobNames     = newNameSet("mimeType", "data", "fileUri", "displayName")
	callNames     = newNameSet("id", "name", "args")
	resultNames   = newNameSet("id", "name", "response", "parts")
	responseNames = newNameSet("output", "error")
)

// A rawPart is a part of a content with the raw values of its members.
type rawPart struct {
	data      string // the name of the member that has the part's data; "": none
	value     []byte // of that member
	text      string // of a part with text
	thought   bool
	signature string
	rest      []lathe.Member // its siblings that are not read
	whole     []byte
}

// parsePart reads the members of a part. A part has at most one member with data. Its errors begin at the part, as do those of the
// other functions that read one.
func parsePart(index *rawjson.Index, v []byte) (rawPart, *wire.APIError) {
	p := rawPart{whole: v}
	var few fewMembers
	members, err := partNames.read(few[:0], index, v, "")
	if err != nil {
		return p, err
	}
	for i := range members {
		m := &members[i]
		switch m.name {
		case "thought":
			p.thought, err = wire.ParseBool(m.value, m.name)
		case fieldSignature:
			p.signature, err = wire.ParseString(m.value, m.name)
		default:
			if !m.known {
				p.rest = append(p.rest, m.kept())
				continue
			}
			if p.data != "" {
				return p, wire.BadRequest("", "A part has one of %s and %s, not both.", p.data, m.name)
			}
			p.data, p.value = m.name, m.value
			if m.name == "text" {
				p.text, err = wire.ParseString(m.value, m.name)
			} else if wire.Kind(m.value) != '{' {
				err = wire.BadRequest(m.name, "Must be an object.")
			}
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// opaque returns the unchanged part without its signature.
func (p *rawPart) opaque() lathe.Opaque { return lathe.Opaque{JSON: p.raw()} }

func (p *rawPart) raw() json.RawMessage {
	if p.signature == "" {
		return bytes.Clone(p.whole)
	}
	return without(p.whole, fieldSignature)
}

// blob reads a part with inlineData or fileData.
func (p *rawPart) blob() (lathe.Blob, *wire.APIError) {
	b, rest, err := parseBlob(p.value, p.data)
	if err == nil && (len(rest) > 0 || len(p.rest) > 0) {
		b.Raw = p.raw()
	}
	return b, err
}

// parseBlob parses the value of inlineData or fileData. rest are the members that Blob has no field for.
func parseBlob(v []byte, at string) (b lathe.Blob, rest []lathe.Member, err *wire.APIError) {
	members, err := blobNames.read(nil, nil, v, at)
	if err != nil {
		return b, nil, err
	}
	for i := range members {
		m := &members[i]
		at := wire.Join(at, m.name)
		switch m.name {
		case "mimeType":
			b.MediaType, err = wire.ParseString(m.value, at)
		case "displayName":
			b.Name, err = wire.ParseString(m.value, at)
		case "fileUri":
			b.URL, err = wire.ParseString(m.value, at)
		case "data":
			var text string
			if text, err = wire.ParseString(m.value, at); err == nil {
				var ok bool
				if b.Data, ok = decodeBase64(text); !ok {
					err = wire.BadRequest(at, "Must be base64.")
				}
			}
		default:
			rest = append(rest, m.kept())
		}
		if err != nil {
			return b, nil, err
		}
	}
	if (b.URL == "") == (len(b.Data) == 0) {
		return b, nil, wire.BadRequest(at, "Needs either data or the URI of a file.")
	}
	return b, rest, nil
}

// decodeBase64 decodes both alphabets of base64, with or without padding.
func decodeBase64(s string) ([]byte, bool) {
	s = strings.TrimRight(s, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.RawURLEncoding
	}
	b, err := enc.DecodeString(s)
	return b, err == nil
}

// sealMark begins the decoded signature that a Writer writes for a carrier. The sealed text of the carrier follows it.
const sealMark = "lathe:"

// sealed returns the signature for the sealed text of a carrier.
func sealed(text string) string {
	return base64.StdEncoding.EncodeToString([]byte(sealMark + text))
}

// opened returns the sealed text in a signature of [sealed], and any other signature unchanged.
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

// parseCall parses the value of functionCall.
func (r *reader) parseCall(p *rawPart) (lathe.ToolCall, *wire.APIError) {
	c := lathe.ToolCall{Arguments: "{}", Extra: p.rest}
	var few fewMembers
	members, err := callNames.read(few[:0], r.index, p.value, "")
	if err != nil {
		return c, wire.Within(p.data, err)
	}
	var rest []lathe.Member
	for i := range members {
		m := &members[i]
		switch m.name {
		case "id":
			c.ID, err = wire.ParseString(m.value, m.name)
		case "name":
			c.Name, err = wire.ParseString(m.value, m.name)
		case "args":
			if wire.Kind(m.value) != '{' {
				err = wire.BadRequest(m.name, "Must be an object.")
			}
			c.Arguments = rawjson.CompactText(m.value)
		default:
			rest = append(rest, m.member())
		}
		if err != nil {
			return c, wire.Within(p.data, err)
		}
	}
	if c.Name == "" {
		return c, wire.BadRequest(wire.Join(p.data, "name"), "A call needs the name of its function.")
	}
	c.Name = r.innerName(c.Name)
	c.Extra = appendInner(c.Extra, "functionCall", rest)
	return c, nil
}

// parseResult reads the value of functionResponse.
func (r *reader) parseResult(p *rawPart) (lathe.ToolResult, *wire.APIError) {
	t := lathe.ToolResult{Extra: p.rest}
	var few fewMembers
	members, err := resultNames.read(few[:0], r.index, p.value, "")
	if err != nil {
		return t, wire.Within(p.data, err)
	}
	dropped := len(r.Dropped)
	var rest []lathe.Member
	for i := range members {
		m := &members[i]
		switch m.name {
		case "id":
			t.CallID, err = wire.ParseString(m.value, m.name)
		case "name":
			t.Name, err = wire.ParseString(m.value, m.name)
		case "response":
			var simple bool
			if simple, err = readResponse(r.index, &t, m.value, m.name); err == nil && !simple {
				rest = append(rest, m.member())
			}
		case "parts":
			err = r.parseResultParts(&t, m.value, m.name)
		default:
			rest = append(rest, m.member())
		}
		if err != nil {
			return t, wire.Within(p.data, err)
		}
	}
	wire.PathsWithin(p.data, r.Dropped[dropped:])
	if t.Name != "" {
		t.Name = r.innerName(t.Name)
	}
	t.Extra = appendInner(t.Extra, "functionResponse", rest)
	return t, nil
}

// readResponse parses the object of a result at the path at. simple is whether its only member is one text, as output or error.
func readResponse(index *rawjson.Index, t *lathe.ToolResult, v []byte, at string) (simple bool, err *wire.APIError) {
	var few fewMembers
	members, err := responseNames.read(few[:0], index, v, at)
	if err != nil {
		return false, err
	}
	switch {
	case len(members) == 1 && members[0].known:
		t.IsError = members[0].name == "error"
		if wire.Kind(members[0].value) == '"' {
			t.Content = rawjson.Text(members[0].value)
			return true, nil
		}
		t.Content = rawjson.CompactText(members[0].value)
	default:
		for i := range members {
			t.IsError = t.IsError || members[i].name == "error" && string(members[i].value) != `""` && string(members[i].value) != "false"
		}
		t.Content = rawjson.CompactText(v)
	}
	return false, nil
}

func (r *reader) parseResultParts(t *lathe.ToolResult, v []byte, at string) *wire.APIError {
	return r.eachPart(v, at, func(v []byte) *wire.APIError {
		p, err := parsePart(r.index, v)
		if err != nil {
			return err
		}
		if p.data != "inlineData" && p.data != "fileData" {
			r.Drop("")
			return nil
		}
		b, err := p.blob()
		t.Blobs = append(t.Blobs, b)
		return err
	})
}

// appendInner appends the unknown members of the object name as one member with copies of their values, if there are any.
func appendInner(dst []lathe.Member, name string, inner []lathe.Member) []lathe.Member {
	if len(inner) == 0 {
		return dst
	}
	size := len("{}")
	for i := range inner {
		size += len(inner[i].Name) + len(inner[i].Value) + len(`"":,`)
	}
	return append(dst, lathe.Member{Name: name, Value: json.RawMessage(make(wire.JSON, 0, size).Lit("{").Members(inner, nil).Lit("}"))})
}
