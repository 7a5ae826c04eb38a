package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lathe-run/lathe/internal/jsonlines"
)

// stopChat starts a chat with a model that begins its answer and never ends it, sends a message, interrupts the command once
// the answer has begun, and sends another message and /quit. It wants both answers to be stopped, and the exit code 0.
func stopChat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: stopchat")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Once\n"}}]}`, "\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	ts.Defer(server.Close)
	cmd := start(ts, []string{"lathe", "chat", "-q", "--history", "", "--base-url", server.URL + "/v1", "--model", "m"})
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	answers, notes := bufio.NewReader(out), bufio.NewReader(stderr)
	for range 2 {
		_, err = io.WriteString(in, "Tell me a story.\n")
		ts.Check(err)
		if line, err := answers.ReadString('\n'); err != nil || line != "Once\n" {
			ts.Fatalf("the answer begins with %q, %v", line, err)
		}
		ts.Check(cmd.Process.Signal(os.Interrupt))
		if line, err := notes.ReadString('\n'); err != nil || line != "stopped\n" {
			ts.Fatalf("after Ctrl-C the chat says %q, %v", line, err)
		}
	}
	_, err = io.WriteString(in, "/quit\n")
	ts.Check(err)
	if code := exitCodeOf(ts, cmd.Wait()); code != exitOK {
		ts.Fatalf("exit code %d", code)
	}
}

func TestHistoryIsBoundedAndItsOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "history")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"first", "first", " ", "bell\a", strings.Repeat("x", maxHistoryLine+1), "sécond"} {
		h.Add(line)
	}
	other, err := openHistory(path)
	if err != nil || other.Len() != 2 || other.At(0) != "sécond" || other.At(1) != "first" {
		t.Fatalf("%q, %v", other.lines, err)
	}
	other.Add("third") // of another chat
	h.Add("fourth")
	if got := strings.Join(h.lines, " "); got != "first sécond third fourth" {
		t.Errorf("two chats keep %q", got)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	h.file = nil // in memory alone
	for i := range 2 * maxHistoryLines {
		h.Add(fmt.Sprint(i))
	}
	if h.Len() != maxHistoryLines || h.At(0) != fmt.Sprint(2*maxHistoryLines-1) {
		t.Errorf("%d lines, the newest %q", h.Len(), h.At(0))
	}
	long := strings.Repeat("y", maxHistoryLine-4)
	for i := range 2 * maxHistoryBytes / maxHistoryLine {
		h.Add(fmt.Sprint(long, i))
	}
	if size := len(strings.Join(h.lines, "\n")); size > maxHistoryBytes || size < maxHistoryBytes/2 {
		t.Errorf("%d bytes are kept", size)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := openHistory(path); err == nil {
			t.Error("a history that others may read was read")
		}
	}
}

// What is typed goes to the reader that was made last, though another one began to read it.
func TestKeysGoToTheLastReader(t *testing.T) {
	t.Parallel()
	typed, terminal := io.Pipe()
	k := newKeys(typed)
	question, cancel := context.WithCancel(t.Context())
	first := k.reader(question)
	ended := make(chan error)
	go func() {
		_, err := first.Read(make([]byte, 8))
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	second := k.reader(t.Context())
	go func() {
		_, _ = io.WriteString(terminal, "abc")
		_ = terminal.Close()
	}()
	got, err := io.ReadAll(second)
	if err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPlainLinesAreRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	r := &plainLines{jsonlines.NewReader(strings.NewReader("a\r\n\n"+long+"\nend"), maxPrompt)}
	for _, want := range []string{"a", "", long, "end"} {
		if got, err := r.readLine(t.Context()); err != nil || got != want {
			t.Errorf("%.20q, %v; want %.20q", got, err, want)
		}
	}
	if _, err := r.readLine(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
