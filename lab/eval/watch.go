package eval

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxPartial bounds what a run keeps of a model call that did not finish, in bytes.
const maxPartial = 4 << 10

// seen is what a run has received from its model. One goroutine writes it.
type seen struct {
	any     bool   // a delta arrived
	partial string // the beginning of the text and reasoning of the last model call, if it did not finish
	bytes   int    // their whole size
}

// A watch forwards a model's turns, and records what arrives.
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
		for d, err := range w.Model.Generate(ctx, req) {
			if err == nil && d.Kind != lathe.DeltaRetry {
				w.seen.any = true
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
			default: // no text
			}
			if err != nil {
				w.seen.partial = strings.ToValidUTF8(text.String(), string(utf8.RuneError))
			}
			if !yield(d, err) {
				if d.Kind != lathe.DeltaFinish {
					w.seen.partial = strings.ToValidUTF8(text.String(), string(utf8.RuneError))
				}
				return
			}
		}
	}
}
