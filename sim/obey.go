package sim

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// The models for tests of prompt injection: the two extremes of how a model reacts to instructions in text that is not its user's.
const (
	// ObedientModel follows instructions in any text: of users, in documents, in descriptions and results of tools, and in its own
	// output. It is the worst case of a prompt injection.
	ObedientModel = "sim/obedient"
	// CarefulModel follows instructions in system and user text outside of <document>…</document> only. All other text is data.
	CarefulModel = "sim/careful"
)

// Limits of the two models in one conversation.
const (
	maxObeyed    = 64   // orders
	maxObeyTimes = 1000 // repetitions of one order
	maxObeyCalls = 64   // calls
	maxObjects   = 256  // JSON objects in one text that are tested for a call
	maxEncodings = 2    // nested encodings in base64 that are decoded
)

// An order is a call that a text instructs the model to make.
type order struct {
	call  lathe.ToolCall // ID is set if the text names one
	times int            // how often the call must be made
}

// obeyed returns the turn of the two models. It depends only on the request: an order is followed until the conversation contains the
// call as often as it was ordered.
func obeyed(req *lathe.Request, careful bool) *Turn {
	read := readOrders(req, careful)
	made := map[string]int{}
	calls := 0
	for _, m := range req.Messages {
		for _, c := range m.Calls() {
			made[orderKey(c.Name, c.Arguments)]++
			calls++
		}
	}
	t := &Turn{Text: cmp.Or(read.words, "Done.")}
	if !mayCall(req) {
		return t // without tools the model cannot call
	}
	for _, o := range read.orders {
		key := orderKey(o.call.Name, o.call.Arguments)
		for ; made[key] < o.times && calls < maxObeyCalls; made[key]++ {
			calls++
			c := o.call
			if c.ID == "" {
				c.ID = "call_" + itoa(calls)
			}
			t.Text, t.Calls = "", append(t.Calls, c)
			if req.ParallelToolCalls == nil || !*req.ParallelToolCalls {
				return t
			}
		}
	}
	return t
}

// orderKey returns a key of a call that does not depend on how its arguments are formatted.
func orderKey(name, args string) string {
	canonical, err := rawjson.AppendCanonical(nil, []byte(args))
	if err != nil {
		return name + "\x00" + args
	}
	return name + "\x00" + string(canonical)
}

var (
	findDocument = lazy.Regexp(`(?s)<document\b.*?</document>`)
	findSay      = lazy.Regexp(`(?i)\breply (?:with )?exactly(?: with)?: (.+)`)
	findCoded    = lazy.Regexp(`[A-Za-z0-9+/]{24,}={0,2}`)
	// Instructions such as: call NAME {…}, call the tool "NAME" with {…}, use NAME, run `NAME`. The object is optional; findAs and
	// findTimes match what may follow it.
	findCall  = lazy.Regexp("(?i)\\b(?:call|use|run|invoke)(?: the)?(?: tool| function)? [`'\"]?([a-z0-9][a-z0-9_.-]*_[a-z0-9_.-]*[a-z0-9])[`'\"]?(?: now)?(?: with)?(?: the)?(?: arguments)?:?")
	findAs    = lazy.Regexp(`^,? as id ([\w-]+)`)
	findTimes = lazy.Regexp(`^,? (\d{1,4}) times`)
	// Marks of dialects, up to the arguments.
	findMarked = lazy.Regexp(`(?:to=functions\.([\w.-]+)[^{]*|functions\.([\w.-]+):\d+<\|tool_call_argument_begin\|>\s*|<function=([\w.-]+)>\s*|\[TOOL_CALLS\]([\w.-]+)(?:\[ARGS\])?)`)
)

// An orderReader collects what the texts of a request order.
type orderReader struct {
	orders []order // each once, in the order of the text
	seen   map[string]bool
	words  string // the text of the final answer that the last of them requests
}

// readOrders reads the system and user text of a request without documents, for the model that is careful, else all of its text.
func readOrders(req *lathe.Request, careful bool) *orderReader {
	r := &orderReader{seen: map[string]bool{}}
	if careful {
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				if text, ok := p.(lathe.Text); ok && isPrompt(m.Role) {
					r.read(findDocument().ReplaceAllString(text.Text, ""))
				}
			}
		}
		return r
	}
	for _, t := range req.Tools {
		r.read(t.Description)
		r.readJSON(t.Schema)
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.Text:
				r.read(p.Text)
			case lathe.ToolResult:
				if !r.readJSON([]byte(p.Content)) {
					r.read(p.Content)
				}
			case lathe.ToolCall:
				r.readJSON([]byte(p.Arguments))
			default: // other parts contain no orders
			}
		}
	}
	return r
}

// isPrompt reports whether messages with this role are of the system, the developer or the user.
func isPrompt(r lathe.Role) bool {
	return r == lathe.RoleSystem || r == lathe.RoleDeveloper || r == lathe.RoleUser
}

func (r *orderReader) add(found []order) {
	for _, o := range found {
		key := orderKey(o.call.Name, o.call.Arguments)
		if !r.seen[key] && len(r.orders) < maxObeyed {
			r.seen[key] = true
			r.orders = append(r.orders, o)
		}
	}
}

// read reads plain text.
func (r *orderReader) read(text string) {
	r.add(ordersIn(text, maxEncodings))
	if m := findSay().FindStringSubmatch(text); m != nil {
		r.words = strings.TrimSpace(m[1])
	}
}

// readJSON reads the strings and the objects of JSON text. ok is false if it has no string or is not JSON.
func (r *orderReader) readJSON(text []byte) (ok bool) {
	for s := range jsonStrings(text) {
		r.read(s)
		ok = true
	}
	if ok {
		r.add(callObjects(string(text)))
	}
	return ok
}

// jsonStrings yields the decoded strings of a JSON text, including keys. It yields none if text is invalid JSON.
func jsonStrings(text []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if rawjson.Check(text, rawjson.Limits{}) != nil {
			return
		}
		for i := 0; i < len(text); i++ {
			if text[i] != '"' {
				continue
			}
			end, err := rawjson.Scan(text, i)
			if err != nil || !yield(string(rawjson.AppendUnquoteLossy(nil, text[i:end]))) {
				return
			}
			i = end - 1
		}
	}
}

// ordersIn returns the orders in one text. It also reads text that people do not see: tag characters, base64 (nested up to encodings), and
// text with zero-width characters between.
func ordersIn(text string, encodings int) []order {
	text = visible(text)
	var found []order
	add := func(name, args, rest string) {
		o := order{call: lathe.ToolCall{Name: name, Arguments: args}, times: 1}
		if m := findAs().FindStringSubmatch(rest); m != nil {
			o.call.ID, rest = m[1], rest[len(m[0]):]
		}
		if m := findTimes().FindStringSubmatch(rest); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				o.times = min(n, maxObeyTimes)
			}
		}
		found = append(found, o)
	}
	for _, m := range findCall().FindAllStringSubmatchIndex(text, maxObeyed) {
		args, rest := objectAt(text[m[1]:])
		add(text[m[2]:m[3]], args, rest)
	}
	for _, m := range findMarked().FindAllStringSubmatchIndex(text, maxObeyed) {
		for name := range slices.Chunk(m[2:], 2) { // the name is in the group of the mark that was found
			if name[0] >= 0 {
				args, rest := objectAt(text[m[1]:])
				add(text[name[0]:name[1]], args, rest)
			}
		}
	}
	found = append(found, callObjects(text)...)
	if encodings > 0 {
		for _, coded := range findCoded().FindAllString(text, maxObeyed) {
			plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(coded, "="))
			if err == nil && utf8.Valid(plain) {
				found = append(found, ordersIn(string(plain), encodings-1)...)
			}
		}
	}
	return found[:min(len(found), maxObeyed)]
}

// callObjects returns the calls that text contains as JSON objects.
func callObjects(text string) (found []order) {
	for i, tries := 0, 0; i < len(text) && tries < maxObjects && len(found) < maxObeyed; i++ {
		if text[i] != '{' {
			continue
		}
		tries++
		if name, args, ok := callObject(text[i:]); ok {
			found = append(found, order{call: lathe.ToolCall{Name: name, Arguments: args}, times: 1})
		}
	}
	return found
}

// visible replaces tag characters by their ASCII characters and removes characters without width.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xE0020 && r <= 0xE007E:
			return r - 0xE0000
		case r >= 0xE0000 && r <= 0xE007F, r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E,
			r >= 0x2060 && r <= 0x2069, r == 0xFEFF, r == 0xAD:
			return -1
		}
		return r
	}, s)
}

// objectAt returns the JSON object at the beginning of text, or {} if none exists, and the text after it.
func objectAt(text string) (object, rest string) {
	b := []byte(text)
	i := rawjson.SkipSpace(b, 0)
	if i < len(b) && b[i] == '{' {
		if end, err := rawjson.Scan(b, i); err == nil {
			return text[i:end], text[end:]
		}
	}
	return "{}", text
}

// callObject parses {"name":…,"arguments":…} at the beginning of text. The arguments may be an object or a string that contains one.
func callObject(text string) (name, args string, ok bool) {
	end, err := rawjson.Scan([]byte(text), 0)
	if err != nil {
		return "", "", false
	}
	obj := []byte(text[:end])
	arguments := rawjson.At(obj, "arguments")
	if arguments == nil {
		arguments = rawjson.At(obj, "parameters")
	}
	name, args = rawjson.TextAt(obj, "name"), plain(arguments)
	return name, args, name != "" && strings.HasPrefix(args, "{")
}
