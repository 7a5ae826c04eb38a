package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// This file is the part of a simulated model that reads and writes calls as text, as a model without native calls does: readText reads the
// tools, calls and results in the text of a request, and writeText writes the calls of the answer.

// writable returns the dialects that a model can write: all but auto, which only selects a parser.
func writable() []string {
	return slices.DeleteFunc(dialect.Names(), func(name string) bool { return name == "auto" })
}

func findDialect(name string) (*dialect.Dialect, error) {
	if d, ok := dialect.Lookup(name); ok && slices.Contains(writable(), name) {
		return d, nil
	}
	return nil, fmt.Errorf("no dialect %q for a simulated model; there are %s", name, strings.Join(writable(), ", "))
}

// readText returns req with the tools, calls and results that its text contains as parts. Tools, calls and results that are parts already
// stay: a server may receive tools and still write its calls as text.
func readText(d *dialect.Dialect, req *lathe.Request) *lathe.Request {
	out := *req
	if len(out.Tools) == 0 {
		out.Tools = readTools(req.Messages)
	}
	out.Messages = make([]lathe.Message, 0, len(req.Messages))
	calls := 0
	var open []writtenCall // calls without a result
	for _, m := range req.Messages {
		switch m.Role {
		case lathe.RoleAssistant:
			calls += len(m.Calls())
			m, open = readCalls(d, m, out.Tools, &calls)
		case lathe.RoleUser:
			text, asks := strings.CutSuffix(m.Text(), lathe.DefaultFixEmptyFinalText)
			if results := readResults(d, text, open); len(results) > 0 {
				out.Messages = append(out.Messages, results...)
				open = nil
				if asks {
					out.Messages = append(out.Messages, lathe.User(lathe.DefaultFixEmptyFinalText))
				}
				continue
			}
		case lathe.RoleTool, lathe.RoleSystem, lathe.RoleDeveloper:
		}
		out.Messages = append(out.Messages, m)
	}
	return &out
}

// A writtenCall is a call in the text of the history.
type writtenCall struct {
	lathe.ToolCall        // ID is the id that the call gets
	textID         string // the id in the text; "" if it has none
}

// readCalls returns an assistant message with the calls in its text as parts, and these calls. Calls that are parts already stay.
func readCalls(d *dialect.Dialect, m lathe.Message, tools []*lathe.ToolSpec, calls *int) (lathe.Message, []writtenCall) {
	p := d.NewParser(&dialect.Options{Tools: tools, AllowDeprecatedSyntax: true})
	c := dialect.Collector{}
	others := []lathe.Part{} // parts that are not text
	for _, part := range m.Parts {
		if t, ok := part.(lathe.Text); ok {
			c.AddAll(p.Append(nil, t.Text))
		} else {
			others = append(others, part)
		}
	}
	last, _ := p.Flush(nil) // truncated calls stay truncated
	c.AddAll(last)
	parsed := c.Message()
	var open []writtenCall
	for i, part := range parsed.Parts {
		if call, ok := part.(lathe.ToolCall); ok {
			*calls++
			textID := call.ID
			call.ID = "call_" + itoa(*calls)
			parsed.Parts[i] = call
			open = append(open, writtenCall{call, textID})
		}
	}
	m.Parts = append(parsed.Parts, others...)
	return m, open
}

// readResults returns the results of the open calls in the text that follows them. To find the markup of a result, it writes a result
// with known content in the dialect and searches for the text around that content.
func readResults(d *dialect.Dialect, text string, open []writtenCall) []lathe.Message {
	var out []lathe.Message
	for _, c := range open {
		content, rest, ok := readResult(d, text, &c)
		if !ok {
			break
		}
		text = rest
		out = append(out, lathe.Message{Role: lathe.RoleTool,
			Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: content}}})
	}
	return out
}

// Contents with which a result is written to find its markup: dialects may write JSON without quotes.
const (
	jsonProbe = `{"probe":7}`
	textProbe = "probe7"
)

// readResult returns the content of the result of c, which is in text, and the text after it.
func readResult(d *dialect.Dialect, text string, c *writtenCall) (content, rest string, ok bool) {
	for _, failed := range []bool{false, true} {
		for _, probe := range []string{jsonProbe, textProbe} {
			r := lathe.ToolResult{CallID: c.textID, Name: c.Name, Content: probe, IsError: failed}
			before, after, whole := strings.Cut(string(d.AppendResult(nil, r)), probe)
			_, tail, found := strings.Cut(text, before)
			if !whole || !found {
				continue
			}
			if content, rest, ok = cutContent(tail, before, after, probe); ok {
				return content, rest, true
			}
		}
	}
	return "", "", false
}

// cutContent returns the content at the beginning of tail, and the text after it. The dialect writes probe between before and after.
func cutContent(tail, before, after, probe string) (content, rest string, ok bool) {
	switch {
	case strings.HasSuffix(before, `"`): // as a JSON string
		content, rest, ok = cutJSON(`"` + tail)
		return rawjson.Text([]byte(content)), rest, ok
	case probe == jsonProbe: // as JSON
		content, rest, ok = cutJSON(tail)
		return content, rest, ok && strings.HasPrefix(rest, after)
	case strings.TrimSpace(after) == "": // as text to the end
		return strings.TrimSpace(tail), "", true
	}
	return strings.Cut(tail, after)
}

// cutJSON returns the JSON value at the beginning of text, and the text after it. ok is false if text does not begin with one.
func cutJSON(text string) (value, rest string, ok bool) {
	end, err := rawjson.Scan([]byte(text), 0)
	return text[:end], text[end:], err == nil
}

// readTools returns the definitions of tools in the system text, in one of three forms: the scaffold, a TypeScript namespace, or JSON
// objects with a name and a schema.
func readTools(messages []lathe.Message) []*lathe.ToolSpec {
	var text strings.Builder
	for _, m := range messages {
		if r := m.Role; r == lathe.RoleSystem || r == lathe.RoleDeveloper {
			text.WriteString(m.Text())
			text.WriteByte('\n')
		}
	}
	s := text.String()
	if _, list, ok := strings.Cut(s, "TOOLS:\n"); ok {
		list, _, _ = strings.Cut(list, "\nEND TOOLS")
		return readScaffold(list)
	}
	if _, list, ok := strings.Cut(s, "namespace functions {\n"); ok {
		list, _, _ = strings.Cut(list, "\n} // namespace functions")
		return readNamespace(list)
	}
	return readDefinitions([]byte(s))
}

func readScaffold(list string) []*lathe.ToolSpec {
	var tools []*lathe.ToolSpec
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "- name: "); ok {
			tools = append(tools, &lathe.ToolSpec{Name: name})
			continue
		}
		if len(tools) == 0 {
			continue
		}
		t := tools[len(tools)-1]
		if text, ok := strings.CutPrefix(line, "description: "); ok {
			t.Description = text
		} else if schema, ok := strings.CutPrefix(line, "schema: "); ok {
			t.Schema = []byte(schema)
		}
	}
	return tools
}

// readDefinitions returns the tools that JSON objects with a name and a schema in text define.
func readDefinitions(text []byte) []*lathe.ToolSpec {
	var tools []*lathe.ToolSpec
	for i := 0; i < len(text); i++ {
		n := bytes.IndexByte(text[i:], '{')
		if n < 0 {
			break
		}
		i += n
		end, err := rawjson.Scan(text, i)
		if err != nil || rawjson.Check(text[i:end], rawjson.Limits{}) != nil {
			continue
		}
		name, schema := rawjson.At(text[i:end], "name"), rawjson.At(text[i:end], "parameters")
		if schema == nil {
			schema = rawjson.At(text[i:end], "input_schema")
		}
		if rawjson.Kind(name) != '"' || rawjson.Kind(schema) != '{' {
			continue // an inner object may be a definition
		}
		tools = append(tools, &lathe.ToolSpec{Name: rawjson.Text(name), Description: rawjson.TextAt(text[i:end], "description"), Schema: bytes.Clone(schema)})
		i = end - 1
	}
	return tools
}

// writeText writes the turn's calls as text, and in harmony also its reasoning and text.
func writeText(d *dialect.Dialect, t *Turn) {
	reason := t.finish()
	text := t.Text
	harmony := d.Name() == "harmony"
	if harmony {
		text = harmonyText(t)
		t.Reasoning = ""
	}
	for i, c := range t.Calls {
		call := string(d.AppendCall(nil, c))
		switch {
		case harmony && text == "":
			call = strings.TrimPrefix(call, "assistant") // the prompt contains it
		case harmony:
			text += "<|start|>"
		case i == 0 && text != "":
			text += "\n"
		}
		if c.Incomplete {
			call = call[:runeCut(call, len(call)*2/3)]
		}
		text += call
	}
	t.Text, t.Calls = text, nil
	if reason == lathe.FinishToolCalls {
		reason = lathe.FinishStop // the server does not recognize calls
	}
	t.Finish = reason
}

// harmonyText returns reasoning and text on their channels. The prompt ends with "<|start|>assistant".
func harmonyText(t *Turn) string {
	text := ""
	message := func(channel, content string) {
		if content == "" {
			return
		}
		if text != "" {
			text += "<|start|>assistant"
		}
		text += "<|channel|>" + channel + "<|message|>" + content + "<|end|>"
	}
	message("analysis", t.Reasoning)
	if len(t.Calls) > 0 {
		message("commentary", t.Text)
	} else if strings.HasPrefix(t.Text, "<|") {
		text += t.Text // the script contains harmony
	} else {
		message("final", t.Text)
	}
	return text
}
