package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// daemons are those that scripts have started and not stopped, by script.
type daemons struct {
	mu sync.Mutex
	of map[*testscript.TestScript]*served
}

type served struct {
	cmd    *exec.Cmd
	output *outputBuffer
	done   chan struct{} // closed when stderr has ended
}

// outputBuffer is what a process has written so far, for those who wait for more.
type outputBuffer struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	over bool
}

func (s *outputBuffer) add(line string, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(line)
	s.over = over
	close(s.more)
	s.more = make(chan struct{})
}

// wait returns what the pattern finds, once it is said; "" when the process has ended before, or took
// too long.
func (s *outputBuffer) wait(re *regexp.Regexp) string {
	late := time.After(time.Minute)
	for {
		s.mu.Lock()
		text, over, more := s.text.String(), s.over, s.more
		s.mu.Unlock()
		if found := re.FindString(text); found != "" || over {
			return found
		}
		select {
		case <-more:
		case <-late:
			return ""
		}
	}
}

var serveURL = regexp.MustCompile(`http://\S+/v1`)

// serve starts `lathe serve` with the flags, and sets $LATHE to its address.
func (d *daemons) serve(ts *testscript.TestScript, _ bool, args []string) {
	cmd := start(ts, append([]string{"lathe", "serve", "--addr", "127.0.0.1:0"}, args...))
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := &served{cmd: cmd, output: &outputBuffer{more: make(chan struct{})}, done: make(chan struct{})}
	go s.read(stderr)
	d.mu.Lock()
	d.of[ts] = s
	d.mu.Unlock()
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may be gone
		<-s.done
		_ = cmd.Wait()
	})
	url := s.output.wait(serveURL)
	if url == "" {
		ts.Fatalf("serve said %q", s.output.text.String())
	}
	ts.Setenv("LATHE", strings.TrimSuffix(url, "/v1"))
}

// serveDocument starts each `lathe serve` of a document's code blocks, at a port of its own, and checks that it answers as the
// text around the command says: the page at /, and the model of --model at /v1/models.
func (d *daemons) serveDocument(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serves file")
	}
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	commands := 0
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "$ lathe serve")
		if !ok {
			continue
		}
		flags := strings.Fields(rest)
		d.serve(ts, false, flags)
		want := `"object"`
		if i := slices.Index(flags, "--model"); i >= 0 {
			want = `"` + flags[i+1] + `"`
		}
		for path, part := range map[string]string{"/": "<title>", "/v1/models": want} {
			resp, err := http.Get(ts.Getenv("LATHE") + path)
			ts.Check(err)
			body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close() // it was read
			ts.Check(err)
			if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), part) {
				ts.Fatalf("%s: %s answers %d, want 200 with %s:\n%.500s", strings.TrimSpace(line), path, resp.StatusCode, part, body)
			}
		}
		commands++
	}
	if commands == 0 {
		ts.Fatalf("%s has no line that serves", args[0])
	}
}

// signal sends HUP or TERM to the gateway and waits until it says what the pattern wants; after TERM it
// must end with exit code 0.
func (d *daemons) signal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal HUP|TERM pattern")
	}
	d.mu.Lock()
	s := d.of[ts]
	d.mu.Unlock()
	sig := map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM}[args[0]]
	ts.Check(s.cmd.Process.Signal(sig))
	if s.output.wait(regexp.MustCompile(args[1])) == "" {
		ts.Fatalf("after %s it has not said %s:\n%s", args[0], args[1], s.output.text.String())
	}
	if args[0] == "TERM" {
		<-s.done
		if code := exitCodeOf(ts, s.cmd.Wait()); code != exitOK {
			ts.Fatalf("exit code %d, want 0", code)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("serve.log"), []byte(s.output.text.String()), 0o644))
}
