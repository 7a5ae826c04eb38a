package eval

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxPartial is the number of bytes that a run stores of a model call that did not finish.
const maxPartial = 4 << 10

// seen is what a run has received from its model. Only one goroutine writes it.
type seen struct {
	any     bool   // at least one delta arrived
	partial string // beginning of the text and reasoning of the last model call, if it did not finish
	bytes   int    // whole size of that text and reasoning

	now      func() time.Time
	calls    []ModelCall
	prompt   string // hash of the messages and tools of the first model call
	sampling lathe.Sampling
}

// A ModelCall is one model call of a run, with all of its attempts.
type ModelCall struct {
	// Model is the name of the model in the response of the server.
	Model string `json:"model,omitempty"`
	// TTFTMS is the time to the first delta (nil: no delta arrived), and MS the time to the end of the answer, both in milliseconds.
	TTFTMS *int64 `json:"ttft_ms"`
	MS     int64  `json:"elapsed_ms"`
	// Faults are deviations from the protocol in the answer that were tolerated.
	Faults []lathe.Fault `json:"faults,omitempty"`
	// Retries is the number of attempts that failed before the answer began.
	Retries int `json:"retries,omitempty"`
	// Blank says that the answer has neither text nor calls, and NoUsage that the server reported no usage.
	Blank   bool `json:"blank,omitempty"`
	NoUsage bool `json:"no_usage,omitempty"`
}

// promptHash returns the SHA-256 of the messages and tools of a request as JSON, or "" if they cannot be encoded.
func promptHash(req *lathe.Request) string {
	raw, err := json.Marshal(struct {
		Messages []lathe.Message
		Tools    []*lathe.ToolSpec
	}{req.Messages, req.Tools})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// begin records the start of a model call, and returns the index of the call and the time.
func (s *seen) begin(req *lathe.Request) (call int, start time.Time) {
	if len(s.calls) == 0 {
		s.prompt, s.sampling = promptHash(req), req.Sampling
	}
	s.calls = append(s.calls, ModelCall{})
	return len(s.calls) - 1, s.now()
}

// note records one delta of a model call.
func (s *seen) note(call int, start time.Time, d *lathe.Delta) {
	c, ms := &s.calls[call], s.now().Sub(start).Milliseconds()
	c.MS = ms
	if c.TTFTMS == nil && d.Kind != lathe.DeltaRetry {
		c.TTFTMS = &ms
	}
	if d.Kind == lathe.DeltaRetry {
		c.Retries++
	}
	if f := d.Finish; d.Kind == lathe.DeltaFinish && f != nil {
		c.Model, c.Faults, c.NoUsage = f.Model, f.Faults, f.Usage == (lathe.Usage{})
		c.Blank = strings.TrimSpace(f.Message.Text()) == "" && len(f.Message.Calls()) == 0
	}
}

// A watch is a model that passes on the turns of another model and records what it receives.
type watch struct {
	lathe.Model
	seen *seen
}

// Unwrap returns the wrapped model.
func (w *watch) Unwrap() lathe.Model { return w.Model }

// Generate implements [lathe.Model].
func (w *watch) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		var text strings.Builder
		w.seen.partial, w.seen.bytes = "", 0
		call, start := w.seen.begin(req)
		for d, err := range w.Model.Generate(ctx, req) {
			if err == nil && d.Kind != lathe.DeltaRetry {
				w.seen.any = true
			}
			if err == nil {
				w.seen.note(call, start, &d)
			} else {
				w.seen.calls[call].MS = w.seen.now().Sub(start).Milliseconds()
			}
			switch d.Kind {
			case lathe.DeltaText, lathe.DeltaReasoning, lathe.DeltaCommentary, lathe.DeltaCallArgs:
				w.seen.bytes += len(d.Text)
				if left := maxPartial - text.Len(); left > 0 {
					text.WriteString(d.Text[:min(left, len(d.Text))])
				}
			case lathe.DeltaRetry:
				text.Reset()
				w.seen.bytes = 0
			default: // contains no text
			}
			left := !yield(d, err)
			if err != nil || left && d.Kind != lathe.DeltaFinish {
				w.seen.partial = strings.ToValidUTF8(text.String(), string(utf8.RuneError))
			}
			if left {
				return
			}
		}
	}
}
