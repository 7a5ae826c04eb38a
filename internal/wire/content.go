package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// defaultMarker is the text that replaces content for which a wire has no form. {type} is replaced by the type of the content.
const defaultMarker = "[{type}: not sent, because the API of the model has no form for it]"

// A Fit adapts messages to the forms that a wire has. Only here is content handled for which a wire has no form: images, audio and files,
// and parts and items of types unknown to Lathe.
//
//   - Text documents become text.
//   - In the messages after the last answer, [Fit.Check] refuses the content, unless Drop is set.
//   - In older messages it is replaced by Marker or, if Drop is set, left out. If a message would otherwise be empty, one part is replaced
//     by the marker in any case.
//   - Actions of a vendor's server in an answer (a web search) are left out. An answer that contains nothing else is not sent.
//
// The treatment of a message depends only on that message, so that a growing conversation keeps its encoded beginning. Content in tool
// results is not changed here: encoders replace it by a note.
type Fit struct {
	Codec  Upstream
	Drop   bool
	Marker string // "": defaultMarker
}

// ItemMember is the name of the member in Extra of a call, and of the message of a result, that contains the client's item. Servers of the
// same wire receive the item unchanged; models of other wires do not receive it.
const ItemMember = "lathe_item"

// OriginInput is the Origin of a tool whose definition is in a message of the request. A server of the same wire receives the definition
// there.
const OriginInput = "input"

// A ContentError is the error for content for which a wire has no form: part Part of message Message. Its text does not quote the content.
type ContentError struct {
	Message, Part int
	Type          string // such as "audio/mpeg"
	Wire          lathe.Wire
}

// Error returns the path in the messages and the reason.
func (e *ContentError) Error() string { return e.Path() + ": " + e.Reason() }

// Path returns the path in the messages, such as "messages[2].parts[0]".
func (e *ContentError) Path() string { return partPath(e.Message, e.Part) }

// Reason returns why the content is refused, and what the client can do.
func (e *ContentError) Reason() string {
	return "The API of the model (" + string(e.Wire) + ") has no form for content of type " + e.Type +
		". Leave it out, or use another model. With unsupported_content: drop in the entry of the model it is left out here."
}

func partPath(message, part int) string {
	return Element(Element("messages", message)+".parts", part)
}

// Check returns an error for the first part after the last answer that Message would leave out or replace by a marker. It returns nil if
// Drop is set.
func (f *Fit) Check(msgs []lathe.Message) *ContentError {
	if f.Drop {
		return nil
	}
	for i := newest(msgs); i < len(msgs); i++ {
		m := &msgs[i]
		if m.Role == lathe.RoleTool {
			continue
		}
		for j, p := range m.Parts {
			if f.treatment(m, p) == replaced {
				return &ContentError{Message: i, Part: j, Type: typeOf(p), Wire: f.Codec.Wire()}
			}
		}
	}
	return nil
}

// A treatment is what becomes of a part.
type treatment uint8

const (
	unchanged     treatment = iota // the wire has a form for it
	textDocument                   // sent as text
	requestChange                  // read by the codecs as members of the request
	replaced                       // by the marker
	omitted
)

// treatment returns what becomes of part p of m, unless m has nothing else.
func (f *Fit) treatment(m *lathe.Message, p lathe.Part) treatment {
	switch {
	case f.Codec.HasForm(m, p):
		return unchanged
	case isDocument(m, p):
		return textDocument
	case changesRequest(p):
		return requestChange
	case f.Drop || !mayMark(m, p):
		return omitted
	}
	return replaced
}

// mayMark reports whether the marker may replace part p of m: it is content for the model, and not a record of an action of a vendor's server.
func mayMark(m *lathe.Message, p lathe.Part) bool {
	o, isOpaque := p.(lathe.Opaque)
	if m.Role != lathe.RoleAssistant || !isOpaque {
		return true
	}
	return m.Wire == lathe.WireResponses && !hostedItems.Has(rawjson.TextAt(o.JSON, "type"))
}

// newest returns the index of the first message after the last answer, which is the last assistant message with a part that is not opaque.
func newest(msgs []lathe.Message) int {
	for i := range slices.Backward(msgs) {
		if msgs[i].Role == lathe.RoleAssistant && slices.ContainsFunc(msgs[i].Parts, isNotOpaque) {
			return i + 1
		}
	}
	return 0
}

func isNotOpaque(p lathe.Part) bool { _, opaque := p.(lathe.Opaque); return !opaque }

// Message returns message m, which has the index at, in the form in which it is sent. It appends the paths of what is left out or replaced
// to dropped and does not modify m. A message returned without a role is not sent.
func (f *Fit) Message(m *lathe.Message, at int, dropped []string) (lathe.Message, []string) {
	out := *m
	if m.Wire == lathe.WireResponses && !f.own(m) {
		out = withoutItems(m)
	}
	if m.Role == lathe.RoleTool || f.fits(m) && !f.sendsNothing(m) {
		return out, dropped
	}
	out.Parts = slices.Clone(out.Parts)
	sent := false // some part is sent
	spare := -1   // index of the first part that becomes a marker if nothing else is sent
	for j, p := range m.Parts {
		becomes := f.treatment(m, p)
		if becomes != unchanged {
			out.Parts[j] = f.replacement(m, p, becomes)
		}
		switch becomes {
		case unchanged:
			sent = sent || f.isSent(m, p)
		case textDocument:
			sent = true
		case replaced:
			sent, dropped = true, appendPath(dropped, at, j)
		case omitted:
			dropped = appendPath(dropped, at, j)
			if spare < 0 && mayMark(m, p) {
				spare = j
			}
		default: // requestChange: the part is sent as members of the request
		}
	}
	switch {
	case sent:
		return out, dropped
	case spare >= 0:
		out.Parts[spare] = f.replacement(m, m.Parts[spare], replaced)
		return out, dropped
	}
	for j, p := range m.Parts {
		if _, thought := p.(lathe.Reasoning); thought {
			dropped = appendPath(dropped, at, j)
		}
	}
	return lathe.Message{}, dropped
}

// replacement returns the text that is sent in place of part p of m; it is empty if nothing is.
func (f *Fit) replacement(m *lathe.Message, p lathe.Part, becomes treatment) lathe.Text {
	switch becomes {
	case textDocument:
		text, _ := destination.DocumentText(m.Wire, p)
		return lathe.Text{Text: text}
	case replaced:
		return lathe.Text{Text: f.marker(p)}
	default:
		return lathe.Text{}
	}
}

// Sends reports whether any part of m is sent.
func (f *Fit) Sends(m *lathe.Message) bool {
	out, _ := f.Message(m, 0, nil)
	return out.Role != ""
}

func appendPath(dropped []string, at, part int) []string {
	if len(dropped) == MaxDropped {
		return dropped
	}
	return append(dropped, partPath(at, part))
}

// fits reports whether the wire has a form for each part of m.
func (f *Fit) fits(m *lathe.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p lathe.Part) bool { return !f.Codec.HasForm(m, p) })
}

// Dropped returns the paths that Message returns for all of the messages.
func (f *Fit) Dropped(msgs []lathe.Message) (dropped []string) {
	for i := range msgs {
		_, dropped = f.Message(&msgs[i], i, dropped)
	}
	return dropped
}

func (f *Fit) marker(p lathe.Part) string {
	return strings.ReplaceAll(cmp.Or(f.Marker, defaultMarker), "{type}", typeOf(p))
}

// isDocument reports whether a part is a text document, which is sent as text.
func isDocument(m *lathe.Message, p lathe.Part) bool {
	_, ok := destination.DocumentText(m.Wire, p)
	return ok
}

// sendsNothing reports whether m is an answer from another wire of which nothing is sent, because it has only reasoning.
func (f *Fit) sendsNothing(m *lathe.Message) bool {
	return m.Role == lathe.RoleAssistant && !f.own(m) && len(m.Parts) > 0 &&
		!slices.ContainsFunc(m.Parts, func(p lathe.Part) bool { return f.isSent(m, p) })
}

func (f *Fit) own(m *lathe.Message) bool {
	return cmp.Or(m.Wire, lathe.WireOpenAIChat) == f.Codec.Wire()
}

// isSent reports whether a part for which the wire has a form is sent. Empty texts, and reasoning of other wires, are not.
func (f *Fit) isSent(m *lathe.Message, p lathe.Part) bool {
	switch p := p.(type) {
	case lathe.Text:
		return p.Text != ""
	case lathe.Reasoning:
		return f.own(m)
	default:
		return true
	}
}

// hostedItems are the items of Responses that record actions of a vendor's server, and references. The answer after them contains the
// results of the actions.
var hostedItems = rawjson.NewNames(strings.Fields(`web_search_call file_search_call code_interpreter_call image_generation_call mcp_call mcp_list_tools
	mcp_approval_request tool_search_call tool_search_output item_reference message program program_output`)...)

// changesRequest reports whether a part only declares tools or changes settings. The codecs read such parts as members of the request.
func changesRequest(p lathe.Part) bool {
	o, ok := p.(lathe.Opaque)
	if !ok {
		return false
	}
	switch rawjson.TextAt(o.JSON, "type") {
	case "additional_tools", "configuration_update":
		return true
	case "tool_addition", "tool_removal":
		typ := rawjson.TextAt(o.JSON, "tool", "type")
		return typ == "tool_definition" || typ == "tool_reference"
	}
	return false
}

// withoutItems returns m without the members that only a server of its own wire receives.
func withoutItems(m *lathe.Message) lathe.Message {
	out := *m
	isItem := func(x lathe.Member) bool { return x.Name == ItemMember }
	out.Extra = slices.DeleteFunc(slices.Clone(m.Extra), isItem)
	out.Parts = slices.Clone(m.Parts)
	for j, p := range out.Parts {
		if c, ok := p.(lathe.ToolCall); ok && slices.ContainsFunc(c.Extra, isItem) {
			c.Extra = slices.DeleteFunc(slices.Clone(c.Extra), isItem)
			out.Parts[j] = c
		}
	}
	return out
}

var notInTypes = lazy.Regexp(`[^\w/+.* -]`)

// typeOf returns the type of content for errors and markers, reduced to letters, digits and characters of media types, at most 64 bytes.
func typeOf(p lathe.Part) string {
	typ, raw := "", []byte(nil)
	switch p := p.(type) {
	case lathe.Blob:
		typ, raw = p.MediaType, p.Raw
		if typ == "" && p.URL != "" {
			typ = "image"
		}
		if typ != "" && len(p.Data) == 0 {
			typ += " by reference"
		}
	case lathe.Opaque:
		raw = p.JSON
	default: // every wire has a form for the other parts
	}
	if typ == "" {
		typ = rawjson.TextAt(raw, "type")
	}
	typ = notInTypes().ReplaceAllString(typ, "")
	if typ == "" {
		return "file"
	}
	return typ[:min(len(typ), 64)]
}

// IsSystem reports whether the role of a message is system or developer.
func IsSystem(m *lathe.Message) bool {
	return m.Role == lathe.RoleSystem || m.Role == lathe.RoleDeveloper
}

// Fetchable reports whether every server can fetch the content of a URL: its scheme is https, http or data.
func Fetchable(url string) bool {
	return strings.HasPrefix(url, "https:") || strings.HasPrefix(url, "http:") || strings.HasPrefix(url, "data:")
}
