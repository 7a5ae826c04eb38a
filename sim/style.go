package sim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A style describes how the chunks of a chat completion are written. The zero style is that of OpenAI, and each field is one deviation.
// The JSON is written by hand, because a codec would not write the faults.
type style struct {
	index func(i int) string // returns the index of call i as JSON, "" to omit it; nil: the position of the call
	// id returns the id in a piece of a call, and whether the piece has one; nil: the first piece has it.
	id           func(p callPiece) (id string, ok bool)
	nameEvery    bool     // the whole name in every piece of a call
	nameSplit    bool     // the name in two pieces
	nameLate     bool     // the name after the arguments
	noType       bool     // calls without type
	args         argsForm // the form of the arguments
	whole        bool     // each call in one chunk
	together     bool     // all calls in one chunk
	textAfter    bool     // text after the calls
	textWith     bool     // text and calls in one delta
	finish       string   // the finish reason; "": that of the turn; noFinish: the empty string
	finishTwice  bool     // two chunks with a finish reason
	usageEvery   bool     // usage in every chunk
	noDone       bool     // no [DONE] at the end
	secondChoice bool     // a second choice in every chunk
	legacy       bool     // the member function_call instead of tool_calls
	reasoning    string   // the member with reasoning; "": reasoning_content
}

// noFinish is the value of style.finish for an empty finish reason.
const noFinish = "\x00"

type argsForm uint8

const (
	argsText   argsForm = iota // JSON in a string
	argsObject                 // JSON that is not in a string
	argsBraces                 // a piece "{}" before the pieces of the JSON
	argsDouble                 // a string that contains the JSON as a string
	argsNull                   // null
	argsNone                   // no member
)

// A callPiece is one element of tool_calls: a part of a call.
type callPiece struct {
	call   lathe.ToolCall
	index  int // position of the call in the turn
	number int // number of the piece, from 0
	last   bool
	text   string // the part of the arguments
}

func itoa(n int) string { return strconv.Itoa(n) }

func noIndex(int) string                   { return "" }
func constIndex(s string) func(int) string { return func(int) string { return s } }

func noID(callPiece) (string, bool)         { return "", false }
func lateID(p callPiece) (string, bool)     { return p.call.ID, p.last }
func changingID(p callPiece) (string, bool) { return p.call.ID + strings.Repeat("x", p.number), true }

// A chunkWriter writes the chunks of a chat completion.
type chunkWriter struct {
	st     *style
	head   string // {"id":…,"model":…,"choices":[{"index":0,"delta":
	usage  string // the value of the member usage
	beside string // the text that the next delta with calls also contains; "": none
	events []streamed
}

func (w *chunkWriter) data(json string) { w.events = append(w.events, streamed{data: json}) }

// events returns the events of a turn.
func (st *style) events(head *wire.AnswerHead, t *Turn, fin *lathe.Finish) []streamed {
	u := fin.Usage
	w := &chunkWriter{st: st,
		usage: string(wire.ObjectOf("prompt_tokens", u.InputTokens, "completion_tokens", u.OutputTokens, "total_tokens", u.TotalTokens)),
		head: `{"id":` + quote("chatcmpl-"+head.ID) + `,"object":"chat.completion.chunk","created":` +
			strconv.FormatInt(head.Created, 10) + `,"model":` + quote(head.Model) + `,"system_fingerprint":"sim","choices":[{"index":0,"delta":`}
	w.stream(t, head.Request.IncludeUsage)
	return w.events
}

// chunk writes one chunk with a delta object and a finish reason, both as JSON; finish "" is null.
func (w *chunkWriter) chunk(delta, finish string) {
	if finish == "" {
		finish = "null"
	}
	s := w.head + delta + `,"logprobs":null,"finish_reason":` + finish + `}`
	if w.st.secondChoice {
		s += `,{"index":1,"delta":{"content":"another choice"},"finish_reason":null}`
	}
	s += "]"
	if w.st.usageEvery {
		s += `,"usage":` + w.usage
	}
	w.data(s + "}")
}

// stream writes all chunks of a turn.
func (w *chunkWriter) stream(t *Turn, includeUsage bool) {
	st := w.st
	w.chunk(`{"role":"assistant","content":null}`, "")
	w.words(cmp.Or(st.reasoning, "reasoning_content"), t.Reasoning)
	switch {
	case st.textWith && len(t.Calls) > 0:
		w.beside = t.Text
	case !st.textAfter:
		w.words("content", t.Text)
	}
	w.calls(t.Calls)
	if st.textAfter {
		w.words("content", t.Text)
	}
	finish := st.finish
	switch {
	case st.legacy && len(t.Calls) > 0:
		finish = "function_call"
	case finish == noFinish:
		finish = ""
	case finish == "" || t.Finish != "":
		finish = string(t.finish())
	}
	w.chunk("{}", quote(finish))
	if st.finishTwice {
		w.chunk("{}", quote(finish))
	}
	if includeUsage { // the chunk with the usage has no choices
		i := strings.Index(w.head, `{"index":0`)
		w.data(w.head[:i] + `],"usage":` + w.usage + "}")
	}
	switch {
	case t.Cut:
		w.events = append(w.events, streamed{cut: true})
	case !st.noDone:
		w.data("[DONE]")
	}
}

// words writes a text as a member of deltas, one word in each.
func (w *chunkWriter) words(member, text string) {
	for _, word := range pieces(text) {
		w.chunk(`{"`+member+`":`+quote(word)+`}`, "")
	}
}

func quote(s string) string { return string(rawjson.AppendQuote(nil, s)) }

func (w *chunkWriter) calls(calls []lathe.ToolCall) {
	var whole []string // the calls of style.whole
	for i, c := range calls {
		switch {
		case w.st.legacy:
			w.functionCall(c)
		case w.st.whole:
			whole = append(whole, w.piece(callPiece{call: c, index: i, last: true, text: c.Arguments}))
		default:
			w.pieces(i, c)
		}
	}
	perChunk := 1
	if w.st.together {
		perChunk = max(1, len(whole))
	}
	for group := range slices.Chunk(whole, perChunk) {
		w.elements(group...)
	}
}

// functionCall writes a call as the member function_call.
func (w *chunkWriter) functionCall(c lathe.ToolCall) {
	w.chunk(`{"function_call":{"name":`+quote(c.Name)+`,"arguments":""}}`, "")
	for _, text := range cutText(c.Arguments) {
		w.chunk(`{"function_call":{"arguments":`+quote(text)+`}}`, "")
	}
}

// elements writes one delta with elements of tool_calls, and with w.beside.
func (w *chunkWriter) elements(elements ...string) {
	s := `{"tool_calls":[` + strings.Join(elements, ",") + `]}`
	if w.beside != "" {
		s = `{"content":` + quote(w.beside) + `,` + s[1:]
		w.beside = ""
	}
	w.chunk(s, "")
}

// pieces writes one call: a first piece without argument text, then pieces of the arguments.
func (w *chunkWriter) pieces(i int, c lathe.ToolCall) {
	st := w.st
	var texts []string
	switch st.args {
	case argsObject, argsNull, argsNone: // the first piece has them whole, or none
	case argsDouble:
		texts = cutText(quote(c.Arguments))
	case argsBraces:
		texts = append([]string{"{}"}, cutText(c.Arguments)...)
	default:
		texts = cutText(c.Arguments)
	}
	for number, text := range append([]string{""}, texts...) {
		p := callPiece{call: c, index: i, number: number, last: number == len(texts), text: text}
		w.elements(w.piece(p))
	}
	if st.nameLate {
		w.chunk(`{"tool_calls":[{"index":`+itoa(i)+`,"function":{"name":`+quote(c.Name)+`}}]}`, "")
	}
}

// longText is the length of arguments, in bytes, above which they are sent in larger pieces: those of the fault args-huge would need
// 20,000 small ones.
const longText = 64 << 10

// cutText divides arguments into pieces of at most 16 bytes, or of 1 KiB above longText.
func cutText(s string) []string {
	size := 16
	if len(s) > longText {
		size = 1 << 10
	}
	var out []string
	for s != "" {
		n := runeCut(s, size)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// piece returns one element of tool_calls, such as {"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":""}}.
func (w *chunkWriter) piece(p callPiece) string {
	st, first := w.st, p.number == 0
	var members, function []string
	index := itoa(p.index)
	if st.index != nil {
		index = st.index(p.index)
	}
	if index != "" {
		members = append(members, `"index":`+index)
	}
	id, ok := p.call.ID, first
	if st.id != nil {
		id, ok = st.id(p)
	}
	if ok {
		members = append(members, `"id":`+quote(id))
	}
	if first && !st.noType {
		members = append(members, `"type":"function"`)
	}
	if name, ok := st.name(p); ok {
		function = append(function, `"name":`+quote(name))
	}
	switch st.args {
	case argsNone: // the piece has no such member
	case argsNull:
		function = append(function, `"arguments":null`)
	case argsObject:
		function = append(function, `"arguments":`+orObject(p.call.Arguments))
	default:
		function = append(function, `"arguments":`+quote(p.text))
	}
	members = append(members, `"function":{`+strings.Join(function, ",")+`}`)
	return "{" + strings.Join(members, ",") + "}"
}

// name returns the part of the call's name that is in a piece of it, and whether the piece has one.
func (st *style) name(p callPiece) (name string, ok bool) {
	name, first := p.call.Name, p.number == 0
	half := (len(name) + 1) / 2
	switch {
	case st.nameLate:
		return "", false
	case st.nameSplit && first:
		return name[:half], true
	case st.nameSplit:
		return name[half:], p.number == 1
	}
	return name, first || st.nameEvery
}

func orObject(args string) string {
	if rawjson.Check([]byte(args), rawjson.Limits{}) != nil {
		return "{}"
	}
	return args
}
