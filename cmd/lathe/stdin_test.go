package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func TestInterruptibleReadsWhatIsThere(t *testing.T) {
	t.Parallel()
	if err := iotest.TestReader(interruptible(t.Context(), strings.NewReader("all that is there")), []byte("all that is there")); err != nil {
		t.Error(err)
	}
}

// A command that waits for its standard input ends when it is interrupted.
func TestInterruptWhileReading(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "-"}, {"tools", "call", "calculator", "-"}, {"tools", "check", "calculator", "-"}, {"tools", "check", "--batch"},
		{"parse", "--dialect", "tags"}, {"parse", "--batch"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				in, typing := io.Pipe()
				defer typing.Close() // ends the read that is left
				var errw bytes.Buffer
				code := make(chan int)
				go func() { code <- run(ctx, args, in, io.Discard, &errw) }()
				synctest.Wait()
				cancel()
				if got := <-code; got != exitInterrupted || errw.String() != "lathe: interrupted\n" {
					t.Errorf("exit code %d, and %q", got, errw.String())
				}
			})
		})
	}
}
