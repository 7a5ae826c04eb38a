package stdlog

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What a peer sent does not reach the log, the system's own words do, and a flood is one line.
func TestLinesAreLoggedByTheirKind(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	std := log.New(newWriter(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now }), "", log.LstdFlags)
	for range 3 {
		std.Print(`Unsolicited response received on idle HTTP channel starting with "Jane Doe, card 4111"; err=<nil>`)
	}
	std.Print("http: Accept error: accept tcp 127.0.0.1:8700: accept4: too many open files; retrying in 5ms")
	std.Print("http: panic serving 127.0.0.1:1: Jane Doe")
	std.Print("Jane Doe of another library")
	text := out.String()
	if strings.Contains(text, "Jane") || strings.Contains(text, "4111") {
		t.Errorf("the log has what a peer sent:\n%s", text)
	}
	if n := strings.Count(text, "an unsolicited response"); n != 1 || !strings.Contains(text, "too many open files") || !strings.Contains(text, "a handler panicked") {
		t.Errorf("%d lines of one kind:\n%s", n, text)
	}
	now = now.Add(interval)
	std.Print("Unsolicited response again")
	if !strings.Contains(out.String(), "more=2") {
		t.Errorf("the lines in between are not counted:\n%s", out.String())
	}
	if _, err := Writer(nil).Write([]byte("x")); err != nil {
		t.Error(err)
	}
}
