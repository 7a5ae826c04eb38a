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

// unknownDialectError is the error for a simulated model with the name of a dialect that does not exist.
type unknownDialectError struct{ Name string }

// Error returns a text that lists the dialects.
func (e *unknownDialectError) Error() string {
	return fmt.Sprintf("no dialect %q for a simulated model; there are %s", e.Name, strings.Join(writable(), ", "))
}

// writable returns the dialects that a model can write: all but auto, which only selects a parser.
func writable() []string {
	return slices.DeleteFunc(dialect.Names(), func(name string) bool { return name == "auto" })
}

func findDialect(name string) (*dialect.Dialect, error) {
	if d, ok := dialect.Lookup(name); ok && slices.Contains(writable(), name) {
		return d, nil
	}
	return nil, &unknownDialectError{name}
}

// hear returns req with the tools, calls and results that its text contains as parts. Tools, calls and results that are parts already
// stay: a server may receive tools and still write its calls as text.
func hear(d *dialect.Dialect, req *lathe.Request) *lathe.Request {
	out := *req
	if len(out.Tools) == 0 {
		out.Tools = readTools(req.Messages)
	}
	out.Messages = make([]lathe.Message, 0, len(req.Messages))
	calls := 0
	var open []heardCall // calls without a result
	for _, m := range req.Messages {
		switch m.Role {
		case lathe.RoleAssistant:
			calls += len(m.Calls())
			m, open = hearCalls(d, m, out.Tools, &calls)
		case lathe.RoleUser:
			text, asks := strings.CutSuffix(m.Text(), lathe.DefaultFixEmptyFinalText)
			if results := hearResults(d, text, open); len(results) > 0 {
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

// A heardCall is a call of the history. written is its id in the text, and ID the one that it gets.
type heardCall struct {
	lathe.ToolCall
	written string
}

// hearCalls returns an assistant message with the calls in its text as parts, and these calls. Calls that are parts already stay.
func hearCalls(d *dialect.Dialect, m lathe.Message, tools []*lathe.ToolSpec, calls *int) (lathe.Message, []heardCall) {
	p := d.NewParser(&dialect.Options{Tools: tools, AllowDeprecatedSyntax: true})
	c := dialect.Collector{}
	rest := []lathe.Part{}
	for _, part := range m.Parts {
		if t, ok := part.(lathe.Text); ok {
			c.AddAll(p.Append(nil, t.Text))
		} else {
			rest = append(rest, part)
		}
	}
	last, _ := p.Flush(nil) // truncated calls stay truncated
	c.AddAll(last)
	heard := c.Message()
	var open []heardCall
	for i, part := range heard.Parts {
		if call, ok := part.(lathe.ToolCall); ok {
			*calls++
			h := heardCall{call, call.ID}
			h.ID = "call_" + itoa(*calls)
			heard.Parts[i] = h.ToolCall
			open = append(open, h)
		}
	}
	m.Parts = append(heard.Parts, rest...)
	return m, open
}

// hearResults returns the results of the open calls in the text that follows them. To find the markup of a result, it writes a result
// with known content in the dialect and searches for the text around that content.
func hearResults(d *dialect.Dialect, text string, open []heardCall) []lathe.Message {
	var out []lathe.Message
	for _, c := range open {
		content, rest, ok := hearResult(d, text, &c)
		if !ok {
			break
		}
		text = rest
		out = append(out, lathe.Message{Role: lathe.RoleTool,
			Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: content}}})
	}
	return out
}

// probes are contents with which a result is written to find its markup: one is JSON, for dialects that write JSON results unquoted, and
// one is text.
var probes = []string{`{"probe":7}`, "probe7"}

func hearResult(d *dialect.Dialect, text string, c *heardCall) (content, rest string, ok bool) {
	for _, failed := range []bool{false, true} {
		for _, probe := range probes {
			r := lathe.ToolResult{CallID: c.written, Name: c.Name, Content: probe, IsError: failed}
			before, after, whole := strings.Cut(string(d.AppendResult(nil, r)), probe)
			_, tail, found := strings.Cut(text, before)
			if !whole || !found {
				continue
			}
			if content, rest, ok = upTo(tail, before, after, probe[0] == '{'); ok {
				return content, rest, true
			}
		}
	}
	return "", "", false
}

// upTo returns the content of a result at the beginning of text, up to the markup after it, and the text that follows.
func upTo(text, before, after string, isJSON bool) (content, rest string, ok bool) {
	if strings.HasSuffix(before, `"`) {
		raw := []byte(`"` + text)
		end, err := rawjson.Scan(raw, 0)
		if err != nil {
			return "", "", false
		}
		return rawjson.Text(raw[:end]), text[end-1:], true
	}
	if isJSON {
		end, err := rawjson.Scan([]byte(text), 0)
		if err != nil || !strings.HasPrefix(text[end:], after) {
			return "", "", false
		}
		return text[:end], text[end:], true
	}
	if strings.TrimSpace(after) == "" {
		return strings.TrimSpace(text), "", true
	}
	return strings.Cut(text, after)
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

// speak writes the turn's calls as text, and in harmony also its reasoning and text.
func speak(d *dialect.Dialect, t *Turn) {
	reason := t.finish()
	text := t.Text
	if d.Name() == "harmony" {
		text = speakHarmony(t)
		t.Reasoning = ""
	}
	for i, c := range t.Calls {
		if text != "" && i == 0 && d.Name() != "harmony" {
			text += "\n"
		}
		if d.Name() == "harmony" && text != "" {
			text += "<|start|>"
		}
		said := string(d.AppendCall(nil, c))
		if d.Name() == "harmony" && text == "" {
			said = strings.TrimPrefix(said, "assistant") // the prompt contains it
		}
		if c.Incomplete {
			said = said[:runeCut(said, len(said)*2/3)]
		}
		text += said
	}
	t.Text, t.Calls = text, nil
	if reason == lathe.FinishToolCalls {
		reason = lathe.FinishStop // the server does not recognize calls
	}
	t.Finish = reason
}

// speakHarmony returns reasoning and text on their channels. The prompt ends with "<|start|>assistant".
func speakHarmony(t *Turn) string {
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
