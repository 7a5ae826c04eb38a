package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTimeout bounds how long a process may take until it prints its address, on a loaded machine.
const startTimeout = 2 * time.Minute

// A node is one `lathe serve`, which may be killed and started again at the same address. Its methods may be called from
// several goroutines at once.
type node struct {
	base   string // its address, http://…
	dir    string // of its lathe.yaml
	binary string

	mu    sync.Mutex
	cmd   *exec.Cmd
	over  chan struct{} // closed when the process has ended
	spent time.Duration // CPU time of its former processes
	logs  []string      // the last lines that it logged
	up    time.Duration // how long it accepted requests, in former processes
	since time.Time     // when it began to accept requests
}

var listening = regexp.MustCompile(`http://127\.\d+\.\d+\.\d+:\d+`)

// start starts the process and blocks until it accepts requests.
func (n *node) start(ctx context.Context) error {
	cmd := exec.Command(n.binary, "serve", "--log", "warn")
	cmd.Dir = n.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	over, ready, begun := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel signals the process when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err != nil {
			return
		}
		n.read(stderr, ready)
		_ = cmd.Wait() // its state has how it ended
		n.mu.Lock()
		n.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		n.cmd = nil
		if !n.since.IsZero() {
			n.up += time.Since(n.since)
			n.since = time.Time{}
		}
		n.mu.Unlock()
		close(over)
	}()
	if err := <-begun; err != nil {
		return err
	}
	n.mu.Lock()
	n.cmd, n.over = cmd, over
	n.mu.Unlock()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-ready:
		n.mu.Lock()
		n.since = time.Now()
		n.mu.Unlock()
		return nil
	case <-over:
		err = errors.New("it ended")
	case <-timer.C:
		err = fmt.Errorf("it did not listen within %v", startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	n.signal(syscall.SIGKILL)
	<-over
	return fmt.Errorf("starting %s: %w: %s", n.base, err, strings.Join(n.tail(), "\n"))
}

// read keeps the last lines of a process until it has ended, and closes ready when one of them is its address.
func (n *node) read(stderr io.Reader, ready chan<- struct{}) {
	const kept = 50
	lines := bufio.NewReader(stderr)
	listens := false
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			n.mu.Lock()
			if n.logs = append(n.logs, line); len(n.logs) > kept {
				n.logs = n.logs[len(n.logs)-kept:]
			}
			n.mu.Unlock()
			if !listens && listening.MatchString(line) {
				listens = true
				close(ready)
			}
		}
		if err != nil {
			return
		}
	}
}

// tail returns the last lines that the node has logged.
func (n *node) tail() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.logs...)
}

// signal sends a signal to the process, and returns a channel that is closed when the process has ended.
func (n *node) signal(s syscall.Signal) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s) // it may have ended
	}
	return n.over
}

// stop ends the process: s is SIGKILL or SIGTERM.
func (n *node) stop(s syscall.Signal) {
	if over := n.signal(s); over != nil {
		<-over
	}
}

func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// cpu returns the CPU time that the node's processes have used.
func (n *node) cpu() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.spent
	if n.cmd != nil {
		own, _ := cpuOf(n.cmd.Process.Pid)
		sum += own
	}
	return sum
}

// uptime returns how long the node has accepted requests.
func (n *node) uptime() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.since.IsZero() {
		return n.up
	}
	return n.up + time.Since(n.since)
}

// tick is the unit of times in /proc/PID/stat: 1/100 s on Linux, whatever the kernel's own.
const tick = 10 * time.Millisecond

// cpuOf returns the CPU time of a process, and that of its children which have ended.
func cpuOf(pid int) (own, children time.Duration) {
	f := statOf(pid)
	if len(f) < 15 {
		return 0, 0
	}
	at := func(i int) time.Duration {
		n, _ := strconv.ParseInt(f[i], 10, 64) // the kernel's
		return time.Duration(n) * tick
	}
	return at(11) + at(12), at(13) + at(14)
}

// statOf returns the fields of /proc/PID/stat from the third on, nil if the process has ended.
func statOf(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.Fields(rest)
}

// treeCPU returns the CPU time of a process and all its children, those that have ended included.
func treeCPU(pid int) time.Duration {
	own, gone := cpuOf(pid)
	sum := own + gone
	for _, kid := range childrenOf(pid) {
		own, _ := cpuOf(kid)
		sum += own
	}
	return sum
}

func childrenOf(pid int) (out []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range dirs {
		kid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if f := statOf(kid); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			out = append(out, kid)
		}
	}
	return out
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "VmRSS:")
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // the kernel's, in KiB
	return n << 10
}
