package places

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
)

// The messages of a run differ from its request: they have another form, and the server has added, removed and replaced some. A placeFinder
// walks the JSON of the request and collects the paths of its parts by class. As parts of one class have the same order in the request and
// in the messages that were parsed from it, this gives the paths of the parsed parts; match then finds the parsed messages among those of
// the run:
//
//	request:  {"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking",…},{"type":"text",…}]}]}
//	parsed:   user(text), assistant(reasoning, text)
//	run:      user(text), assistant(call s), tool(s), assistant(reasoning, text)
//
// Here messages[3].parts[1] of the run has the path messages[1].content[1] in the request.

// A partClass is the kind of a part together with the role that wrote it. The class of content follows that of text.
type partClass uint8

const (
	userText partClass = iota
	userContent
	saidText
	saidContent
	thought
	toolCall
	toolResult
	partClasses
)

// content returns the class of content in a message whose text has class c.
func (c partClass) content() partClass { return c + 1 }

// Page is the pseudo wire of requests of chat pages.
const Page = lathe.Wire("page")

// A partIndex is the index of a message, and that of a part in the message.
type partIndex struct{ message, part int }

// A placed is a part of the client's request, with its path.
type placed struct {
	at string
	id string // id of a call, or of the call to which a result belongs
}

// places maps paths in the conversation of a run to paths in the client's request.
type places struct {
	parsed   []lathe.Message // messages read from the request, before the server added, removed or changed any
	messages []lathe.Message // messages of the run
	found    map[partIndex]string
	thoughts []placedThought // reasoning in the request
	replaced map[int]string  // by index of a message of the run: the place in the request that the message replaces
}

// A placedThought is reasoning in the client's request.
type placedThought struct {
	lathe.Reasoning
	at string
}

// A placeFinder finds the places of one conversation.
type placeFinder struct {
	*places
	client   [partClasses][]placed // parts of the request by class, in order
	parsedAt map[partIndex]string  // places of the parsed parts
	thinks   bool                  // assistant messages have reasoning in separate members
	stored   string                // member of the request that refers to stored messages; "": none
}

// find sets the places of the messages, which are those of a run that began with a request of wire w.
func (p *places) find(w lathe.Wire, body []byte) {
	f := &placeFinder{places: p}
	switch w {
	case lathe.WireMessages:
		f.walkContent(get(body, "system"), "system", userText)
		f.walkTurns(get(body, "messages"), "messages", "content")
	case lathe.WireResponses:
		if rawText(body, "previous_response_id") != "" {
			f.stored = "previous_response_id"
		}
		f.walkContent(get(body, "instructions"), "instructions", userText)
		f.walkContent(get(body, "input"), "input", userText)
	case lathe.WireGemini:
		for _, name := range [...]string{"systemInstruction", "system_instruction"} {
			f.walkContent(get(get(body, name), "parts"), name+".parts", userText)
		}
		f.walkTurns(get(body, "contents"), "contents", "parts")
	case Page:
		f.walkTurns(get(body, "messages"), "messages", "parts")
	default:
		f.thinks = true
		f.walkTurns(get(body, "messages"), "messages", "content")
	}
	f.match()
}

// Of returns a function that maps a path in the messages of a run, such as "messages[2].parts[0].cache_control", to the path in the
// client's request of wire w. It returns a path as it is if the place is not known. parsed are the messages that were read from the
// request, before the server added, removed or changed any. The function searches the request at its first call; it is used by one
// goroutine at a time.
func Of(w lathe.Wire, body []byte, parsed, messages []lathe.Message) func(path string) string {
	var p *places
	return func(path string) string {
		if p == nil {
			p = &places{parsed: parsed, messages: messages, found: map[partIndex]string{}, replaced: map[int]string{}}
			p.find(w, body)
		}
		return p.of(path)
	}
}

// classOf returns the class of a part in a message of a role; ok is false for an empty text.
func classOf(role lathe.Role, p lathe.Part) (class partClass, ok bool) {
	ofText := userText
	if role == lathe.RoleAssistant {
		ofText = saidText
	}
	switch p := p.(type) {
	case lathe.Text:
		return ofText, p.Text != ""
	case lathe.Refusal:
		return ofText, p.Text != ""
	case lathe.Blob, lathe.Opaque:
		return ofText.content(), true
	case lathe.Reasoning:
		return thought, true
	case lathe.ToolCall:
		return toolCall, true
	case lathe.ToolResult:
		return toolResult, true
	}
	return 0, false
}

// match finds the places of the messages of the run. A message with the parts of a parsed message is that one, since parts are never
// modified. Messages between two of these correspond to the parsed messages between them if there are as many. All others were added by the
// server.
func (p *placeFinder) match() {
	p.placeParsed()
	index := make(map[*lathe.Part]int, len(p.parsed))
	for k := range p.parsed {
		if parts := p.parsed[k].Parts; len(parts) > 0 {
			index[&parts[0]] = k
		}
	}
	run, parsed := 0, 0 // the first message of the run, and the first parsed one, after the last match
	for i := range p.messages {
		parts := p.messages[i].Parts
		if len(parts) == 0 {
			continue
		}
		k, known := index[&parts[0]]
		if !known || k < parsed {
			continue
		}
		p.matchBetween(span{run, i}, span{parsed, k})
		p.place(i, k)
		run, parsed = i+1, k+1
	}
	p.matchBetween(span{run, len(p.messages)}, span{parsed, len(p.parsed)})
	p.matchIDs()
}

// A span is a range of messages; end is exclusive.
type span struct{ first, end int }

// matchBetween finds the places of the messages of the run between two matches. parsed are the parsed messages between the same matches.
func (p *placeFinder) matchBetween(run, parsed span) {
	n := run.end - run.first
	if n != parsed.end-parsed.first {
		p.noteReplaced(run, parsed)
		return
	}
	for m := range n {
		i, k := run.first+m, parsed.first+m
		p.noteReplaced(span{i, i + 1}, span{k, k + 1})
		p.place(i, k)
	}
}

// noteReplaced records the place in the request that messages of the run replace. It is that of the parsed messages or, if none exist, the
// member that refers to the stored conversation. If they replace several assistant messages, the place is the list of messages.
func (p *placeFinder) noteReplaced(run, parsed span) {
	at := ""
	if parsed.first == parsed.end {
		at = p.stored
	}
	for k := parsed.first; k < parsed.end; k++ {
		element := p.elementOf(k)
		if at != "" && at != element {
			element, _, _ = strings.Cut(element, "[")
		}
		at = cmp.Or(element, at)
	}
	for i := run.first; i < run.end && at != ""; i++ {
		p.replaced[i] = at
	}
}

// elementOf returns the path of the element of the request that contains parsed message k; "" if it is not known or not of the assistant.
func (p *placeFinder) elementOf(k int) string {
	if p.parsed[k].Role != lathe.RoleAssistant {
		return ""
	}
	for j := range p.parsed[k].Parts {
		if element, _, ok := strings.Cut(p.parsedAt[partIndex{k, j}], "]"); ok {
			return element + "]"
		}
	}
	return ""
}

// place assigns the places of the parts of parsed message k to the parts of message i of the run, if both have as many parts.
func (p *placeFinder) place(i, k int) {
	m := &p.messages[i]
	if m.Role != p.parsed[k].Role || len(m.Parts) != len(p.parsed[k].Parts) {
		return
	}
	for j := range m.Parts {
		if at := p.parsedAt[partIndex{k, j}]; at != "" {
			p.found[partIndex{i, j}] = at
		}
	}
}

// placeParsed sets the places of the parts of the parsed messages. Calls and results are matched by id first; then, parts of one class have
// the same order there and in the request. If the request and the parsed messages have different numbers of parts of a class, those parts
// have no place.
func (p *placeFinder) placeParsed() {
	var parsed [partClasses][]partIndex
	for k := range p.parsed {
		for j, part := range p.parsed[k].Parts {
			if class, ok := classOf(p.parsed[k].Role, part); ok {
				parsed[class] = append(parsed[class], partIndex{k, j})
			}
		}
	}
	p.parsedAt = map[partIndex]string{}
	ids := p.byID()
	for class, parts := range parsed {
		client := p.client[class]
		for n, index := range parts {
			part := p.parsed[index.message].Parts[index.part]
			at := ids.take(part)
			if at == "" && len(client) == len(parts) {
				at = client[n].at
			}
			p.parsedAt[index] = at
			if r, ok := part.(lathe.Reasoning); ok && at != "" {
				p.thoughts = append(p.thoughts, placedThought{r, at})
			}
		}
	}
}

// placeIDs are the places of calls and of results in the client's request, by class and id.
type placeIDs [partClasses]map[string][]string

func (p *placeFinder) byID() (ids placeIDs) {
	for _, class := range [...]partClass{toolCall, toolResult} {
		ids[class] = map[string][]string{}
		for _, c := range p.client[class] {
			if c.id != "" {
				ids[class][c.id] = append(ids[class][c.id], c.at)
			}
		}
	}
	return ids
}

// take removes and returns the first place of a call or result with the id of part; "" if none is left.
func (ids *placeIDs) take(part lathe.Part) string {
	class, id := toolCall, ""
	switch part := part.(type) {
	case lathe.ToolCall:
		id = part.ID
	case lathe.ToolResult:
		class, id = toolResult, part.CallID
	default: // other parts have no id
	}
	list := ids[class][id]
	if len(list) == 0 {
		return ""
	}
	ids[class][id] = list[1:]
	return list[0]
}

// matchIDs finds the places of calls and results that match did not find, by their ids.
func (p *placeFinder) matchIDs() {
	ids := p.byID()
	for i := range p.messages {
		for j, part := range p.messages[i].Parts {
			if at := ids.take(part); at != "" && p.found[partIndex{i, j}] == "" {
				p.found[partIndex{i, j}] = at
			}
		}
	}
}

// walkTurns collects the parts of a list of messages. content is the name of the member that contains the content of a message.
func (p *placeFinder) walkTurns(list []byte, at, content string) {
	i := 0
	for el := range rawjson.Elements(list) {
		at := wire.Element(at, i)
		i++
		base := userText
		switch rawText(el, "role") {
		case "assistant", "model":
			base = saidText
		case "tool":
			p.addCall(toolResult, at, el)
			continue
		}
		if p.thinks && base == saidText {
			p.walkThoughts(el, at)
		}
		p.walkContent(get(el, content), at+"."+content, base)
		if rawText(el, "refusal") != "" {
			p.add(saidText, at+".refusal")
		}
		k := 0
		for call := range rawjson.Elements(get(el, "tool_calls")) {
			p.addCall(toolCall, wire.Element(at+".tool_calls", k), call)
			k++
		}
	}
}

// walkThoughts collects the reasoning of an assistant message of chat completions. Each of its members is one part, in the order of the
// members.
func (p *placeFinder) walkThoughts(message []byte, at string) {
	for key, v := range rawjson.Members(message) {
		for _, name := range [...]string{"reasoning_content", "reasoning", "thinking"} {
			if rawjson.EqualKey(key, name) && rawjson.Text(v) != "" {
				p.add(thought, at+"."+name)
			}
		}
	}
}

// walkContent collects the parts of content, which is a string or a list of parts, blocks or items.
func (p *placeFinder) walkContent(v []byte, at string, base partClass) {
	if rawjson.Kind(v) == '"' {
		if len(v) > len(`""`) {
			p.add(base, at)
		}
		return
	}
	k := 0
	for el := range rawjson.Elements(v) {
		p.walkPart(el, wire.Element(at, k), base)
		k++
	}
}

// walkPart collects the parts in a part, a block or an item. base is the class of its text.
func (p *placeFinder) walkPart(el []byte, at string, base partClass) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return get(el, name) != nil })
	}
	typ := rawText(el, "type")
	switch {
	case typ == "message", typ == "" && has("role"):
		base = userText
		if rawText(el, "role") == "assistant" {
			base = saidText
		}
		p.walkContent(get(el, "content"), at+".content", base)
	case typ == "tool_result", strings.HasSuffix(typ, "_output"), has("functionResponse", "function_response"):
		p.addCall(toolResult, at, el)
	case typ == "tool_use", typ == "function_call", typ == "custom_tool_call", has("functionCall", "function_call"):
		if has("thoughtSignature", "thought_signature") {
			p.add(thought, at)
		}
		p.addCall(toolCall, at, el)
	case typ == "reasoning":
		if rawText(el, "encrypted_content") != "" || hasText(get(el, "summary")) || hasText(get(el, "content")) {
			p.add(thought, at)
		}
	case typ == "thinking", typ == "redacted_thinking", string(get(el, "thought")) == "true":
		p.add(thought, at)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "" && has("text"):
		if rawText(el, "text")+rawText(el, "refusal") != "" {
			p.add(base, at)
		}
	case typ == "mcp_approval_response": // becomes no part
	case strings.HasPrefix(at, "input[") && !strings.Contains(at, "."): // an item that is no message was written by the model
		p.add(saidContent, at)
	default:
		p.add(base.content(), at)
	}
}

func (p *placeFinder) add(class partClass, at string) {
	p.client[class] = append(p.client[class], placed{at: at})
}

// addCall adds a call or a result. Its id is in raw or in the member of raw that contains the call or result.
func (p *placeFinder) addCall(class partClass, at string, raw []byte) {
	id := ""
	for _, obj := range [...][]byte{raw, get(raw, "functionCall"), get(raw, "function_call"), get(raw, "functionResponse"), get(raw, "function_response")} {
		for _, name := range [...]string{"tool_call_id", "tool_use_id", "call_id", "id"} {
			id = cmp.Or(id, rawText(obj, name))
		}
	}
	p.client[class] = append(p.client[class], placed{at, id})
}

// of returns the path in the client's request for a path in the messages of the run, such as "messages[2].parts[0].cache_control". A path
// whose place is not known is returned as it is.
func (p *places) of(path string) string {
	i, rest, ok := text.CutIndex(path, "messages")
	if !ok {
		return path
	}
	j, end, isPart := text.CutIndex(rest, ".parts")
	at, found := p.found[partIndex{i, j}]
	switch {
	case found && isPart:
		return at + end
	case found: // for a message: the element that contains its first part
		if element, _, ok := strings.Cut(at, "]"); ok {
			at = element + "]"
		}
		return at + rest
	}
	if isPart {
		at = p.thoughtAt(i, j)
	}
	if at != "" {
		return at + end
	}
	return cmp.Or(p.replaced[i], path)
}

// thoughtAt returns the place in the client's request of the reasoning in part j of message i of the run, if the server replaced the
// client's message by message i. It finds reasoning with the same data or text, and returns "" if the request has none.
func (p *places) thoughtAt(i, j int) (at string) {
	if i >= len(p.messages) || j >= len(p.messages[i].Parts) {
		return ""
	}
	r, _ := p.messages[i].Parts[j].(lathe.Reasoning)
	isSame := func(other lathe.Reasoning) bool {
		return r.Data != "" && r.Data == other.Data || r.Text != "" && r.Text == other.Text
	}
	before := 0 // number of earlier parts with the same reasoning
	for k := range i + 1 {
		for l, part := range p.messages[k].Parts {
			other, _ := part.(lathe.Reasoning)
			isEarlier := k < i || l < j
			if isEarlier && isSame(other) {
				before++
			}
		}
	}
	for _, t := range p.thoughts {
		switch {
		case isSame(t.Reasoning):
			at = t.at
			if before == 0 {
				return at
			}
			before--
		case at == "" && r.Text != "" && strings.Contains(t.Text, r.Text): // clients of chat completions join the reasoning of an answer
			at = t.at
		}
	}
	return at
}

// hasText reports whether one of the parts has a non-empty text.
func hasText(parts []byte) bool {
	for el := range rawjson.Elements(parts) {
		if rawText(el, "text") != "" {
			return true
		}
	}
	return false
}

func get(obj []byte, name string) []byte {
	if v, ok := rawjson.Get(obj, name); ok && string(v) != "null" {
		return v
	}
	return nil
}

func rawText(obj []byte, name string) string { return rawjson.Text(get(obj, name)) }
