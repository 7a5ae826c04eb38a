package main

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
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
	cmd  *exec.Cmd
	said *said
	done chan struct{} // closed when stderr has ended
}

// said is what a process has written so far, for those who wait for more.
type said struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	over bool
}

func (s *said) add(line string, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(line)
	s.over = over
	close(s.more)
	s.more = make(chan struct{})
}

// wait returns what the pattern finds, once it is said; "" when the process has ended before, or took
// too long.
func (s *said) wait(re *regexp.Regexp) string {
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
	s := &served{cmd: cmd, said: &said{more: make(chan struct{})}, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		r := bufio.NewReader(stderr)
		for {
			line, err := r.ReadString('\n')
			s.said.add(line, err != nil)
			if err != nil {
				return
			}
		}
	}()
	d.mu.Lock()
	d.of[ts] = s
	d.mu.Unlock()
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may be gone
		<-s.done
		_ = cmd.Wait()
	})
	url := s.said.wait(serveURL)
	if url == "" {
		ts.Fatalf("serve said %q", s.said.text.String())
	}
	ts.Setenv("LATHE", strings.TrimSuffix(url, "/v1"))
}

// signal sends HUP or TERM to the daemon and waits until it says what the pattern wants; after TERM it
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
	if s.said.wait(regexp.MustCompile(args[1])) == "" {
		ts.Fatalf("after %s it has not said %s:\n%s", args[0], args[1], s.said.text.String())
	}
	if args[0] == "TERM" {
		<-s.done
		if code := exitCodeOf(ts, s.cmd.Wait()); code != exitOK {
			ts.Fatalf("exit code %d, want 0", code)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("serve.log"), []byte(s.said.text.String()), 0o644))
}
