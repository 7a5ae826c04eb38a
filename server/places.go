package server

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Models receive a conversation in the internal form, and the places of what their wires cannot express are places in it. A client
// needs the place in its own request. The codecs do not record it, since it is needed for few requests: places walks the client's body
// and the messages of the run side by side. Parts of one class have the same order in both.

// A partClass is what a part is and who wrote it.
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

// pageWire stands for the requests of chat pages.
const pageWire = lathe.Wire("page")

// A placed is a part of the client's request.
type placed struct {
	at  string
	raw []byte
	id  string // of a call, or of the call that a result answers
}

// places finds the places in a client's request of parts of the conversation of a run.
type places struct {
	client [partClasses][]placed
	run    [partClasses][][2]int
	found  map[[2]int]string
	parts  []lathe.Message
}

// newPlaces returns the places of the messages of a run in the body of the request that they came from.
func newPlaces(w lathe.Wire, body []byte, messages []lathe.Message) *places {
	p := &places{found: map[[2]int]string{}, parts: messages}
	switch w {
	case lathe.WireMessages:
		p.walkContent(get(body, "system"), "system", userText)
		p.walkTurns(get(body, "messages"), "messages", "content")
	case lathe.WireResponses:
		p.walkContent(get(body, "instructions"), "instructions", userText)
		p.walkContent(get(body, "input"), "input", userText)
	case lathe.WireGemini:
		for _, name := range [...]string{"systemInstruction", "system_instruction"} {
			p.walkContent(get(get(body, name), "parts"), name+".parts", userText)
		}
		p.walkTurns(get(body, "contents"), "contents", "parts")
	case pageWire:
		p.walkTurns(get(body, "messages"), "messages", "parts")
	default:
		p.walkTurns(get(body, "messages"), "messages", "content")
	}
	for i := range messages {
		for j, part := range messages[i].Parts {
			if class, ok := classOf(messages[i].Role, part); ok {
				p.run[class] = append(p.run[class], [2]int{i, j})
			}
		}
	}
	for class := range partClasses {
		p.match(class)
	}
	return p
}

// placesOf returns the method of of newPlaces, which is called only if a place is asked for.
func placesOf(w lathe.Wire, body []byte, messages []lathe.Message) func(path string) string {
	return func(path string) string { return newPlaces(w, body, messages).of(path) }
}

// classOf returns the class of a part; ok is false for an empty text.
func classOf(role lathe.Role, p lathe.Part) (class partClass, ok bool) {
	said := partClass(0)
	if role == lathe.RoleAssistant {
		said = saidText - userText
	}
	switch p := p.(type) {
	case lathe.Text:
		return userText + said, p.Text != ""
	case lathe.Refusal:
		return userText + said, p.Text != ""
	case lathe.Blob, lathe.Opaque:
		return userContent + said, true
	case lathe.Reasoning:
		return thought, true
	case lathe.ToolCall:
		return toolCall, true
	case lathe.ToolResult:
		return toolResult, true
	}
	return 0, false
}

// match finds the places of the parts of a class. If the server added or removed parts of the class, those alone are found that the
// run has as the client sent them.
func (p *places) match(class partClass) {
	client, run := p.client[class], p.run[class]
	if class == toolCall || class == toolResult {
		p.matchIDs(client, run)
	}
	if len(client) == len(run) {
		for n, at := range run {
			if p.found[at] == "" {
				p.found[at] = client[n].at
			}
		}
		return
	}
	for _, at := range run {
		o, ok := p.parts[at[0]].Parts[at[1]].(lathe.Opaque)
		for n := 0; ok && n < len(client); n++ {
			if string(client[n].raw) == string(o.JSON) {
				p.found[at], client = client[n].at, client[n+1:]
				break
			}
		}
	}
}

// matchIDs finds the places of calls or results by their ids: results may have another order than in the request.
func (p *places) matchIDs(client []placed, run [][2]int) {
	byID := map[string][]string{}
	for _, c := range client {
		if c.id != "" {
			byID[c.id] = append(byID[c.id], c.at)
		}
	}
	for _, at := range run {
		id := ""
		switch part := p.parts[at[0]].Parts[at[1]].(type) {
		case lathe.ToolCall:
			id = part.ID
		case lathe.ToolResult:
			id = part.CallID
		default: // is of another class
		}
		if same := byID[id]; len(same) > 0 {
			p.found[at], byID[id] = same[0], same[1:]
		}
	}
}

// walkTurns reads a list of messages whose content is the member content.
func (p *places) walkTurns(list []byte, at, content string) {
	i := 0
	for el := range elements(list) {
		at := wire.Element(at, i)
		i++
		base := userText
		switch rawText(el, "role") {
		case "assistant", "model":
			base = saidText
		case "tool":
			p.add(toolResult, at, el)
			continue
		}
		for _, name := range [...]string{"reasoning_content", "reasoning", "thinking"} {
			if base == saidText && rawText(el, name) != "" {
				p.add(thought, at+"."+name, el)
			}
		}
		p.walkContent(get(el, content), at+"."+content, base)
		if rawText(el, "refusal") != "" {
			p.add(saidText, at+".refusal", el)
		}
		k := 0
		for call := range elements(get(el, "tool_calls")) {
			p.add(toolCall, wire.Element(at+".tool_calls", k), call)
			k++
		}
	}
}

// walkContent reads content: a string, or a list of parts, blocks or items.
func (p *places) walkContent(v []byte, at string, base partClass) {
	if wire.Kind(v) == '"' {
		if len(v) > len(`""`) {
			p.add(base, at, v)
		}
		return
	}
	k := 0
	for el := range elements(v) {
		p.walkPart(el, wire.Element(at, k), base)
		k++
	}
}

// walkPart reads a part, a block or an item. base is the class of its text.
func (p *places) walkPart(el []byte, at string, base partClass) {
	has := func(names ...string) bool {
		for _, name := range names {
			if get(el, name) != nil {
				return true
			}
		}
		return false
	}
	typ := rawText(el, "type")
	switch {
	case typ == "message", typ == "" && has("role"):
		if base = userText; rawText(el, "role") == "assistant" {
			base = saidText
		}
		p.walkContent(get(el, "content"), at+".content", base)
	case typ == "tool_result", strings.HasSuffix(typ, "_output"), has("functionResponse", "function_response"):
		p.add(toolResult, at, el)
	case typ == "tool_use", typ == "function_call", typ == "custom_tool_call", has("functionCall", "function_call"):
		if has("thoughtSignature", "thought_signature") {
			p.add(thought, at, el)
		}
		p.add(toolCall, at, el)
	case typ == "thinking", typ == "redacted_thinking", typ == "reasoning", string(get(el, "thought")) == "true":
		p.add(thought, at, el)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "" && has("text"):
		if rawText(el, "text")+rawText(el, "refusal") != "" {
			p.add(base, at, el)
		}
	case typ == "mcp_approval_response":
	case strings.HasPrefix(at, "input[") && !strings.Contains(at, "."): // an item that is no message is one of the model
		p.add(saidContent, at, el)
	default:
		p.add(base+1, at, el)
	}
}

func (p *places) add(class partClass, at string, raw []byte) {
	id := ""
	for _, inner := range [...]string{"", "functionCall", "function_call", "functionResponse", "function_response"} {
		obj := raw
		if inner != "" {
			obj = get(raw, inner)
		}
		for _, name := range [...]string{"tool_call_id", "tool_use_id", "call_id", "id"} {
			if class >= toolCall && id == "" {
				id = rawText(obj, name)
			}
		}
	}
	p.client[class] = append(p.client[class], placed{at, raw, id})
}

// of returns the place in the client's request for a path in the messages of the run, such as "messages[2].parts[0].cache_control". A
// path whose place is not known is returned as it is.
func (p *places) of(path string) string {
	i, rest, ok := cutIndex(path, "messages[")
	if !ok {
		return path
	}
	j, end, isPart := cutIndex(rest, ".parts[")
	at, found := p.found[[2]int{i, j}]
	switch {
	case found && isPart:
		return at + end
	case found: // of the message: the element that its first part is in
		if element, _, ok := strings.Cut(at, "]"); ok {
			at = element + "]"
		}
		return at + rest
	}
	return path
}

// cutIndex cuts the prefix, a number and a bracket from a path.
func cutIndex(path, prefix string) (n int, rest string, ok bool) {
	digits, rest, ok := strings.Cut(strings.TrimPrefix(path, prefix), "]")
	if !ok || !strings.HasPrefix(path, prefix) {
		return 0, path, false
	}
	n, err := strconv.Atoi(digits)
	return n, rest, err == nil
}

func get(obj []byte, name string) []byte {
	if wire.Kind(obj) != '{' {
		return nil
	}
	if v, ok := rawjson.Get(obj, name); ok && string(v) != "null" {
		return v
	}
	return nil
}

func rawText(obj []byte, name string) string { return rawjson.Text(get(obj, name)) }

func elements(v []byte) func(yield func([]byte) bool) {
	if wire.Kind(v) != '[' {
		return func(func([]byte) bool) {}
	}
	return rawjson.Elements(v)
}
