package mcptool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMissed is the number of consecutive unanswered pings after which a connection counts as lost.
const maxMissed = 3

// statelessProtocol is the first protocol version without sessions and without pings.
const statelessProtocol = "2026-07-28"

var errSilent = errors.New("the server does not answer pings")

// A keepAlive pings a connection while no call is in progress on it: calls have their own limits, and some servers do only one thing at a
// time. It stops if the server has never answered a ping.
type keepAlive struct {
	silent  chan struct{} // closed after maxMissed unanswered pings; nil: no pings are sent
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// watch starts pings of a connection if its protocol version has them.
func (s *supervisor) watch(ctx context.Context, conn *session, info *mcp.InitializeResult) *keepAlive {
	if s.conf.KeepAlive < 0 || info == nil || info.ProtocolVersion >= statelessProtocol {
		return &keepAlive{cancel: func() {}}
	}
	return startKeepAlive(ctx, s.conf.KeepAlive, conn.tap.isBusy, func(ctx context.Context) error { return conn.mcp.Ping(ctx, nil) })
}

func startKeepAlive(ctx context.Context, interval time.Duration, busy func() bool, ping func(context.Context) error) *keepAlive {
	ctx, cancel := context.WithCancel(ctx)
	p := &keepAlive{silent: make(chan struct{}), cancel: cancel}
	p.running.Go(func() { p.run(ctx, interval, busy, ping) })
	return p
}

func (p *keepAlive) run(ctx context.Context, interval time.Duration, busy func() bool, ping func(context.Context) error) {
	ticker := time.Tick(interval)
	answered, missed := false, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker:
		}
		if busy() {
			missed = 0
			continue
		}
		if isAlive(ctx, interval, ping) {
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

// isAlive sends one ping. Any answer counts, also an error of the server.
func isAlive(ctx context.Context, within time.Duration, ping func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := ping(ctx)
	e := (*jsonrpc.Error)(nil)
	return err == nil || errors.As(err, &e)
}

// stop ends the pings and waits for their goroutine.
func (p *keepAlive) stop() {
	p.cancel()
	p.running.Wait()
}
