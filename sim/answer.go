package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// answer says in words what the results of a conversation were.
func answer(c conversation) string {
	if len(c.results) == 0 {
		return chat(c.prompt)
	}
	calls := map[string]lathe.ToolCall{}
	for _, call := range c.calls {
		calls[call.ID] = call
	}
	var out []string
	for _, r := range c.results {
		out = append(out, report(calls[r.CallID], r))
	}
	return strings.Join(out, " ")
}

// chat is the reply without tools.
func chat(prompt string) string {
	for _, mark := range []string{"Reply exactly with: ", "Reply exactly with ", "reply with exactly: "} {
		if _, want, ok := strings.Cut(prompt, mark); ok {
			return strings.TrimSpace(want)
		}
	}
	if strings.TrimSpace(prompt) == "" {
		return "You said nothing. I am sim/demo, a simulated model: ask me something that one of the tools can do."
	}
	return "I am sim/demo, a simulated model: I pick tools, call them and report what they say. None of the tools at hand fits this request."
}

// maxReport bounds how much of one result the answer repeats, in bytes.
const maxReport = 600

func report(call lathe.ToolCall, r lathe.ToolResult) string {
	name := call.Name
	if name == "" {
		name = "The tool"
	}
	raw := []byte(r.Content)
	if rawjson.Check(raw, rawjson.Limits{}) != nil {
		return fmt.Sprintf("%s says: %s.", name, clip(strings.TrimSpace(r.Content)))
	}
	if msg, failed := failure(raw); failed {
		return fmt.Sprintf("%s did not work: %s", name, msg)
	}
	args := []byte(call.Arguments)
	if v, ok := rawjson.Get(raw, "currentTime"); ok {
		return currentTime(args, rawjson.Text(v))
	}
	if v, ok := rawjson.Get(raw, "result"); ok {
		if e, ok := argument(args, "expression"); ok {
			return fmt.Sprintf("%s = %s.", e, plain(v))
		}
	}
	var fields []string
	for k, v := range rawjson.Members(raw) {
		fields = append(fields, fmt.Sprintf("%s is %s", rawjson.Text(k), plain(v)))
	}
	if len(fields) > 0 {
		return fmt.Sprintf("%s says: %s.", name, clip(strings.Join(fields, ", ")))
	}
	return fmt.Sprintf("%s says: %s.", name, clip(plain(raw)))
}

// failure reads {"ok":false,"error":{"message":…}} and its relatives.
func failure(raw []byte) (string, bool) {
	e, ok := rawjson.Get(raw, "error")
	if !ok {
		return "", false
	}
	if m, ok := rawjson.Get(e, "message"); ok {
		return clip(rawjson.Text(m)), true
	}
	return clip(plain(e)), true
}

func currentTime(args []byte, stamp string) string {
	where := "now"
	if z, ok := argument(args, "zone"); ok {
		where = z[strings.LastIndexByte(z, '/')+1:]
		where = "in " + strings.ReplaceAll(where, "_", " ")
	}
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return fmt.Sprintf("The time %s is %s.", where, clip(stamp))
	}
	return fmt.Sprintf("The time %s is %s (%s).", where, t.Format("15:04"), stamp)
}

func argument(args []byte, name string) (string, bool) {
	if rawjson.Check(args, rawjson.Limits{}) != nil {
		return "", false
	}
	v, ok := rawjson.Get(args, name)
	if !ok || v[0] != '"' {
		return "", false
	}
	return rawjson.Text(v), true
}

// plain is a value without its quotes.
func plain(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		return rawjson.Text(raw)
	}
	return string(raw)
}

func clip(s string) string {
	return text.Clip(s, maxReport)
}
