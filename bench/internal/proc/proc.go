// Package proc runs the contenders of a benchmark as processes of their own and reads what they use. Linux only.
package proc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is one contender, or the model server.
type Process struct {
	Name  string
	Base  string        // its address
	Ready time.Duration // from its start until it said where it listens
	cmd   *exec.Cmd
}

// patience is how long a process may take until it listens.
const patience = 30 * time.Second

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// Start starts a process on one core, or on all if core is negative, and waits until it says where it listens.
func Start(name string, core int, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(path, args...)}
	if core >= 0 {
		p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if core >= 0 {
		if err := Pin(p.cmd.Process.Pid, core); err != nil {
			return nil, err
		}
	}
	said, last := make(chan string, 1), ""
	go func() {
		sc := bufio.NewScanner(stderr)
		for sc.Scan() {
			if a := address.FindString(sc.Text()); a != "" {
				said <- a
				break
			}
			last = sc.Text()
		}
		close(said)
		_, _ = io.Copy(io.Discard, stderr) // the request log
	}()
	select {
	case p.Base = <-said:
		if p.Base == "" {
			p.Stop()
			return nil, fmt.Errorf("%s ended: %s", name, last)
		}
		p.Ready = time.Since(began)
		return p, nil
	case <-time.After(patience):
		p.Stop()
		return nil, fmt.Errorf("%s did not say where it listens", name)
	}
}

// StartServer starts a process on all cores, with env in addition to the environment, and waits until ready says so of the address base, at which
// the arguments tell it to listen. Ready is the time until then.
func StartServer(name, base string, env []string, ready func(base string) bool, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, Base: base, cmd: exec.Command(path, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for !ready(base) {
		if time.Since(began) > patience {
			p.Stop()
			return nil, fmt.Errorf("%s does not answer", name)
		}
		time.Sleep(time.Millisecond)
	}
	p.Ready = time.Since(began)
	return p, nil
}

// FreePort returns a port of the loopback interface that nothing listened on a moment ago.
func FreePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = ln.Close() }()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

// Stop ends the process and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// Pin keeps a process, all of its threads, on one core.
func Pin(pid, core int) error {
	var set unix.CPUSet
	set.Set(core)
	tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// CPU is the processor time that the threads of the process have taken.
func (p *Process) CPU() time.Duration { return cpuOf(p.cmd.Process.Pid) }

// Children reads the processor time that the children of a process have taken.
type Children struct {
	pid   int
	ended time.Duration         // of those whose ids others have now
	last  map[int]time.Duration // what each had taken when it was read last
}

// NewChildren returns a reader for the children of a process.
func NewChildren(pid int) *Children { return &Children{pid: pid, last: map[int]time.Duration{}} }

// CPU is the processor time that the children have taken so far. Of a child that has ended it has what was read before: the
// time never becomes less.
func (c *Children) CPU() time.Duration {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.pid)) // the pattern is well formed
	for _, path := range tasks {
		b, _ := os.ReadFile(path) // it has ended meanwhile
		for _, child := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				continue
			}
			now := cpuOf(pid)
			if now < c.last[pid] {
				c.ended += c.last[pid]
			}
			c.last[pid] = now
		}
	}
	sum := c.ended
	for _, d := range c.last {
		sum += d
	}
	return sum
}

func cpuOf(pid int) time.Duration {
	var sum time.Duration
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
		if err != nil {
			continue
		}
		ns, _, _ := bytes.Cut(b, []byte(" "))
		n, _ := strconv.ParseInt(string(ns), 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// Memory is the resident memory now, in KiB.
func (p *Process) Memory() int {
	return p.status("VmRSS:")
}

// Peak is the most memory, in KiB, that was resident since the process started or ResetPeak was called.
func (p *Process) Peak() int { return p.status("VmHWM:") }

// ResetPeak makes Peak start again from what is resident now.
func (p *Process) ResetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

// status returns a number of /proc/PID/status, and 0 if the process has ended.
func (p *Process) status(name string) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[0])
	return n
}

// Serve answers on a free port of loopback and writes the address to stderr, where Start reads it. It returns when serving fails.
func Serve(h http.Handler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listens on http://%s\n", ln.Addr())
	return (&http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}).Serve(ln)
}
