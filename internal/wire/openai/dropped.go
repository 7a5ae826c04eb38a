package openai

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// foreign reports whether w is a wire other than this one.
func foreign(w lathe.Wire) bool { return w != "" && w != lathe.WireOpenAIChat }

// A dropped list contains the paths of the members that a request does not send.
type dropped []string

func (d *dropped) add(path ...string) {
	if len(*d) == wire.MaxDropped {
		return
	}
	*d = append(*d, strings.Join(path, ""))
}

func (d *dropped) addMembers(at string, members []lathe.Member, sent func(string) bool) {
	for i, m := range members {
		if (sent == nil || !sent(m.Name)) && !wire.Named(members[i+1:], m.Name) {
			d.add(at, ".", m.Name)
		}
	}
}

// droppedOfHead returns the paths of the members that appendHead does not send. ofTools are the paths below the tools.
func droppedOfHead(req *lathe.Request, opts *EncodeOptions, ofTools []string) []string {
	var d dropped
	s := &req.Sampling
	if mode := req.ToolChoice.Mode; mode != lathe.ChoiceFunction && mode != lathe.ChoiceNone && wire.Allowed(req.Tools) != nil {
		d.add(wire.AllowedPath)
	}
	if s.ReasoningBudget != nil {
		d.add("sampling.reasoning_budget")
	}
	if s.ReasoningSummary != "" {
		d.add("sampling.reasoning_summary")
	}
	if s.TopK != nil && !opts.TopK {
		d.add("sampling.top_k")
	}
	return append(d, ofTools[:min(len(ofTools), wire.MaxDropped-len(d))]...)
}

// appendDropped appends the paths of the parts and members of messages that [AppendMessages] does not send.
func appendDropped(list []string, msgs []lathe.Message, opts *EncodeOptions) []string {
	d := dropped(list)
	for i := range msgs {
		m := &msgs[i]
		if !foreign(m.Wire) && !shape(m).reasoning {
			continue
		}
		path := wire.Element("messages", i)
		switch {
		case foreign(m.Wire):
			d.addMembers(path, m.Extra, nil)
		case ofOther(m, opts):
			d.addMembers(path, m.Extra, func(name string) bool { return !protected(name) })
		}
		for j, p := range m.Parts {
			d.addPart(path+"."+wire.Element("parts", j), m, p, opts)
		}
	}
	return d
}

// addPart adds part p of m, or those of its members that are not sent. Apart from reasoning, parts from this wire are sent unchanged.
func (d *dropped) addPart(path string, m *lathe.Message, p lathe.Part, opts *EncodeOptions) {
	if r, ok := p.(lathe.Reasoning); ok && opts.ReasoningField != "" && !sendsReasoning(m, &r, opts) {
		d.add(path)
	}
	if !foreign(m.Wire) {
		return
	}
	switch p := p.(type) {
	case lathe.Text:
		d.addMembers(path, p.Extra, nil)
	case lathe.ToolCall:
		d.addMembers(path, p.Extra, nil)
	case lathe.Blob:
		d.addBlob(path, &p)
	case lathe.ToolResult:
		d.addMembers(path, p.Extra, nil)
		for i := range p.Blobs {
			d.addBlob(path+"."+wire.Element("blobs", i), &p.Blobs[i])
		}
	case lathe.Opaque:
		d.add(path)
	case lathe.Reasoning, lathe.Refusal:
	}
}

func (d *dropped) addBlob(path string, b *lathe.Blob) {
	switch {
	case !sendsBlob(b):
		d.add(path)
	case len(b.Raw) > 0:
		d.add(path, ".raw")
	}
}

// HasForm implements [wire.Upstream].
func (Upstream) HasForm(m *lathe.Message, p lathe.Part) bool {
	alien := foreign(m.Wire)
	switch p := p.(type) {
	case lathe.Blob:
		return !alien || sendsBlob(&p)
	case lathe.Opaque:
		return !alien
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult:
	}
	return true
}

// sendsBlob reports whether a blob from another wire can be sent: it has data that is not a video, or the URL of an image.
func sendsBlob(b *lathe.Blob) bool {
	if b.Data != nil {
		return !strings.HasPrefix(b.MediaType, "video/")
	}
	return wire.Fetchable(b.URL) && (b.MediaType == "" || partType(&lathe.Blob{MediaType: b.MediaType}) == "image_url")
}

// sendsReasoning reports whether reasoning of the history is sent. Reasoning of another model, and protected reasoning in the form of
// another wire, is not.
func sendsReasoning(m *lathe.Message, r *lathe.Reasoning, opts *EncodeOptions) bool {
	switch {
	case r.Entry != "" && r.Entry != opts.Entry, r.Data != "":
		return false
	case opts.ReasoningField != ReasoningSame:
		return opts.ReasoningField != ""
	}
	if !foreign(m.Wire) || ownField(r.Field) {
		return true
	}
	// A member name of another wire is not valid here, but the server may refuse calls without any reasoning.
	return opts.Takes.Reasoning == destination.Calls && r.Entry == "" && r.Text != "" && len(m.Calls()) > 0
}

// ownField reports whether field is a reasoning member of this wire. In a message from another wire, that means that the caller has
// determined that this entry wrote the reasoning, and in which member.
func ownField(field string) bool { return field == reasoningFields[0] || field == reasoningFields[1] }

// ofOther reports whether a message is known to be from a model other than that of the request.
func ofOther(m *lathe.Message, opts *EncodeOptions) bool {
	for _, p := range m.Parts {
		if r, ok := p.(lathe.Reasoning); ok && r.Entry != "" && r.Entry != opts.Entry {
			return true
		}
	}
	return false
}

// protected reports whether a member of a message contains reasoning that a vendor protects. Like all reasoning, it is sent only to the
// model that wrote it.
var protected = rawjson.NewNames("reasoning_details", "thinking_blocks", "reasoning_signature", "thought_signature", "extra_content",
	"provider_specific_fields").Has

func knownOrProtected(name string) bool { return knownInMessage(name) || protected(name) }
