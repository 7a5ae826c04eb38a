package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bounce starts PgBouncer in transaction mode between the nodes and the database server, with size connections to each
// database, and makes the nodes use it. stop ends it.
func (r *rig) bounce(ctx context.Context, size int) (stop func(), err error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return nil, fmt.Errorf("-bouncer needs PgBouncer (Debian: pgbouncer): %w", err)
		}
	}
	addr := net.JoinHostPort(ownHost(), "16432")
	host, port, _ := strings.Cut(addr, ":")
	ini := filepath.Join(r.db.Dir(), "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=5432 user=lathe\n[pgbouncer]\nlisten_addr = %s\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\nmax_client_conn = 1000\ndefault_pool_size = %d\n",
		r.db.Dir(), host, port, size)
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil { // its user is another one
		return nil, err
	}
	cmd := exec.Command(path, "-q", ini)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 { // it refuses root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32) // on Linux they are numbers
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	begun, over := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the kernel signals the process when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
		close(over)
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		<-over
	}
	if err := until(ctx, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}); err != nil {
		stop()
		return nil, fmt.Errorf("starting PgBouncer: %w", err)
	}
	r.opts.through = func(store string) string {
		u, err := url.Parse(store)
		if err != nil {
			return store
		}
		return "postgres://lathe@" + addr + u.Path + "?sslmode=disable&default_query_exec_mode=cache_describe"
	}
	return stop, nil
}

// ownHost returns an address in 127.0.0.0/8 that other processes of this machine hardly use.
func ownHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()>>16&63, os.Getpid()>>8&255, os.Getpid()&255)
}
