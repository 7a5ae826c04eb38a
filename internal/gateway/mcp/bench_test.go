package mcp_test

import (
	"bufio"
	"context"
	"io"
	"testing"
)

// BenchmarkStdioCall is one call over standard streams, from the line to its answer, with a tool that
// does nothing.
func BenchmarkStdioCall(b *testing.B) {
	r := newRig(b, nil, nil, reader("nothing", returns(`{}`)))
	in, out := io.Pipe()
	answers, w := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- r.server.ServeStdio(context.Background(), in, w, nil) }()
	lines := bufio.NewReader(answers)
	ask := func(line string) {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			b.Fatal(err)
		}
	}
	ask(hello)
	if _, err := lines.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	ask(ready)
	b.ReportAllocs()
	for b.Loop() {
		ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","arguments":{"a":1}}}`)
		if _, err := lines.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	_ = out.Close()
	<-over
}
