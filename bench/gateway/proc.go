package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A process is one contender, or the model server.
type process struct {
	name  string
	cmd   *exec.Cmd
	base  string        // its address
	ready time.Duration // from its start until it said where it listens
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start starts a process on one core and waits until it says where it listens.
func start(name string, core int, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...)}
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := pin(p.cmd.Process.Pid, core); err != nil {
		return nil, err
	}
	said := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(stderr)
		for sc.Scan() {
			if a := address.FindString(sc.Text()); a != "" {
				said <- a
				break
			}
		}
		_, _ = io.Copy(io.Discard, stderr) // the request log
	}()
	select {
	case p.base = <-said:
		p.ready = time.Since(began)
		return p, nil
	case <-time.After(patience):
		p.stop()
		return nil, fmt.Errorf("%s did not say where it listens", name)
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// pin keeps a process, all of its threads, on one core.
func pin(pid, core int) error {
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

// cpu is the processor time that the threads of the process have taken.
func (p *process) cpu() time.Duration {
	var sum time.Duration
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid))
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", p.cmd.Process.Pid, t.Name()))
		if err != nil {
			continue
		}
		ns, _, _ := bytes.Cut(b, []byte(" "))
		n, _ := strconv.ParseInt(string(ns), 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// memory is the resident memory now, in KiB.
func (p *process) memory() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	n, _ := strconv.Atoi(strings.Fields(rest)[0])
	return n
}
