package destination

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A Conversation applies a row to the messages of a conversation, in their order: first [Conversation.Roles], then, once the content of the
// messages is known, [Conversation.Join]. The form in which a message is sent depends only on it and on the messages before it. When a
// conversation grows, its encoded beginning therefore stays the same, except that a user message after a user message is joined to it. The
// zero value changes nothing.
type Conversation struct {
	row   Row
	moved []moved
}

// moved is a part that became part of an earlier message, or a blob of a result in it.
type moved struct{ from, to place }

// A place is the position of a part: messages[message].parts[part] or, if blob is not negative, that of its blob.
type place struct{ message, part, blob int }

// NewConversation returns a Conversation without messages.
func (r *Row) NewConversation() Conversation { return Conversation{row: *r} }

// joinsTurns reports whether the destination refuses consecutive messages of one role.
func (c *Conversation) joinsTurns() bool { return c.row.System == one || c.row.Turns == alternate }

// Place maps the path of a part in the result of Join to its path in the messages given, such as "messages[0].parts[2]" to
// "messages[1].parts[0]". Other paths are returned as they are.
func (c *Conversation) Place(path string) string {
	if len(c.moved) == 0 {
		return path
	}
	message, rest, ok := text.CutIndex(path, "messages")
	part, rest, isPart := text.CutIndex(rest, ".parts")
	if !ok || !isPart {
		return path
	}
	blob, inner, isBlob := text.CutIndex(rest, ".blobs")
	for _, m := range c.moved {
		switch {
		case m.to == place{message, part, -1}:
			return m.from.path() + rest
		case isBlob && m.to == place{message, part, blob}:
			return m.from.path() + inner
		}
	}
	return path
}

// path returns the path of a part.
func (p place) path() string {
	return "messages[" + strconv.Itoa(p.message) + "].parts[" + strconv.Itoa(p.part) + "]"
}

// MovesSystem reports whether system messages after the first ones are sent as text of the user.
func (r *Row) MovesSystem() bool { return r.System == Leading || r.System == one }

// Roles returns the messages with the roles that the destination accepts. It appends the paths of changed members to changed and does not
// modify msgs. An assistant message for which sends returns false is ignored; if sends is nil, all are sent.
func (c *Conversation) Roles(msgs []lathe.Message, changed []string, sends func(*lathe.Message) bool) ([]lathe.Message, []string) {
	if !c.row.MovesSystem() && c.row.Developer != no {
		return msgs, changed
	}
	p := rewrite{out: msgs, changed: changed}
	lead := c.leading(msgs, sends)
	for i, m := range msgs {
		if m.Role == lathe.RoleDeveloper && c.row.Developer == no {
			m.Role = lathe.RoleSystem
		}
		stays := i < lead && (c.row.System != one || !slices.ContainsFunc(m.Parts, isA[lathe.Blob]))
		if isSystem(&m) && c.row.MovesSystem() && !stays {
			m, lead = asUser(m), 0 // later system messages do not stay either
		}
		if m.Role != msgs[i].Role {
			p.set(i, m)
			p.note(i, "role")
		}
	}
	return p.out, p.changed
}

// unsent reports whether m is an assistant message that sends excludes from the request.
func unsent(m *lathe.Message, sends func(*lathe.Message) bool) bool {
	return m.Role == lathe.RoleAssistant && sends != nil && !sends(m)
}

// leading returns the number of messages at the start among which system messages keep their role: only system messages and unsent ones
// precede them.
func (c *Conversation) leading(msgs []lathe.Message, sends func(*lathe.Message) bool) int {
	lead, lastSystem := 0, -1
	for lead < len(msgs) && (isSystem(&msgs[lead]) || unsent(&msgs[lead], sends)) {
		if isSystem(&msgs[lead]) {
			lastSystem = lead
		}
		lead++
	}
	if c.row.System != one || lastSystem < 0 {
		return lead
	}
	// Templates require a user message, and strict ones require it first: the last of the leading system messages is sent as one.
	if lead == len(msgs) || c.row.Turns == alternate && msgs[lead].Role != lathe.RoleUser {
		return lastSystem
	}
	return lead
}

// Join returns the messages in the form that the destination accepts, given the result of Roles. The result has as many messages as msgs;
// one that was joined to an earlier one has no role and is not sent. Join appends the paths of what is changed or left out to changed and
// does not modify msgs.
func (c *Conversation) Join(msgs []lathe.Message, changed []string) ([]lathe.Message, []string) {
	if !c.joinsTurns() && c.row.Documents != asText {
		return msgs, changed
	}
	p := joiner{Conversation: c, rewrite: rewrite{out: msgs, changed: changed}, head: -1, prev: -1}
	for i, m := range msgs {
		switch {
		case m.Role == "": // the message is not sent
		case c.row.System == one && isSystem(&m): // it is sent before all others
			p.addLeading(i, m)
		default:
			p.add(i, m)
		}
	}
	return p.out, p.changed
}

// A rewrite is the result of Roles or Join so far.
type rewrite struct {
	out     []lathe.Message
	copied  bool // out is a copy of the messages given
	changed []string
}

// set replaces message i of the result.
func (p *rewrite) set(i int, m lathe.Message) {
	if !p.copied {
		p.out, p.copied = slices.Clone(p.out), true
	}
	p.out[i] = m
}

// note appends the path of a member of message i to changed, unless the list has the path already or is full.
func (p *rewrite) note(i int, member string) {
	path := "messages[" + strconv.Itoa(i) + "]." + member
	if len(p.changed) < maxChanged && !slices.Contains(p.changed, path) {
		p.changed = append(p.changed, path)
	}
}

// withoutRaw returns part j of message i without Raw, which only the wire of the message defines. It returns nil if nothing is left.
func (p *rewrite) withoutRaw(i, j int, part lathe.Part) lathe.Part {
	b, ok := part.(lathe.Blob)
	if !ok || len(b.Raw) == 0 {
		return part
	}
	at := "parts[" + strconv.Itoa(j) + "]"
	if b.URL == "" && len(b.Data) == 0 {
		p.note(i, at)
		return nil
	}
	p.note(i, at+".raw")
	b.Raw = nil
	return b
}

// plain returns part j of message i in a form that a tool result may contain, and notes the paths of what it leaves out. It returns nil if
// nothing is left.
func (p *rewrite) plain(i, j int, part lathe.Part) lathe.Part {
	at := "parts[" + strconv.Itoa(j) + "]"
	switch part := part.(type) {
	case lathe.Text:
		p.noteMembers(i, at+".", part.Extra)
		part.Extra = nil
		return part
	case lathe.Blob:
		return part
	case lathe.Refusal:
		return lathe.Text{Text: part.Text}
	case lathe.Opaque, lathe.Reasoning, lathe.ToolCall, lathe.ToolResult: // these have no form in a user message or result
	}
	p.note(i, at)
	return nil
}

func (p *rewrite) noteMembers(i int, at string, members []lathe.Member) {
	for _, x := range members {
		p.note(i, at+x.Name)
	}
}

// A joiner is one call of Join.
type joiner struct {
	*Conversation
	rewrite
	head int        // index in out of the system message to which others are joined; -1: none
	prev int        // index in out of the last message that is sent; -1: none
	last lathe.Role // role of the last message that counts in the order of turns
}

// add adds message i, which is not one of the leading system messages, or joins it to the user or tool message before it.
func (p *joiner) add(i int, m lathe.Message) {
	if p.row.Documents == asText {
		if converted, ok := withDocuments(m); ok {
			m = converted
			p.set(i, m)
		}
	}
	if m.Role == lathe.RoleUser && p.last == lathe.RoleUser && p.joinsTurns() && p.prev >= 0 {
		before := p.out[p.prev].Role
		if before == lathe.RoleTool {
			p.note(i, "role")
		}
		if before == lathe.RoleTool || before == lathe.RoleUser {
			p.join(p.prev, i, m)
			return
		}
	}
	p.prev = i
	if p.row.Turns != alternate || m.Role != lathe.RoleTool && len(m.Calls()) == 0 {
		p.last = m.Role
	}
}

// addLeading adds system message i, which only system messages precede, or joins it to the first of them.
func (p *joiner) addLeading(i int, m lathe.Message) {
	if p.head >= 0 {
		p.join(p.head, i, m)
		return
	}
	p.head, p.prev = i, i
}

// join appends the parts of message i to the message at index to of out.
func (p *joiner) join(to, i int, m lathe.Message) {
	into := p.out[to]
	if m.Name != "" && m.Name != into.Name {
		p.note(i, "name")
	}
	p.noteMembers(i, "", m.Extra)
	into.Parts = slices.Clone(into.Parts)
	sameWire := wireOf(m.Wire) == wireOf(into.Wire)
	first := true // no part was appended yet
	for j, part := range m.Parts {
		if !sameWire {
			part = p.withoutRaw(i, j, part)
		}
		if part != nil && (!sameWire || into.Role == lathe.RoleTool) {
			part = p.plain(i, j, part)
		}
		t, isText := part.(lathe.Text)
		from := place{i, j, -1}
		switch {
		case part == nil, isText && t.Text == "" && len(t.Extra) == 0: // nothing is left
		case into.Role == lathe.RoleTool:
			p.intoResult(&into, to, from, part)
		default:
			p.appendPart(&into, to, from, part, first)
			first = false
		}
	}
	p.set(to, into)
	p.set(i, lathe.Message{})
}

// appendPart appends the part at from to message to. The text of the first part that is appended follows a blank line.
func (p *joiner) appendPart(into *lathe.Message, to int, from place, part lathe.Part, first bool) {
	last := len(into.Parts) - 1
	if t, isText := part.(lathe.Text); isText && first && last >= 0 {
		t.Text = "\n\n" + t.Text
		if before, ok := into.Parts[last].(lathe.Text); ok && len(before.Extra)+len(t.Extra) == 0 {
			before.Text += t.Text // some templates read only the first part
			into.Parts[last] = before
			return
		}
		part = t
	}
	p.moved = append(p.moved, moved{from, place{to, last + 1, -1}})
	into.Parts = append(into.Parts, part)
}

// intoResult adds the part at from to the content of the result in message to, because the order of turns does not allow a user message
// after it.
func (p *joiner) intoResult(into *lathe.Message, to int, from place, part lathe.Part) {
	result := slices.IndexFunc(into.Parts, isA[lathe.ToolResult])
	if result < 0 {
		return
	}
	r, _ := into.Parts[result].(lathe.ToolResult)
	switch part := part.(type) {
	case lathe.Text:
		r.Content += "\n\n" + part.Text
	case lathe.Blob:
		p.moved = append(p.moved, moved{from, place{to, result, len(r.Blobs)}})
		r.Blobs = append(slices.Clip(r.Blobs), part)
	default: // plain returns no others
	}
	into.Parts[result] = r
}

// asUser returns a system message as a user message whose texts are in <system> tags.
func asUser(m lathe.Message) lathe.Message {
	m.Role = lathe.RoleUser
	m.Parts = slices.Clone(m.Parts)
	before := ""
	for i, part := range m.Parts {
		if t, ok := part.(lathe.Text); ok && strings.TrimSpace(t.Text) != "" {
			t.Text = before + "<system>\n" + t.Text + "\n</system>"
			m.Parts[i], before = t, "\n\n" // some wires concatenate the texts of all parts
		}
	}
	return m
}

// withDocuments returns the message with its text documents converted to text; ok is false if it has none.
func withDocuments(m lathe.Message) (_ lathe.Message, ok bool) {
	copied := false
	for i, part := range m.Parts {
		switch p := part.(type) {
		case lathe.Blob, lathe.Opaque:
			text, ok := DocumentText(m.Wire, p)
			if !ok {
				continue
			}
			part = lathe.Text{Text: text}
		case lathe.ToolResult:
			converted, ok := resultWithDocuments(p)
			if !ok {
				continue
			}
			part = converted
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

// resultWithDocuments returns the result with its text documents added to its text; ok is false if it has none.
func resultWithDocuments(r lathe.ToolResult) (_ lathe.ToolResult, ok bool) {
	var others []lathe.Blob
	for i := range r.Blobs {
		text, isText := document(&r.Blobs[i])
		if !isText {
			others = append(others, r.Blobs[i])
			continue
		}
		if r.Content != "" {
			r.Content += "\n\n"
		}
		r.Content += text
	}
	if len(others) == len(r.Blobs) {
		return r, false
	}
	r.Blobs = others
	return r, true
}

// DocumentText returns the text of a part that is a text document, with its title; ok is false for other parts. of is the wire of the
// message that contains p.
func DocumentText(of lathe.Wire, p lathe.Part) (text string, ok bool) {
	switch p := p.(type) {
	case lathe.Blob:
		return document(&p)
	case lathe.Opaque:
		if of == lathe.WireMessages {
			return blocks(p)
		}
	default: // no document
	}
	return "", false
}

// document returns the text of a text document, with its title; ok is false if b is no text document.
func document(b *lathe.Blob) (text string, ok bool) {
	if text, ok = Text(b); !ok {
		return "", false
	}
	return marked(b.Name, text), true
}

// Text returns the content of a file that is text. Its media type decides, or the ending of its name if the type is empty or
// application/octet-stream.
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

// textNames are the endings of names of text files.
var textNames = rawjson.NewNames(".txt", ".md", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".log", ".html")

// marked returns the text of a document in a <document> tag with its title.
func marked(title, text string) string {
	if title != "" {
		title = " title=" + strconv.Quote(title)
	}
	return "<document" + title + ">\n" + text + "\n</document>\n"
}

// blocks returns the text of a document of the Messages API whose source is a list of text blocks; ok is false for other parts.
func blocks(part lathe.Opaque) (text string, ok bool) {
	content := rawjson.At(part.JSON, "source", "content")
	if rawjson.TextAt(part.JSON, "type") != "document" || rawjson.TextAt(part.JSON, "source", "type") != "content" {
		return "", false
	}
	var texts []string
	for el := range rawjson.Elements(content) {
		if rawjson.TextAt(el, "type") != "text" {
			return "", false
		}
		texts = append(texts, rawjson.TextAt(el, "text"))
	}
	if text = strings.Join(texts, "\n\n"); len(texts) == 0 {
		text = rawjson.Text(content)
	}
	return marked(rawjson.TextAt(part.JSON, "title"), text), text != ""
}

// wireOf returns the wire of a message; the default is OpenAI Chat.
func wireOf(w lathe.Wire) lathe.Wire {
	return cmp.Or(w, lathe.WireOpenAIChat)
}

func isSystem(m *lathe.Message) bool {
	return m.Role == lathe.RoleSystem || m.Role == lathe.RoleDeveloper
}

func isA[P lathe.Part](p lathe.Part) bool { _, ok := p.(P); return ok }
