package mcptool

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe/secret"
)

// maxStderr is the maximum number of bytes of a child's standard error that are kept: the last ones.
const maxStderr = 64 << 10

// A process is a child with pipes to its standard streams, in its own process group.
type process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File
	done          chan struct{} // closed after it has ended and its group was killed
	stopOnce      sync.Once
}

// lastWords is the maximum time that the standard error of an ended child may stay open in its own children.
const lastWords = 100 * time.Millisecond

// errStart is the error of a program that could not be started.
type errStart struct{ err error }

func (e *errStart) Error() string { return "cannot start: " + e.err.Error() }
func (e *errStart) Unwrap() error { return e.err }

// startProcess starts the server's program.
func startProcess(s *Server, environ []string, stderr *tail) (*process, error) {
	env := childEnv(s, environ)
	path, err := findProgram(s, env)
	if err != nil {
		return nil, &errStart{err}
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, &errStart{err}
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		closeAll(inR, inW)
		return nil, &errStart{err}
	}
	p := &process{stdin: inW, stdout: outR, done: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{s.Command}, s.Args...), Dir: s.Dir, Env: env, SysProcAttr: ownGroup(),
		Stdin: inR, Stdout: outW, Stderr: stderr, WaitDelay: lastWords}
	err = p.cmd.Start()
	closeAll(inR, outW) // the ends of the child
	if err != nil {
		closeAll(inW, outR)
		return nil, &errStart{errors.Unwrap(err)}
	}
	go p.wait()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// wait waits for the end of the child, and then kills its process group: otherwise programs that the child has started would survive and
// keep the pipes open.
func (p *process) wait() {
	_ = p.cmd.Wait() // the exit status is in ProcessState
	killGroup(p.cmd.Process.Pid)
	close(p.done)
}

// stop ends the child: it closes its standard input, sends SIGTERM after grace, and kills the process group after another grace. It returns
// after the child has ended.
func (p *process) stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		_ = p.stdin.Close()
		if !within(p.done, grace) {
			askGroup(p.cmd.Process.Pid)
			if !within(p.done, grace) {
				killGroup(p.cmd.Process.Pid)
				<-p.done
			}
		}
		_ = p.stdout.Close()
	})
	<-p.done
}

// within reports whether c is closed within d.
func within(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(d):
		return false
	}
}

// inherited are the environment variables that every child inherits from this process.
var inherited = [...]string{"PATH", "HOME", "LANG"}

// childEnv returns the environment of a child, sorted.
func childEnv(s *Server, environ []string) []string {
	var env []string
	for _, name := range inherited {
		if _, set := s.Env[name]; set {
			continue
		}
		for _, kv := range environ {
			if strings.HasPrefix(kv, name+"=") {
				env = append(env, kv)
				break
			}
		}
	}
	for name, v := range s.Env {
		env = append(env, name+"="+v.Reveal())
	}
	slices.Sort(env)
	return env
}

// findProgram returns the path of the program. It searches a name without a path separator in the child's PATH.
func findProgram(s *Server, env []string) (string, error) {
	if strings.ContainsRune(s.Command, os.PathSeparator) {
		return s.Command, nil
	}
	for _, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(list, string(os.PathListSeparator)) {
			if dir == "" {
				continue // an empty entry would be the working directory
			}
			if path, err := exec.LookPath(dir + string(os.PathSeparator) + s.Command); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no program %q in PATH", s.Command)
}

// A tail stores the last maxStderr bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxStderr; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// text returns the stored bytes with visible escapes for control characters and without secrets.
func (t *tail) text(known []secret.Secret) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return plain(string(t.buf), known)
}
