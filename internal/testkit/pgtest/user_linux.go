package pgtest

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type ids struct{ uid, gid int }

func owner(a *syscall.SysProcAttr) *ids {
	if a.Credential == nil {
		return nil
	}
	return &ids{int(a.Credential.Uid), int(a.Credential.Gid)}
}

// unprivileged says as whom a server runs: as this user, or, since it refuses root, as one that may
// do little. It ends when this process does.
func unprivileged() (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} // for PostgreSQL: at once
	if os.Geteuid() != 0 {
		return a, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return a, nil
	}
	return nil, errors.New("there is neither a user postgres nor a user nobody to run it as")
}

// withoutSignal is for a process whose parent waits for it.
func withoutSignal(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.Credential}
}

// killTree kills a server and its children. The server is stopped first, so that it makes no new ones.
func killTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	kids := children(pid)
	for _, kid := range kids {
		_ = syscall.Kill(kid, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, kid := range kids {
		for _, state := stat(kid); state != "" && state != "Z"; _, state = stat(kid) {
			time.Sleep(time.Millisecond)
		}
	}
}

func children(pid int) (out []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	for _, dir := range dirs {
		if kid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if parent, _ := stat(kid); parent == pid {
				out = append(out, kid)
			}
		}
	}
	return out
}

// stat returns the parent of a process and its state, 0 where it is gone.
func stat(pid int) (parent int, state string) {
	fields := statFields(pid)
	if len(fields) < 2 {
		return 0, ""
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0]
}

// statFields returns the fields of /proc/PID/stat after the name, none where the process is gone.
func statFields(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.Fields(rest)
}

// Parent returns the id of the parent of a process, 0 where the process is gone: the parent of a backend is the server.
func Parent(pid int) int {
	parent, _ := stat(pid)
	return parent
}

// CPU returns the CPU time of a process and of its children, those that have ended included, in units of 10 ms. It is 0 on systems
// without /proc, and for the id 0.
func CPU(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	sum := ticks(pid, 4) // its own, and that of children that have ended
	for _, kid := range children(pid) {
		sum += ticks(kid, 2)
	}
	return sum
}

// ticks adds up the first n of utime, stime, cutime and cstime.
func ticks(pid, n int) (sum time.Duration) {
	const first, unit = 11, 10 * time.Millisecond
	if f := statFields(pid); len(f) > first+n {
		for _, text := range f[first : first+n] {
			v, _ := strconv.ParseInt(text, 10, 64) // the kernel's
			sum += time.Duration(v) * unit
		}
	}
	return sum
}
