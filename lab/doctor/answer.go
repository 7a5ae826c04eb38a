package doctor

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// An answer is the parsed content of a response with status 200, as its bytes show it. read sets its fields, with the methods whose names begin
// with read; then judge and the probes read them.
type answer struct {
	req    *lathe.Request
	stream bool // a stream was requested
	whole  bool // the response is one JSON object

	chunks     int
	role       bool // a message has a role
	text       strings.Builder
	pieces     []piece       // elements of tool_calls
	legacy     bool          // a call is in the old form, function_call
	finishes   []string      // all finish reasons
	usage      int           // number of chunks with usage
	usageEarly int           // number of chunks with both usage and choices
	completion int           // completion tokens that the server reports; 0: none reported
	done       bool          // the end was received: "[DONE]", or the whole object
	failed     bool          // the stream contained an error
	cut        bool          // the connection was lost within the response
	thought    bool          // the response contains reasoning
	groups     []group       // pieces by call
	fin        *lathe.Finish // the assembled answer; nil: it could not be assembled
}

// calls returns the calls of the answer.
func (a *answer) calls() []lathe.ToolCall {
	if a.fin == nil {
		return nil
	}
	return a.fin.Message.Calls()
}

// finish returns the last finish reason, or "" if none exists.
func (a *answer) finish() string {
	if len(a.finishes) == 0 {
		return ""
	}
	return a.finishes[len(a.finishes)-1]
}

// ended reports whether the answer was received to its end, without an error and a limit that truncated it.
func (a *answer) ended() bool { return !a.cut && !a.failed && !limited(a) }

const (
	longLine    = 64 << 10
	tooLongLine = 1 << 20 // the default of max_line_bytes
)

// A reader parses the responses that its client received, by read, and records findings about them. Only methods whose names begin with
// read or judge change its fields.
type reader struct {
	client
	nativeCalls bool           // the server returns native tool calls
	textProbes  []string       // probes whose answers had calls in the text: see judgeAnswerText
	textCalls   map[string]int // dialect → number of answers with calls that it can read
	marked      string         // dialect that was identified by its mark
}

// newReader returns a reader with a client of its own. The caller must call leave of the result.
func newReader(t Target, opts *Options) (*reader, error) {
	c, err := newClient(t, opts)
	if err != nil {
		return nil, err
	}
	return &reader{client: *c, textCalls: map[string]int{}}, nil
}

// read parses a response with status 200 and records findings. It returns nil if the response contains no completion.
func (x *reader) read(e *exchange, req *lathe.Request, stream bool) *answer {
	if e.tooLarge {
		x.find("too-large")
	}
	start := bytes.TrimSpace(e.body)
	switch {
	case len(start) == 0:
		if e.timedOut {
			x.find("hang")
		} else {
			x.find("empty-body")
		}
		return nil
	case start[0] == '<':
		x.find("html", e.media())
		return nil
	}
	if !x.chat() {
		return x.readOther(e, req, stream)
	}
	a := &answer{req: req, stream: stream}
	switch {
	case start[0] == '{':
		a.whole = true
		if !x.readWhole(a, start) {
			return nil
		}
		if stream {
			x.find("json-instead-of-stream")
		}
	case stream:
		x.readStream(a, e)
	}
	if !a.whole && a.chunks == 0 && !a.failed {
		x.find("not-a-completion", e.media())
		return nil
	}
	a.groups = groupPieces(a.pieces)
	x.judge(a)
	return a
}

// readWhole parses a JSON completion. It returns false if the body is not a completion.
func (x *reader) readWhole(a *answer, body []byte) bool {
	if !isObject(body) {
		x.find("not-a-completion")
		return false
	}
	if hasError(body) {
		x.find("error-in-band-first", openai.ParseError(0, body).Message)
		return false
	}
	if !is(rawjson.At(body, "choices"), '[') {
		x.find("not-a-completion")
		return false
	}
	x.readChunk(a, body, "message")
	a.done = true
	fin, err := openai.ParseCompletion(body, nil)
	if err == nil {
		a.fin = fin
		x.judgeFaults(fin)
	}
	return true
}

// readStream parses server-sent events and records findings about their lines and about the end of the stream.
func (x *reader) readStream(a *answer, e *exchange) {
	x.judgeLines(e)
	asm := openai.NewAssembler(nil)
	x.readChunks(a, e, asm)
	if a.failed {
		return
	}
	a.cut = a.cut || e.timedOut || e.err != nil
	switch {
	case e.timedOut && a.chunks > 0:
		x.find("slow")
	case e.timedOut:
		x.find("hang", "in the middle of a stream")
	}
	if fin, err := asm.Finish(!a.cut); err == nil {
		a.fin = fin
		x.judgeFaults(fin)
	}
	finished := len(a.finishes) > 0
	switch {
	case a.done: // the stream is complete
	case finished && a.cut:
		x.find("cut-after-finish")
	case finished:
		x.find("no-done")
	case e.timedOut || e.tooLarge: // has a finding already
	case len(a.pieces) > 0:
		a.cut = true
		x.find("cut-mid-argument")
	default:
		a.cut = true
		x.find("cut-mid-text")
	}
}

// readChunks parses the events of a stream up to an error in it, or to one that the assembler refuses. It sets cut if the response breaks off in
// the middle of an event.
func (x *reader) readChunks(a *answer, e *exchange, asm *openai.Assembler) {
	r := eventsOf(e, x.opts.MaxBytes)
	for {
		ev, err := r.Next()
		if err != nil {
			a.cut = !errors.Is(err, io.EOF)
			return
		}
		if a.done {
			x.find("after-done")
			return
		}
		x.readEvent(a, ev.Data)
		if a.failed {
			return
		}
		if _, err := asm.Append(nil, ev.Data); err != nil {
			return
		}
	}
}

// eventsOf returns a reader of the events in a response, with at most limit bytes in each.
func eventsOf(e *exchange, limit int) *sse.Reader {
	return sse.NewReader(bytes.NewReader(e.body), &sse.Options{MaxLine: limit, MaxEvent: limit, RawUTF8: true})
}

// judgeLines records findings about how the events are written, before they are parsed.
func (x *reader) judgeLines(e *exchange) {
	if m := e.media(); m != "text/event-stream" {
		x.find("content-type", m)
	}
	b := e.body
	if rest, ok := bytes.CutPrefix(b, []byte("\ufeff")); ok {
		x.find("bom")
		b = rest
	}
	if bytes.Contains(b, []byte("\r\n")) {
		x.find("crlf")
	}
	longest, before := 0, false
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, "\r\n")
		longest = max(longest, len(line))
		if bytes.HasPrefix(line, []byte(":")) {
			x.find("comments")
		}
		data := bytes.HasPrefix(line, []byte("data"))
		if data && before {
			x.find("multi-line-data")
		}
		before = data
	}
	switch {
	case longest > tooLongLine:
		x.findAndMend("line-too-long", "max_line_bytes", bytesText(2*longest), bytesText(longest))
	case longest > longLine:
		x.find("long-line", bytesText(longest))
	}
}

// faultFindings maps the kinds of faults that the assembler detects to findings.
var faultFindings = map[string]string{
	openai.FaultInvalidUTF8:      "invalid-utf8",
	openai.FaultSplitCharacter:   "character-split",
	openai.FaultDuplicateMember:  "duplicate-member",
	openai.FaultCallRepeated:     "call-repeated",
	openai.FaultUnknownContent:   "content-unknown",
	openai.FaultReasoningRepeats: "reasoning-twice",
	openai.FaultUsageInvalid:     "usage-invalid",
	openai.FaultIndexChanged:     "index-changed",
	openai.FaultNameMissing:      "name-missing",
}

func (x *reader) judgeFaults(fin *lathe.Finish) {
	for _, f := range fin.Faults {
		if id := faultFindings[f.Kind]; id != "" {
			x.find(id)
		}
	}
}

func kindOf(err error) string {
	var s *rawjson.SyntaxError
	if errors.As(err, &s) {
		return s.Kind
	}
	return ""
}
