package mcptool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/jsonlines"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A stdioConn exchanges lines of JSON-RPC with a child. Lines on standard output that are not JSON are skipped and counted, because many
// programs log there.
type stdioConn struct {
	proc    *process
	tap     *tap
	lost    func() // called when reading has ended
	lines   *jsonlines.Reader
	grace   time.Duration
	queue   [][]byte // rest of a batch
	writeMu sync.Mutex
}

// Connect implements [mcp.Transport]. It returns c, which is already connected.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

func (c *stdioConn) SessionID() string { return "" }

func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		raw, err := c.next()
		if err != nil {
			c.lost()
			return nil, err
		}
		if raw = c.tap.received(raw); raw == nil {
			continue
		}
		msg, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			c.tap.refuse("", errUnreadable)
			continue
		}
		return msg, nil
	}
}

// next returns the next line, or message of a batch, that looks like a JSON object.
func (c *stdioConn) next() ([]byte, error) {
	if len(c.queue) > 0 {
		raw := c.queue[0]
		c.queue = c.queue[1:]
		return raw, nil
	}
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		switch line[0] {
		case '{':
			return line, nil
		case '[':
			if batch := c.tap.unbatch(line); len(batch) > 0 {
				c.queue = batch[1:]
				return batch[0], nil
			}
		default:
			c.tap.refuse("", errUnreadable)
		}
	}
}

// line returns the next line. A line over the limit ends the connection, because its message is lost.
func (c *stdioConn) line() ([]byte, error) {
	line, err := c.lines.Next()
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, jsonlines.ErrTooLong):
		c.tap.refuseAll(errTooLong)
		return nil, errTooLong
	default:
		return nil, io.EOF // an incomplete line is not a message
	}
}

func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.tap.sent(ctx, raw)
	// A child that does not read must not block the caller. A line that was cut off cannot be completed later, so the child is killed.
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.proc.stdin.SetWriteDeadline(time.Now())
		close(ended)
	})
	n, err := c.proc.stdin.Write(append(raw, '\n'))
	if !stop() {
		<-ended // else the deadline could be set after the reset
		_ = c.proc.stdin.SetWriteDeadline(time.Time{})
	}
	if err != nil && n > 0 {
		killGroup(c.proc.cmd.Process.Pid)
	}
	return err
}

func (c *stdioConn) Close() error {
	c.proc.stop(c.grace)
	return nil
}
