package mcptool

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMissed is how many signs of life in a row may be missing.
const maxMissed = 3

// statelessProtocol is the first version that knows no connections, and no ping.
const statelessProtocol = "2026-07-28"

var errSilent = errors.New("the server gives no sign of life any more")

// A pulse asks a connection for signs of life while no call runs over it: calls have limits of
// their own, and some servers do one thing at a time. One that has never answered is not asked for
// more.
type pulse struct {
	silent chan struct{} // closed when too many were missing
	cancel context.CancelFunc
	done   chan struct{}
}

func (s *supervisor) watch(ctx context.Context, x *session, info *mcp.InitializeResult) *pulse {
	ctx, cancel := context.WithCancel(ctx)
	p := &pulse{silent: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	if s.conf.KeepAlive < 0 || info == nil || info.ProtocolVersion >= statelessProtocol {
		close(p.done)
		return p
	}
	go func() {
		defer close(p.done)
		p.run(ctx, x, s.conf.KeepAlive)
	}()
	return p
}

func (p *pulse) run(ctx context.Context, x *session, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	answered, missed := false, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.life.Done():
			return
		case <-ticker.C:
		}
		if x.tap.isBusy() {
			missed = 0
			continue
		}
		if isAlive(ctx, x, interval) {
			answered, missed = true, 0
			continue
		}
		if missed++; missed == maxMissed && ctx.Err() == nil {
			if answered {
				close(p.silent)
			}
			return
		}
	}
}

// isAlive asks once. Any answer is a sign of life, an error that the server sends included.
func isAlive(ctx context.Context, x *session, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := x.mcp.Ping(ctx, nil)
	e := (*jsonrpc.Error)(nil)
	return err == nil || errors.As(err, &e)
}

// stop ends the asking and waits for it.
func (p *pulse) stop() {
	p.cancel()
	<-p.done
}
