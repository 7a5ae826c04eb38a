package sim

import (
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A style says how a turn is written as a stream: the zero style as OpenAI does, each field one
// bend of it. It writes the JSON by hand, since its faults are what a codec would not write.
type style struct {
	index        func(i int) string // "" leaves it out; nil: the position
	id           func(i, piece int, last bool, c lathe.ToolCall) (string, bool)
	nameEvery    bool
	nameSplit    bool
	nameLate     bool
	noType       bool
	args         argsForm
	whole        bool // a call in one chunk
	together     bool // all calls in one chunk
	textAfter    bool
	textWith     bool
	finish       string // "\x00" is the empty string
	finishTwice  bool
	usageEvery   bool
	noDone       bool
	secondChoice bool
	legacy       bool
	reasoning    string
	eol          string
	bom          bool
	comments     bool
	multiline    bool
	longLine     int
	malformed    bool
	errorAfter   int // frames before an error object; -1: it is the first
	cutArgs      bool
	cutText      bool
}

type argsForm uint8

const (
	argsText argsForm = iota
	argsObject
	argsBraces
	argsDouble
	argsNull
	argsNone
)

func itoa(n int) string { return strconv.Itoa(n) }

func noIndex(int) string                   { return "" }
func constIndex(s string) func(int) string { return func(int) string { return s } }

func noID(int, int, bool, lathe.ToolCall) (string, bool) { return "", false }
func lateID(_, _ int, last bool, c lathe.ToolCall) (string, bool) {
	return c.ID, last
}
func changingID(_, piece int, _ bool, c lathe.ToolCall) (string, bool) {
	return c.ID + strings.Repeat("x", piece), true
}
func sameID(_, piece int, _ bool, _ lathe.ToolCall) (string, bool) { return "call_same", piece == 0 }

// A frameWriter writes server-sent events of chat completion chunks.
type frameWriter struct {
	st      *style
	head    string // {"id":…,"model":…,"choices":[{"index":0,"delta":
	usage   string // the usage member, "" none
	out     func(frame string) bool
	frames  int
	stopped bool
}

func (w *frameWriter) send(frame string) {
	if w.stopped {
		return
	}
	w.frames++
	if w.st.errorAfter != 0 && w.frames > w.st.errorAfter {
		w.stopped = true
		w.out(`data: {"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}` + w.eol() + w.eol())
		return
	}
	if !w.out(frame) {
		w.stopped = true
	}
}

func (w *frameWriter) eol() string {
	if w.st.eol != "" {
		return w.st.eol
	}
	return "\n"
}

func (w *frameWriter) data(json string) {
	var b strings.Builder
	if w.frames == 0 && w.st.bom {
		b.WriteString("\ufeff")
	}
	if w.st.comments {
		b.WriteString(": keep-alive" + w.eol() + w.eol())
	}
	if w.st.multiline {
		json = strings.Replace(json, `"choices":`, "\n"+`"choices":`, 1)
	}
	for line := range strings.SplitSeq(json, "\n") {
		b.WriteString("data: " + line + w.eol())
	}
	b.WriteString(w.eol())
	w.send(b.String())
}

// chunk writes one chunk with a delta object and a finish reason (raw JSON, "" null).
func (w *frameWriter) chunk(delta, finish string) {
	if finish == "" {
		finish = "null"
	}
	s := w.head + delta + `,"logprobs":null,"finish_reason":` + finish + `}`
	if w.st.secondChoice {
		s += `,{"index":1,"delta":{"content":"another choice"},"finish_reason":null}`
	}
	s += "]"
	if w.st.usageEvery && w.usage != "" {
		s += `,"usage":` + w.usage
	}
	w.data(s + "}")
}

// stream writes a whole turn. What the style cuts off is not written.
func (w *frameWriter) stream(t *Turn, includeUsage bool) {
	st := w.st
	w.chunk(`{"role":"assistant","content":null}`, "")
	if st.malformed {
		w.send("data: {not json" + w.eol() + w.eol())
	}
	if st.longLine > 0 {
		w.data(w.head + `{"padding":"` + strings.Repeat("x", st.longLine) + `"},"finish_reason":null}]}`)
	}
	member := st.reasoning
	if member == "" {
		member = "reasoning_content"
	}
	for _, p := range pieces(t.Reasoning) {
		w.chunk(`{"`+member+`":`+quote(p)+`}`, "")
	}
	text := pieces(t.Text)
	if st.cutText && len(t.Calls) == 0 {
		for _, p := range text[:len(text)/2] {
			w.chunk(`{"content":`+quote(p)+`}`, "")
		}
		w.stopped = true
		return
	}
	if !st.textAfter && !st.textWith {
		w.text(text)
	}
	w.calls(t)
	if st.textAfter {
		w.text(text)
	}
	if w.stopped {
		return
	}
	finish := st.finish
	switch {
	case finish == "\x00":
		finish = ""
	case finish == "" || t.Finish != "":
		finish = string(t.finish())
	}
	if st.legacy && len(t.Calls) > 0 {
		finish = "function_call"
	}
	w.chunk("{}", quote(finish))
	if st.finishTwice {
		w.chunk("{}", quote(finish))
	}
	if includeUsage && w.usage != "" {
		i := strings.Index(w.head, `{"index":0`)
		w.data(w.head[:i] + `],"usage":` + w.usage + "}")
	}
	if !st.noDone && !t.Cut {
		w.send("data: [DONE]" + w.eol() + w.eol())
	}
}

func (w *frameWriter) text(words []string) {
	for _, p := range words {
		w.chunk(`{"content":`+quote(p)+`}`, "")
	}
}

func quote(s string) string { return string(rawjson.AppendQuote(nil, s)) }

func (w *frameWriter) calls(t *Turn) {
	st := w.st
	if st.legacy {
		if len(t.Calls) > 0 {
			c := t.Calls[0]
			w.chunk(`{"function_call":{"name":`+quote(c.Name)+`,"arguments":""}}`, "")
			for rest := c.Arguments; rest != ""; {
				n := runeCut(rest, 16)
				w.chunk(`{"function_call":{"arguments":`+quote(rest[:n])+`}}`, "")
				rest = rest[n:]
			}
		}
		return
	}
	var all []string
	for i, c := range t.Calls {
		if st.whole {
			all = append(all, w.piece(i, 0, true, c, c.Arguments, true))
			if !st.together {
				w.chunk(w.callDelta(t, all), "")
				all = nil
			}
			continue
		}
		w.pieces(t, i, c)
		if w.stopped {
			return
		}
	}
	if len(all) > 0 {
		w.chunk(w.callDelta(t, all), "")
	}
}

func (w *frameWriter) callDelta(t *Turn, calls []string) string {
	s := `{"tool_calls":[` + strings.Join(calls, ",") + `]}`
	if w.st.textWith && t.Text != "" {
		s = `{"content":` + quote(t.Text) + `,` + s[1:]
		t.Text = ""
	}
	return s
}

// pieces writes one call: an opening piece without argument text, then 16 bytes at a time.
func (w *frameWriter) pieces(t *Turn, i int, c lathe.ToolCall) {
	st := w.st
	var texts []string
	switch st.args {
	case argsObject, argsNull, argsNone:
	case argsDouble:
		texts = cutText(quote(c.Arguments))
	case argsBraces:
		texts = append([]string{"{}"}, cutText(c.Arguments)...)
	default:
		texts = cutText(c.Arguments)
	}
	if st.cutArgs && len(texts) > 0 {
		texts = texts[:(len(texts)+1)/2]
		last := len(texts) - 1
		texts[last] = texts[last][:runeCut(texts[last], max(1, len(texts[last])-3))]
	}
	n := len(texts)
	w.chunk(w.callDelta(t, []string{w.piece(i, 0, n == 0, c, "", false)}), "")
	for k, text := range texts {
		w.chunk(w.callDelta(t, []string{w.piece(i, k+1, k == n-1, c, text, true)}), "")
	}
	if st.nameLate {
		w.chunk(`{"tool_calls":[{"index":`+itoa(i)+`,"function":{"name":`+quote(c.Name)+`}}]}`, "")
	}
	if st.cutArgs {
		w.stopped = true
	}
}

func cutText(s string) []string {
	var out []string
	for s != "" {
		n := runeCut(s, 16)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// piece is one element of tool_calls: the k-th of call i.
func (w *frameWriter) piece(i, k int, last bool, c lathe.ToolCall, text string, hasText bool) string {
	st := w.st
	var m []string
	if st.index == nil {
		m = append(m, `"index":`+itoa(i))
	} else if s := st.index(i); s != "" {
		m = append(m, `"index":`+s)
	}
	id, ok := c.ID, k == 0
	if st.id != nil {
		id, ok = st.id(i, k, last, c)
	}
	if ok {
		m = append(m, `"id":`+quote(id))
	}
	if k == 0 && !st.noType {
		m = append(m, `"type":"function"`)
	}
	var f []string
	switch {
	case st.nameLate:
	case st.nameSplit:
		half := (len(c.Name) + 1) / 2
		if k == 0 {
			f = append(f, `"name":`+quote(c.Name[:half]))
		} else if k == 1 {
			f = append(f, `"name":`+quote(c.Name[half:]))
		}
	case k == 0 || st.nameEvery:
		f = append(f, `"name":`+quote(c.Name))
	}
	switch st.args {
	case argsNone:
	case argsNull:
		f = append(f, `"arguments":null`)
	case argsObject:
		f = append(f, `"arguments":`+orObject(c.Arguments))
	default:
		if k == 0 || hasText {
			f = append(f, `"arguments":`+quote(text))
		}
	}
	m = append(m, `"function":{`+strings.Join(f, ",")+`}`)
	return "{" + strings.Join(m, ",") + "}"
}

func orObject(args string) string {
	if rawjson.Check([]byte(args), rawjson.Limits{}) != nil {
		return "{}"
	}
	return args
}
