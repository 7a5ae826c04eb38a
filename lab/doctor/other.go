package doctor

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readOther parses a response with status 200 in a protocol other than chat completions, with the codec of the protocol, and records
// findings. It returns nil if the response contains no answer.
func (x *reader) readOther(e *exchange, req *lathe.Request, stream bool) *answer {
	a := &answer{req: req, stream: stream, role: true}
	start := bytes.TrimSpace(e.body)
	asm := x.codec.NewAssembler(nil)
	var err error
	switch {
	case start[0] == '{' || start[0] == '[':
		a.whole = true
		_, a.fin, err = asm.Complete(nil, start)
		if stream && err == nil {
			x.find("json-instead-of-stream")
		}
	case !stream:
		err = wire.ErrNoAnswer
	default:
		err = x.readEvents(a, e, asm)
	}
	var api *wire.APIError
	switch {
	case errors.As(err, &api):
		a.failed = true
		id := "error-in-band"
		if a.chunks < 2 {
			id = "error-in-band-first"
		}
		x.find(id, api.Message)
		return a
	case a.cut:
		return a
	case err != nil:
		x.find("not-a-completion", e.media())
		return nil
	}
	a.done = true
	a.finishes = []string{string(a.fin.Reason)}
	a.completion = int(a.fin.Usage.OutputTokens)
	a.text.WriteString(a.fin.Message.Text())
	for _, p := range a.fin.Message.Parts {
		if _, ok := p.(lathe.Reasoning); ok {
			a.thought = true
		}
	}
	x.judgeOther(a)
	return a
}

// readEvents reads a stream to its end and assembles the answer.
func (x *reader) readEvents(a *answer, e *exchange, asm wire.Assembler) error {
	x.judgeLines(e)
	r, clean := eventsOf(e, x.opts.MaxBytes), true
	for !asm.Done() {
		ev, err := r.Next()
		if err != nil {
			clean = errors.Is(err, io.EOF)
			break
		}
		a.chunks++
		if _, err := asm.Append(nil, ev.Type, ev.Data); err != nil {
			return err
		}
	}
	fin, err := asm.Finish(clean && e.err == nil)
	a.fin = fin
	if err == nil {
		return nil
	}
	if a.chunks == 0 {
		return wire.ErrNoAnswer
	}
	a.cut = true
	switch {
	case e.timedOut:
		x.find("slow")
	case !e.tooLarge:
		x.find("cut-mid-text")
	}
	return nil
}

// judgeOther records findings about an answer in any protocol.
func (x *reader) judgeOther(a *answer) {
	if len(a.calls()) > 0 {
		x.nativeCalls = true
	}
	x.judgeArguments(a)
	for _, c := range a.calls() {
		if text := strings.TrimSpace(c.Arguments); text != "" && !limited(a) && !c.Incomplete && rawjson.Check([]byte(text), rawjson.Limits{}) != nil {
			x.find("args-invalid-json")
		}
	}
	for i, c := range a.calls() {
		if c.ID != "" && slices.ContainsFunc(a.calls()[:i], func(o lathe.ToolCall) bool { return o.ID == c.ID }) {
			x.find("id-repeated")
		}
	}
	x.judgeFinish(a)
	if a.fin.Usage == (lathe.Usage{}) {
		x.find("usage-missing")
	}
	x.judgeAnswerText(a)
}
