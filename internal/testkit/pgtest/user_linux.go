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

// owner returns the user that a process with these attributes runs as, nil for the current user.
func owner(a *syscall.SysProcAttr) *ids {
	if a.Credential == nil {
		return nil
	}
	return &ids{int(a.Credential.Uid), int(a.Credential.Gid)}
}

// unprivileged returns the attributes of a server: it runs as this user or, if this user is root, which a server
// refuses, as a user with few rights. The kernel stops it when this process ends.
func unprivileged() (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} // PostgreSQL ends at once on SIGQUIT
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

// withoutSignal returns the attributes of a program that this process waits for: the user alone.
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
		for isRunning(kid) {
			time.Sleep(time.Millisecond)
		}
	}
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	_, state := stat(pid)
	return state != "" && state != "Z"
}

// children returns the processes whose parent is pid.
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

// stat returns the parent of a process and its state, such as S or Z (a zombie). They are 0 and "" if it has ended.
func stat(pid int) (parent int, state string) {
	fields := statFields(pid)
	if len(fields) < 2 {
		return 0, ""
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0]
}

// statFields returns the fields of /proc/PID/stat after the name; nil if the process has ended. A file is one line such as
// "812 (postgres) S 1 812 ...", with state, parent and, from the 12th field after the name, utime, stime, cutime and cstime.
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
	const utime, unit = 11, 10 * time.Millisecond // utime is an index in statFields
	if f := statFields(pid); len(f) > utime+n {
		for _, text := range f[utime : utime+n] {
			v, _ := strconv.ParseInt(text, 10, 64) // the kernel writes a number
			sum += time.Duration(v) * unit
		}
	}
	return sum
}
