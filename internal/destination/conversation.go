package destination

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Conversation applies a row to the messages of a conversation, in their order. What becomes of a message depends on it and on the
// messages before it, so that the sent form of a conversation keeps its beginning when the conversation grows. The one exception is
// [Conversation.Joins]. The zero value changes nothing.
type Conversation struct {
	row   Row
	talks bool       // a message after the leading system messages was sent
	last  lathe.Role // of the last message that counts in the order of turns
}

// NewConversation returns a Conversation without messages.
func (r *Row) NewConversation() Conversation { return Conversation{row: *r} }

// order reports whether messages of one role must not follow each other.
func (c *Conversation) order() bool { return c.row.System == one || c.row.Turns == alternate }

// Joins reports whether m, as the next message, becomes part of one that an earlier call of Apply returned. The caller then applies
// the row again, to the conversation from its beginning.
func (c *Conversation) Joins(m *lathe.Message) bool {
	if !c.order() || c.last != lathe.RoleUser {
		return false
	}
	return m.Role == lathe.RoleUser || isSystem(m) && c.row.movesSystem()
}

// Follows reports whether the conversation is of row r.
func (c *Conversation) Follows(r *Row) bool { return c.row == *r }

// movesSystem reports whether system messages after the first ones are sent as text of the user.
func (r *Row) movesSystem() bool { return r.System == Leading || r.System == one }

// Apply returns the messages as the destination takes them. at is the index of the first one in the conversation. The result has as
// many messages: one that became part of an earlier one has no role and is not sent. The paths of what is not sent as it was are
// appended to changed. msgs is not changed.
func (c *Conversation) Apply(msgs []lathe.Message, at int, changed []string) ([]lathe.Message, []string) {
	if !c.order() && !c.row.movesSystem() && c.row.Developer != no && c.row.Documents != asText {
		return msgs, changed
	}
	p := pass{Conversation: c, out: msgs, at: at, changed: changed, head: -1, prev: -1}
	lead, last := 0, -1 // last is the last of the first system messages; messages without a role are not sent
	if !c.talks {
		for lead < len(msgs) && (msgs[lead].Role == "" || isSystem(&msgs[lead])) {
			if msgs[lead].Role != "" {
				last = lead
			}
			lead++
		}
	}
	// Templates want a turn of the user, and strict ones want it first: the last of the system messages is sent as one.
	if c.row.System == one && last >= 0 && (lead == len(msgs) || c.row.Turns == alternate && msgs[lead].Role != lathe.RoleUser) {
		lead = last
	}
	for i := range msgs {
		p.add(i, msgs[i], i < lead)
	}
	return p.out, p.changed
}

// A pass is one call of Apply.
type pass struct {
	*Conversation
	out     []lathe.Message
	copied  bool
	at      int
	changed []string
	head    int // index in out of the system message that others join; -1: none
	prev    int // index in out of the last message that is sent; -1: none
}

func (p *pass) set(i int, m lathe.Message) {
	if !p.copied {
		p.out, p.copied = slices.Clone(p.out), true
	}
	p.out[i] = m
}

func (p *pass) note(i int, member string) {
	if len(p.changed) < maxChanged {
		p.changed = append(p.changed, "messages["+strconv.Itoa(p.at+i)+"]."+member)
	}
}

// add applies the row to message i; leads says that only system messages are before it.
func (p *pass) add(i int, m lathe.Message, leads bool) {
	if m.Role == "" { // it is not sent
		return
	}
	given := m.Role
	if given == lathe.RoleDeveloper && p.row.Developer == no {
		m.Role = lathe.RoleSystem
		p.set(i, m)
	}
	first := leads && !p.talks && (p.row.System != one || !hasBlob(&m)) // a system message that stays one
	if isSystem(&m) && !first && p.row.movesSystem() {
		m = asUser(m)
		p.set(i, m)
	}
	if m.Role != given {
		p.note(i, "role")
	}
	if first {
		p.lead(i, m)
	} else {
		p.follow(i, m, m.Role != given)
	}
}

// follow adds message i after the leading system messages; noted says that its role was noted as changed.
func (p *pass) follow(i int, m lathe.Message, noted bool) {
	p.talks = true
	if p.row.Documents == asText {
		if with, ok := withDocuments(m); ok {
			m = with
			p.set(i, m)
		}
	}
	if m.Role == lathe.RoleUser && p.order() && p.last == lathe.RoleUser && p.prev >= 0 {
		if to := p.out[p.prev].Role; to == lathe.RoleUser || to == lathe.RoleTool {
			if to == lathe.RoleTool && !noted {
				p.note(i, "role")
			}
			p.join(p.prev, i, m)
			return
		}
	}
	p.prev = i
	if p.row.Turns != alternate || m.Role != lathe.RoleTool && len(m.Calls()) == 0 {
		p.last = m.Role
	}
}

// lead adds system message i, before which only system messages are.
func (p *pass) lead(i int, m lathe.Message) {
	if p.row.System == one && p.head >= 0 {
		p.join(p.head, i, m)
		return
	}
	p.head, p.prev = i, i
}

// join makes the parts of message i part of the message at index to of out.
func (p *pass) join(to, i int, m lathe.Message) {
	into := p.out[to]
	if m.Name != "" && m.Name != into.Name {
		p.note(i, "name")
	}
	for _, x := range m.Extra {
		p.note(i, x.Name)
	}
	parts := m.Parts
	if wireOf(m.Wire) != wireOf(into.Wire) {
		parts = plain(parts)
	}
	if into.Role == lathe.RoleTool {
		into = withText(into, parts)
	} else {
		into.Parts = slices.Clone(into.Parts)
		for j, part := range parts {
			if t, ok := part.(lathe.Text); ok && j == 0 && len(into.Parts) > 0 {
				t.Text = "\n\n" + t.Text
				last := len(into.Parts) - 1
				if before, ok := into.Parts[last].(lathe.Text); ok && len(before.Extra)+len(t.Extra) == 0 {
					before.Text += t.Text // some templates read the first part alone
					into.Parts[last] = before
					continue
				}
				part = t
			}
			into.Parts = append(into.Parts, part)
		}
	}
	p.set(to, into)
	p.set(i, lathe.Message{})
}

// withText returns a result with parts of the user after its content, where the order of turns has no place for them.
func withText(m lathe.Message, parts []lathe.Part) lathe.Message {
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		r, ok := m.Parts[i].(lathe.ToolResult)
		if !ok {
			continue
		}
		for _, part := range parts {
			switch part := part.(type) {
			case lathe.Text:
				r.Content += "\n\n" + part.Text
			case lathe.Blob:
				r.Blobs = append(slices.Clip(r.Blobs), part)
			default: // messages of the user have no others that a result can have
			}
		}
		m.Parts[i] = r
		return m
	}
	return m
}

// asUser returns a system message as text of the user.
func asUser(m lathe.Message) lathe.Message {
	m.Role = lathe.RoleUser
	m.Parts = slices.Clone(m.Parts)
	for i, part := range m.Parts {
		if t, ok := part.(lathe.Text); ok && strings.TrimSpace(t.Text) != "" {
			t.Text = "<system>\n" + t.Text + "\n</system>"
			m.Parts[i] = t
		}
	}
	return m
}

// withDocuments returns the message with its text documents as text; ok is false if it has none.
func withDocuments(m lathe.Message) (_ lathe.Message, ok bool) {
	copied := false
	for i, part := range m.Parts {
		switch p := part.(type) {
		case lathe.Blob, lathe.Opaque:
			text, is := DocumentText(m.Wire, p)
			if !is {
				continue
			}
			part = lathe.Text{Text: text}
		case lathe.ToolResult:
			with, is := resultWithDocuments(p)
			if !is {
				continue
			}
			part = with
		default:
			continue
		}
		if !copied {
			m.Parts, copied = slices.Clone(m.Parts), true
		}
		m.Parts[i] = part
	}
	return m, copied
}

func resultWithDocuments(r lathe.ToolResult) (_ lathe.ToolResult, ok bool) {
	var rest []lathe.Blob
	for i := range r.Blobs {
		text, is := document(&r.Blobs[i])
		if !is {
			rest = append(rest, r.Blobs[i])
			continue
		}
		if ok = true; r.Content != "" {
			r.Content += "\n\n"
		}
		r.Content += text
	}
	if ok {
		r.Blobs = rest
	}
	return r, ok
}

// DocumentText returns the text of a part that is a text document, with its title; ok is false for other parts. of is the wire of its
// message.
func DocumentText(of lathe.Wire, p lathe.Part) (text string, ok bool) {
	switch p := p.(type) {
	case lathe.Blob:
		return document(&p)
	case lathe.Opaque:
		if of == lathe.WireMessages {
			return blocks(p)
		}
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult: // no document
	}
	return "", false
}

// document returns the text of a text document, with its title; ok is false if b is none.
func document(b *lathe.Blob) (text string, ok bool) {
	if text, ok = Text(b); !ok {
		return "", false
	}
	return marked(b.Name, text), true
}

// Text returns the text of a file that is text: by its media type, or by its name if the type says nothing.
func Text(b *lathe.Blob) (text string, ok bool) {
	if len(b.Data) == 0 || !utf8.Valid(b.Data) {
		return "", false
	}
	media, _, _ := strings.Cut(b.MediaType, ";")
	switch media {
	case "application/csv", "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml":
	case "", "application/octet-stream":
		if !textNames.Has(strings.ToLower(path.Ext(b.Name))) {
			return "", false
		}
	default:
		if !strings.HasPrefix(media, "text/") {
			return "", false
		}
	}
	return string(b.Data), true
}

// textNames are the endings of names of files of text.
var textNames = rawjson.NewNames(".txt", ".md", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".log", ".html")

// marked returns the text of a document with its title.
func marked(title, text string) string {
	if title != "" {
		title = " title=" + strconv.Quote(title)
	}
	return "<document" + title + ">\n" + text + "\n</document>\n"
}

// blocks returns the text of a document of Messages whose source is content blocks of text; ok is false if part is none.
func blocks(part lathe.Opaque) (text string, ok bool) {
	source, _ := rawjson.Get(part.JSON, "source")
	content, _ := rawjson.Get(source, "content")
	if member(part.JSON, "type") != "document" || member(source, "type") != "content" {
		return "", false
	}
	var texts []string
	for el := range rawjson.Elements(content) {
		if member(el, "type") != "text" {
			return "", false
		}
		texts = append(texts, member(el, "text"))
	}
	if text = strings.Join(texts, "\n\n"); len(texts) == 0 {
		text = rawjson.Text(content)
	}
	return marked(member(part.JSON, "title"), text), text != ""
}

// member returns the text of a member of an object, "" if it has none.
func member(object []byte, name string) string {
	v, _ := rawjson.Get(object, name)
	return rawjson.Text(v)
}

// plain returns parts without what only their own wire knows.
func plain(parts []lathe.Part) []lathe.Part {
	var out []lathe.Part
	for _, part := range parts {
		switch p := part.(type) {
		case lathe.Text:
			p.Extra = nil
			out = append(out, p)
		case lathe.Blob:
			p.Raw = nil
			out = append(out, p)
		case lathe.Opaque:
		default:
			out = append(out, p)
		}
	}
	return out
}

// wireOf returns the wire of a message.
func wireOf(w lathe.Wire) lathe.Wire {
	if w == "" {
		return lathe.WireOpenAIChat
	}
	return w
}

func isSystem(m *lathe.Message) bool {
	return m.Role == lathe.RoleSystem || m.Role == lathe.RoleDeveloper
}

func hasBlob(m *lathe.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p lathe.Part) bool { _, ok := p.(lathe.Blob); return ok })
}
