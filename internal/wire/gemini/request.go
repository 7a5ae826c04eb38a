package gemini

import (
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A reader parses one request.
type reader struct {
	*wire.ClientRequest
	index   *rawjson.Index // of the body
	allowed []string       // allowedFunctionNames of the tool choice
	forced  bool           // the tool choice requires a call
	rest    [2][]lathe.Member
}

// The members of a request whose unknown members the model server may know. Each becomes an element of Unknown, with the members
// that are not read.
const (
	restConfig = iota // generationConfig
	restChoice        // toolConfig
)

var requestNames = newNameSet("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "cachedContent", "model",
	"safetySettings", "serviceTier", "labels", "store")

// published are the members of the wire's published schema that a request keeps in Unknown.
var published = rawjson.NewNames("safetySettings", "generationConfig", "toolConfig", "serviceTier", "labels", "store")

// Published reports whether name is a member of the wire's published schema that ParseRequest keeps in ClientRequest.Unknown.
func Published(name string) bool { return published.Has(name) }

// LikePublished returns the published member that differs from name only under Unicode simple case folding; "" if there is none.
func LikePublished(name string) string { return published.Like(name) }

// ParseRequest implements [wire.Served]. It does not set Model and Stream, which are in the path of a request. The unknown members
// of generationConfig and toolConfig are one element of Unknown each.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	req, err := parseRequest(body)
	if err != nil {
		return nil, err
	}
	return req, nil
}

// ParseCount parses the body of a request to count tokens: a request, or an object with a request in its member
// generateContentRequest.
func ParseCount(body []byte) (*wire.ClientRequest, error) {
	if rawjson.Check(body, rawjson.Limits{}) == nil && wire.Kind(body[rawjson.SkipSpace(body, 0):]) == '{' {
		if inner := get(body, "generateContentRequest"); inner != nil {
			if get(body, "contents") != nil {
				return nil, wire.BadRequest("contents", "Send either contents or generateContentRequest.")
			}
			body = inner
		}
	}
	return Codec{}.ParseRequest(body)
}

func parseRequest(body []byte) (*wire.ClientRequest, *wire.APIError) {
	index, bad := rawjson.CheckIndexed(body, rawjson.Limits{})
	if bad != nil {
		return nil, wire.BadRequest("", "The body is not acceptable JSON: %v.", bad)
	}
	members, err := requestNames.read(nil, index, body[rawjson.SkipSpace(body, 0):], "")
	if err != nil {
		return nil, err
	}
	r := &reader{ClientRequest: &wire.ClientRequest{N: 1, Body: body}, index: index}
	var system, contents []byte
	for i := range members {
		m := &members[i]
		switch m.name {
		case "systemInstruction":
			system = m.value
		case "contents":
			contents = m.value
		case "tools":
			err = r.parseTools(m.value)
		case "toolConfig":
			err = r.parseToolConfig(m.value)
		case "generationConfig":
			err = r.parseConfig(m.value)
		case "model":
			r.Model, err = wire.ParseString(m.value, m.name)
			r.Model = strings.TrimPrefix(r.Model, "models/")
		case "cachedContent":
			err = wire.BadRequest(m.name, "Cached content is not supported: it belongs to the account of this server.")
		default:
			r.Unknown = append(r.Unknown, m.kept())
		}
		if err != nil {
			return nil, err
		}
	}
	if system != nil {
		if err := r.parseSystem(system); err != nil {
			return nil, err
		}
	}
	if err := r.parseContents(contents); err != nil {
		return nil, err
	}
	if err := r.choose(); err != nil {
		return nil, err
	}
	for i, name := range [...]string{restConfig: "generationConfig", restChoice: "toolConfig"} {
		if len(r.rest[i]) > 0 {
			r.Unknown = append(r.Unknown, lathe.Member{Name: name, Value: json.RawMessage(wire.JSON("{").Members(r.rest[i], nil).Lit("}"))})
		}
	}
	return r.ClientRequest, nil
}

// parseSystem parses systemInstruction, a content that has only text.
func (r *reader) parseSystem(v []byte) *wire.APIError {
	const at = "systemInstruction"
	members, err := contentNames.read(nil, r.index, v, at)
	if err != nil {
		return err
	}
	m := lathe.Message{Role: lathe.RoleSystem, Wire: lathe.WireGemini}
	for i := range members {
		switch f := &members[i]; f.name {
		case "role":
			_, err = wire.ParseString(f.value, wire.Join(at, f.name))
		case "parts":
			err = r.eachPart(f.value, wire.Join(at, f.name), func(v []byte) *wire.APIError {
				p, err := parsePart(r.index, v)
				if err != nil {
					return err
				}
				if p.data != "" && p.data != "text" || p.thought {
					return wire.BadRequest("", "The instruction of the system can have text alone.")
				}
				if p.text != "" {
					m.Parts = append(m.Parts, lathe.Text{Text: p.text, Extra: p.rest})
				} else {
					r.Drop("")
				}
				return nil
			})
		default:
			r.Drop(wire.Join(at, f.name))
		}
		if err != nil {
			return err
		}
	}
	if len(m.Parts) > 0 {
		r.Messages = append(r.Messages, m)
	}
	return nil
}

// eachPart calls f for each element of the list of parts at the path at. The errors of f, and the paths that it drops, begin at the
// element: a path for each element would cost more than reading it.
func (r *reader) eachPart(v []byte, at string, f func(v []byte) *wire.APIError) *wire.APIError {
	if wire.Kind(v) != '[' {
		return wire.BadRequest(at, "Must be an array.")
	}
	i := 0
	for el := range r.index.Elements(v) {
		dropped := len(r.Dropped)
		if err := f(el); err != nil {
			return wire.Within(wire.Element(at, i), err)
		}
		if len(r.Dropped) > dropped {
			wire.PathsWithin(wire.Element(at, i), r.Dropped[dropped:])
		}
		i++
	}
	return nil
}

// compact returns a copy of a value without white space between its tokens.
func compact(v []byte) []byte { return make(wire.JSON, 0, len(v)).Compact(v) }

// without returns a copy of the object obj without the member name, in both spellings.
func without(obj []byte, name string) []byte {
	out := wire.JSON("{")
	other := snake(name)
	for key, v := range rawjson.Members(obj) {
		if !rawjson.EqualKey(key, name) && !rawjson.EqualKey(key, other) {
			out = out.Pair(key, v)
		}
	}
	return out.Lit("}")
}
