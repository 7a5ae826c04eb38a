package mcptool

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The end of the context of one message does not make a later one fail.
func TestWriteAfterAContextEnded(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	go func() { _, _ = io.Copy(io.Discard, r) }()
	c := &stdioConn{proc: &process{stdin: w}, tap: &tap{}}
	msg := &jsonrpc.Request{Method: "notifications/cancelled"}
	for range 3000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_ = c.Write(ctx, msg) // fails or not
		if err := c.Write(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
}
