package destination

import (
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

// moved is a part that became part of an earlier message: part from[1] of message from[0] is part to[1] of message to[0], or its blob
// to[2] if that is not negative.
type moved struct {
	to   [3]int
	from [2]int
}

// NewConversation returns a Conversation without messages.
func (r *Row) NewConversation() Conversation { return Conversation{row: *r} }

// order reports whether the destination refuses consecutive messages of one role.
func (c *Conversation) order() bool { return c.row.System == one || c.row.Turns == alternate }

// Place maps the path of a part in the result of Join to its path in the messages given, such as "messages[0].parts[2]" to
// "messages[1].parts[0]". Other paths are returned as they are.
func (c *Conversation) Place(path string) string {
	if len(c.moved) == 0 {
		return path
	}
	to := [3]int{2: -1}
	message, rest, ok := text.CutIndex(path, "messages")
	part, rest, isPart := text.CutIndex(rest, ".parts")
	if !ok || !isPart {
		return path
	}
	to[0], to[1] = message, part
	blob, inner, isBlob := text.CutIndex(rest, ".blobs")
	for _, m := range c.moved {
		switch {
		case m.to == to:
			return partPath(m.from[0], m.from[1]) + rest
		case isBlob && m.to == [3]int{message, part, blob}:
			return partPath(m.from[0], m.from[1]) + inner
		}
	}
	return path
}

func partPath(message, part int) string {
	return "messages[" + strconv.Itoa(message) + "].parts[" + strconv.Itoa(part) + "]"
}

// MovesSystem reports whether system messages after the first ones are sent as text of the user.
func (r *Row) MovesSystem() bool { return r.System == Leading || r.System == one }

// Roles returns the messages with the roles that the destination accepts. It appends the paths of changed members to changed and does not
// modify msgs. An assistant message for which sends returns false is ignored; if sends is nil, all are sent.
func (c *Conversation) Roles(msgs []lathe.Message, changed []string, sends func(*lathe.Message) bool) ([]lathe.Message, []string) {
	if !c.row.MovesSystem() && c.row.Developer != no {
		return msgs, changed
	}
	p := pass{out: msgs, changed: changed}
	lead := c.leading(msgs, sends)
	for i, m := range msgs {
		if m.Role == lathe.RoleDeveloper && c.row.Developer == no {
			m.Role = lathe.RoleSystem
		}
		if isSystem(&m) && c.row.MovesSystem() && (i >= lead || c.row.System == one && hasBlob(&m)) {
			m, lead = asUser(m), 0
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
	lead, last := 0, -1 // last is the last system message
	for lead < len(msgs) && (isSystem(&msgs[lead]) || unsent(&msgs[lead], sends)) {
		if isSystem(&msgs[lead]) {
			last = lead
		}
		lead++
	}
	// Templates require a user message, and strict ones require it first: the last of the leading system messages is sent as one.
	if c.row.System == one && last >= 0 && (lead == len(msgs) || c.row.Turns == alternate && msgs[lead].Role != lathe.RoleUser) {
		return last
	}
	return lead
}

// Join returns the messages in the form that the destination accepts, given the result of Roles. The result has as many messages as msgs;
// one that was joined to an earlier one has no role and is not sent. Join appends the paths of what is changed or left out to changed and
// does not modify msgs.
func (c *Conversation) Join(msgs []lathe.Message, changed []string) ([]lathe.Message, []string) {
	if !c.order() && c.row.Documents != asText {
		return msgs, changed
	}
	p := pass{Conversation: c, out: msgs, changed: changed, head: -1, prev: -1}
	for i, m := range msgs {
		switch {
		case m.Role == "": // the message is not sent
		case c.row.System == one && isSystem(&m): // it is sent before all others
			p.lead(i, m)
		default:
			p.follow(i, m)
		}
	}
	return p.out, p.changed
}

// A pass is one call of Roles or Join.
type pass struct {
	*Conversation
	out     []lathe.Message
	copied  bool
	changed []string
	head    int        // index in out of the system message to which others are joined; -1: none
	prev    int        // index in out of the last message that is sent; -1: none
	last    lathe.Role // role of the last message that counts in the order of turns
}

func (p *pass) set(i int, m lathe.Message) {
	if !p.copied {
		p.out, p.copied = slices.Clone(p.out), true
	}
	p.out[i] = m
}

// note appends the path of a member of message i to changed, unless the list has the path already or is full.
func (p *pass) note(i int, member string) {
	path := "messages[" + strconv.Itoa(i) + "]." + member
	if len(p.changed) < maxChanged && !slices.Contains(p.changed, path) {
		p.changed = append(p.changed, path)
	}
}

// follow adds message i, which is not one of the leading system messages, or joins it to the user or tool message before it.
func (p *pass) follow(i int, m lathe.Message) {
	if p.row.Documents == asText {
		if with, ok := withDocuments(m); ok {
			m = with
			p.set(i, m)
		}
	}
	if m.Role == lathe.RoleUser && p.order() && p.last == lathe.RoleUser && p.prev >= 0 {
		if to := p.out[p.prev].Role; to == lathe.RoleUser || to == lathe.RoleTool {
			if to == lathe.RoleTool {
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

// lead adds system message i, which only system messages precede, or joins it to the first of them.
func (p *pass) lead(i int, m lathe.Message) {
	if p.head >= 0 {
		p.join(p.head, i, m)
		return
	}
	p.head, p.prev = i, i
}

// join appends the parts of message i to the message at index to of out.
func (p *pass) join(to, i int, m lathe.Message) {
	into := p.out[to]
	if m.Name != "" && m.Name != into.Name {
		p.note(i, "name")
	}
	p.noteMembers(i, "", m.Extra)
	into.Parts = slices.Clone(into.Parts)
	plain, apart := wireOf(m.Wire) != wireOf(into.Wire), true // apart: a blank line must separate the texts
	for j, part := range m.Parts {
		if plain || into.Role == lathe.RoleTool {
			var ok bool
			if part, ok = p.plain(i, j, part, plain); !ok {
				continue
			}
		}
		t, isText := part.(lathe.Text)
		switch {
		case isText && t.Text == "" && len(t.Extra) == 0:
			continue
		case into.Role == lathe.RoleTool:
			p.intoResult(&into, to, i, j, part)
			continue
		case isText && apart && len(into.Parts) > 0:
			t.Text = "\n\n" + t.Text
			last := len(into.Parts) - 1
			if before, ok := into.Parts[last].(lathe.Text); ok && len(before.Extra)+len(t.Extra) == 0 {
				before.Text += t.Text // some templates read only the first part
				into.Parts[last], apart = before, false
				continue
			}
			part = t
		}
		apart = false
		p.moved = append(p.moved, moved{[3]int{to, len(into.Parts), -1}, [2]int{i, j}})
		into.Parts = append(into.Parts, part)
	}
	p.set(to, into)
	p.set(i, lathe.Message{})
}

// plain returns part j of message i in a form that a tool result may contain and, if alien is set, without what only the wire of the
// message defines. It notes the paths of what it leaves out. ok is false if nothing is left.
func (p *pass) plain(i, j int, part lathe.Part, alien bool) (_ lathe.Part, ok bool) {
	at := "parts[" + strconv.Itoa(j) + "]"
	switch part := part.(type) {
	case lathe.Text:
		p.noteMembers(i, at+".", part.Extra)
		part.Extra = nil
		return part, true
	case lathe.Blob:
		if alien && len(part.Raw) > 0 {
			if part.Raw = nil; part.URL == "" && len(part.Data) == 0 {
				break
			}
			p.note(i, at+".raw")
		}
		return part, true
	case lathe.Refusal:
		return lathe.Text{Text: part.Text}, true
	case lathe.Opaque, lathe.Reasoning, lathe.ToolCall, lathe.ToolResult: // these have no form in a user message or result
	}
	p.note(i, at)
	return nil, false
}

func (p *pass) noteMembers(i int, at string, members []lathe.Member) {
	for _, x := range members {
		p.note(i, at+x.Name)
	}
}

// intoResult adds part j of message i to the content of the result in message to, because the order of turns does not allow a user message
// after it.
func (p *pass) intoResult(into *lathe.Message, to, i, j int, part lathe.Part) {
	k := slices.IndexFunc(into.Parts, func(part lathe.Part) bool { _, ok := part.(lathe.ToolResult); return ok })
	if k < 0 {
		return
	}
	r, _ := into.Parts[k].(lathe.ToolResult)
	switch part := part.(type) {
	case lathe.Text:
		r.Content += "\n\n" + part.Text
	case lathe.Blob:
		p.moved = append(p.moved, moved{[3]int{to, k, len(r.Blobs)}, [2]int{i, j}})
		r.Blobs = append(slices.Clip(r.Blobs), part)
	default: // plain returns no others
	}
	into.Parts[k] = r
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
	case lathe.Text, lathe.Reasoning, lathe.Refusal, lathe.ToolCall, lathe.ToolResult: // no document
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
