package tool

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/text"
)

const (
	progressEvery   = 100 * time.Millisecond // minimum time between two reports of a call
	maxProgressRead = 64 << 10               // bytes of the message of a tool that are searched for secrets
	maxProgressText = 500                    // bytes of the message of a report
)

// ReportProgress reports the progress of the tool call to which ctx belongs: done of total, in a unit that the tool chooses, and one line of
// text, truncated to 500 bytes. A total of 0 means that it is unknown. Subscribers of the run receive an [event.ToolCallProgress], which is
// not stored. Models do not receive it. ReportProgress does not block. It discards reports within 100 ms after another one, amounts that are
// not finite, and reports outside of a call. It may be called from several goroutines at once.
func ReportProgress(ctx context.Context, done, total float64, message string) {
	if c, ok := ctx.Value(progressKey{}).(*callContext); ok && !math.IsNaN(done-total) && !math.IsInf(done-total, 0) {
		c.reportProgress(event.ToolCallProgress{Done: done, Total: total, Message: strings.ToValidUTF8(text.Cut(message, maxProgressRead), "\uFFFD")})
	}
}

type progressKey struct{}

// reportProgress passes a report to the goroutine that waits for the tool. Of several that it has not received, it gets the newest.
func (c *callContext) reportProgress(p event.ToolCallProgress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.err == nil && now.Sub(c.reported) >= progressEvery {
		c.reported = now
		select {
		case <-c.back:
		default:
		}
		c.back <- &p
	}
}

// emitProgress emits a report of the call's tool, with tokens in place of secrets.
func emitProgress(c *call, p *event.ToolCallProgress) {
	p.ToolCallID, p.Tool = c.ID, c.tool
	if c.w.secrets.store != nil {
		p.Message = string(c.w.secrets.hideText(c, []byte(p.Message)))
	}
	p.Message = text.Cut(p.Message, maxProgressText) // now, because half a secret would not be found
	c.emit(p)
}
