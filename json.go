package lathe

import (
	"encoding/json"
	"fmt"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// messageJSON is Lathe's own JSON form of a message. Fields are added, never renamed.
type messageJSON struct {
	Role      Role       `json:"role"`
	Name      string     `json:"name,omitempty"`
	Parts     []partJSON `json:"parts"`
	Extra     []Member   `json:"extra,omitempty"`
	Synthetic bool       `json:"synthetic,omitempty"`
	Wire      Wire       `json:"wire,omitempty"`
}

type partJSON struct {
	Type       string          `json:"type"` // text, reasoning, signed_reasoning, refusal, blob, tool_call, tool_result, opaque
	Text       string          `json:"text,omitempty"`
	Commentary bool            `json:"commentary,omitempty"`
	Unreadable bool            `json:"unreadable,omitempty"`
	Field      string          `json:"field,omitempty"`
	Sealed     string          `json:"sealed,omitempty"` // Data of reasoning
	Entry      string          `json:"entry,omitempty"`
	MediaType  string          `json:"media_type,omitempty"`
	URL        string          `json:"url,omitempty"`
	Data       []byte          `json:"data,omitempty"`
	Detail     string          `json:"detail,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
	ID         string          `json:"id,omitempty"`
	Name       string          `json:"name,omitempty"`
	Arguments  *string         `json:"arguments,omitempty"`
	Dialect    string          `json:"dialect,omitempty"`
	Deprecated bool            `json:"deprecated,omitempty"`
	Recovered  bool            `json:"recovered,omitempty"`
	Incomplete bool            `json:"incomplete,omitempty"`
	ParseError Code            `json:"parse_error,omitempty"`
	Content    *string         `json:"content,omitempty"`
	Blobs      []partJSON      `json:"blobs,omitempty"`
	IsError    bool            `json:"is_error,omitempty"`
	Code       Code            `json:"code,omitempty"`
	Extra      []Member        `json:"extra,omitempty"`
}

// MarshalJSON returns the message in the JSON form that stores and events of this module use, an object with the members role and parts. It
// is not the form of any vendor's API.
func (m Message) MarshalJSON() ([]byte, error) {
	out := messageJSON{Role: m.Role, Name: m.Name, Extra: m.Extra, Synthetic: m.Synthetic, Wire: m.Wire, Parts: make([]partJSON, 0, len(m.Parts))}
	for _, p := range m.Parts {
		pj, err := partToJSON(p)
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, pj)
	}
	return rawjson.Marshal(out)
}

func partToJSON(p Part) (partJSON, error) {
	switch p := p.(type) {
	case Text:
		return partJSON{Type: "text", Text: p.Text, Commentary: p.Commentary, Unreadable: p.Unreadable, Extra: p.Extra}, nil
	case Reasoning:
		out := partJSON{Type: "reasoning", Text: p.Text, Field: p.Field, Sealed: p.Data, ID: p.ID, Entry: p.Entry}
		if p.Data != "" { // a reader that would lose it does not know the type
			out.Type = "signed_reasoning"
		}
		return out, nil
	case Opaque:
		return partJSON{Type: "opaque", Raw: p.JSON}, nil
	case Refusal:
		return partJSON{Type: "refusal", Text: p.Text}, nil
	case Blob:
		return blobToJSON(p), nil
	case ToolCall:
		return partJSON{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: &p.Arguments, Dialect: p.Dialect, Deprecated: p.Deprecated,
			Recovered: p.Recovered, Incomplete: p.Incomplete, ParseError: p.ParseError, Extra: p.Extra}, nil
	case ToolResult:
		out := partJSON{Type: "tool_result", ID: p.CallID, Name: p.Name, Content: &p.Content, IsError: p.IsError, Code: p.Code, Extra: p.Extra}
		for _, b := range p.Blobs {
			out.Blobs = append(out.Blobs, blobToJSON(b))
		}
		return out, nil
	}
	return partJSON{}, fmt.Errorf("lathe: part %T has no JSON form", p)
}

func blobToJSON(b Blob) partJSON {
	return partJSON{Type: "blob", MediaType: b.MediaType, URL: b.URL, Data: b.Data, Name: b.Name, Detail: b.Detail, Raw: b.Raw}
}

// UnmarshalJSON reads the form that MarshalJSON writes. It returns an error for an unknown type of part; m is then unchanged.
func (m *Message) UnmarshalJSON(b []byte) error {
	var in messageJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("lathe: reading a message: %w", err)
	}
	out := Message{Role: in.Role, Name: in.Name, Extra: in.Extra, Synthetic: in.Synthetic, Wire: in.Wire}
	for _, pj := range in.Parts {
		p, err := pj.part()
		if err != nil {
			return err
		}
		out.Parts = append(out.Parts, p)
	}
	*m = out
	return nil
}

func (p *partJSON) part() (Part, error) {
	deref := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	switch p.Type {
	case "text":
		return Text{Text: p.Text, Commentary: p.Commentary, Unreadable: p.Unreadable, Extra: p.Extra}, nil
	case "reasoning", "signed_reasoning":
		return Reasoning{Text: p.Text, Field: p.Field, Data: p.Sealed, ID: p.ID, Entry: p.Entry}, nil
	case "opaque":
		return Opaque{JSON: p.Raw}, nil
	case "refusal":
		return Refusal{Text: p.Text}, nil
	case "blob":
		return p.blob(), nil
	case "tool_call":
		return ToolCall{ID: p.ID, Name: p.Name, Arguments: deref(p.Arguments), Dialect: p.Dialect, Deprecated: p.Deprecated,
			Recovered: p.Recovered, Incomplete: p.Incomplete, ParseError: p.ParseError, Extra: p.Extra}, nil
	case "tool_result":
		out := ToolResult{CallID: p.ID, Name: p.Name, Content: deref(p.Content), IsError: p.IsError, Code: p.Code, Extra: p.Extra}
		for i := range p.Blobs {
			out.Blobs = append(out.Blobs, p.Blobs[i].blob())
		}
		return out, nil
	}
	return nil, fmt.Errorf("lathe: unknown part type %q", p.Type)
}

func (p *partJSON) blob() Blob {
	return Blob{MediaType: p.MediaType, URL: p.URL, Data: p.Data, Name: p.Name, Detail: p.Detail, Raw: p.Raw}
}

// MarshalJSON returns the blob in the JSON form that blobs have in the parts of [Message.MarshalJSON].
func (b Blob) MarshalJSON() ([]byte, error) { return rawjson.Marshal(blobToJSON(b)) }

// UnmarshalJSON reads the form that [Blob.MarshalJSON] writes.
func (b *Blob) UnmarshalJSON(text []byte) error {
	var in partJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("lathe: reading a blob: %w", err)
	}
	*b = in.blob()
	return nil
}
