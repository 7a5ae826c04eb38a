package sim

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// answer returns the text that reports the results of a conversation, in the order of the calls.
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

// chat returns the answer to a prompt for which no tool fits. It returns the text that a prompt such as "Reply exactly with: TEXT" asks
// for.
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

// maxReport is the maximal length, in bytes, of the part of one result that the answer repeats.
const maxReport = 600

func report(call lathe.ToolCall, r lathe.ToolResult) string {
	name := cmp.Or(call.Name, "The tool")
	raw := []byte(r.Content)
	if rawjson.Check(raw, rawjson.Limits{}) != nil {
		return fmt.Sprintf("%s says: %s.", name, clip(strings.TrimSpace(r.Content)))
	}
	if msg, failed := failure(raw); failed {
		return fmt.Sprintf("%s did not work: %s", name, msg)
	}
	args := []byte(call.Arguments)
	if v := rawjson.At(raw, "currentTime"); v != nil {
		return currentTime(args, rawjson.Text(v))
	}
	if v := rawjson.At(raw, "result"); v != nil {
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

// failure returns the message of a failed result, such as {"ok":false,"error":{"message":…}}; ok is false for other results.
func failure(raw []byte) (string, bool) {
	e := rawjson.At(raw, "error")
	if m := rawjson.At(e, "message"); m != nil {
		return clip(rawjson.Text(m)), true
	}
	return clip(plain(e)), e != nil
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
	v := rawjson.At(args, name)
	return rawjson.Text(v), rawjson.Kind(v) == '"'
}

// plain returns a JSON value as text: a string without its quotes, any other value unchanged.
func plain(raw []byte) string {
	if rawjson.Kind(raw) == '"' {
		return rawjson.Text(raw)
	}
	return string(raw)
}

func clip(s string) string {
	return text.Clip(s, maxReport)
}
