package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrMissing is the error if the programs of PostgreSQL are not installed, or cannot be run by this user.
var ErrMissing = errors.New("needs PostgreSQL: initdb and postgres, 14 or later, in PATH or /usr/lib/postgresql (Debian: postgresql)")

// startTimeout bounds how long a server may take to answer, also after a crash on a loaded machine.
const startTimeout = 2 * time.Minute

// A Server is one PostgreSQL server with a folder of its own. Its superuser is "lathe", without a
// password. Its methods must not be called at the same time.
type Server struct {
	bin, dir string
	settings []string             // arguments of the server, after its own
	who      *syscall.SysProcAttr // the user it runs as
	run      *process             // nil while the server is down
}

// Open starts a server for a program that is not a test, with settings such as "shared_buffers=1GB". Its data folder is
// created in parent, or in the folder of temporary files if parent is "". Close must be called. It returns
// [ErrMissing] if no server can be started here.
func Open(ctx context.Context, parent string, settings ...string) (*Server, error) {
	return start(ctx, parent, settings...)
}

// Close stops the server and removes its folder.
func (s *Server) Close() { s.stop() }

// PID returns the process id of the server, whose children serve the connections; 0 if the server is down.
func (s *Server) PID() int {
	if s.run == nil {
		return 0
	}
	return s.run.pid
}

// Start starts a server for one test, which may kill it. Where none can be started, and with -short, the test is skipped.
func Start(tb testing.TB) *Server { return StartIn(tb, "") }

// StartIn starts a server whose data folder is created in parent.
func StartIn(tb testing.TB, parent string) *Server {
	tb.Helper()
	skipShort(tb)
	s, err := start(tb.Context(), parent)
	check(tb, err)
	tb.Cleanup(s.stop)
	return s
}

// start creates a server in a folder of its own and starts it.
func start(ctx context.Context, parent string, settings ...string) (*Server, error) {
	s, err := newServer(parent)
	if err != nil {
		return nil, err
	}
	for _, setting := range settings {
		s.settings = append(s.settings, "-c", setting)
	}
	err = s.command(ctx, "initdb", "-D", s.data(), "-U", "lathe", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// newServer returns a server that has an empty folder, and no data or process yet.
func newServer(parent string) (*Server, error) {
	bin := binaries()
	who, err := unprivileged()
	if bin == "" || err != nil {
		return nil, errors.Join(ErrMissing, err)
	}
	dir, err := os.MkdirTemp(parent, "lathe-pg-") // not tb.TempDir: its path is too long for a socket
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, who: who}
	if c := owner(who); c != nil {
		if err := os.Chown(dir, c.uid, c.gid); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

// command runs one of the programs of PostgreSQL to its end.
func (s *Server) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir, cmd.Env = withoutSignal(s.who), s.dir, []string{"PATH=" + s.bin, "LC_ALL=C"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Standby starts a synchronous standby of the server: from then on the server confirms a commit only once
// both have it. Promote makes the standby the primary, once the server is killed.
func (s *Server) Standby(tb testing.TB) *Server {
	tb.Helper()
	standby := s.Follower(tb)
	if err := s.execute(tb.Context(), "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"); err != nil {
		tb.Fatal(err)
	}
	s.until(tb, "EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
	return standby
}

// Follower starts an asynchronous standby of the server: it gets a commit a moment after the server has confirmed it.
func (s *Server) Follower(tb testing.TB) *Server {
	tb.Helper()
	standby, err := newServer("")
	check(tb, err)
	tb.Cleanup(standby.stop)
	err = standby.command(tb.Context(), "pg_basebackup", "-h", s.dir, "-p", "5432", "-U", "lathe", "-D", standby.data(), "-R", "-X", "stream", "-c", "fast", "-N")
	if err == nil {
		err = standby.begin(tb.Context())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return standby
}

// CutOff waits until a follower has all that the server has confirmed so far, and stops it from fetching more.
func (s *Server) CutOff(tb testing.TB, follower *Server) {
	tb.Helper()
	s.until(tb, "EXISTS (SELECT FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_flush_lsn())")
	if err := follower.execute(tb.Context(), "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"); err != nil {
		tb.Fatal(err)
	}
	s.until(tb, "NOT EXISTS (SELECT FROM pg_stat_replication)")
}

// until waits until a condition of the server holds.
func (s *Server) until(tb testing.TB, condition string) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.URL("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		var ok bool
		if err := conn.QueryRow(tb.Context(), "SELECT "+condition).Scan(&ok); err != nil {
			tb.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("this does not become true: %s", condition)
		}
	}
}

// Promote makes a standby the primary.
func (s *Server) Promote(tb testing.TB) {
	tb.Helper()
	if err := s.execute(tb.Context(), "SELECT pg_promote()"); err != nil {
		tb.Fatal(err)
	}
}

// execute executes statements on the server, also after one has failed.
func (s *Server) execute(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, failed := conn.Exec(ctx, statement); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL returns the URL of a database on the server.
func (s *Server) URL(database string) string {
	return "postgres://lathe@/" + database + "?host=" + url.QueryEscape(s.dir) + "&port=5432"
}

// Schema returns the URL of an empty schema for the test.
func (s *Server) Schema(tb testing.TB) string {
	tb.Helper()
	return create(tb, s.URL("postgres"), false)
}

// Dir is the folder of the server's socket, which a URL names as its host.
func (s *Server) Dir() string { return s.dir }

// Kill kills the server and all its children at once, and waits until they are gone. What it had not
// written is lost.
func (s *Server) Kill() {
	if s.run != nil {
		s.run.kill()
		s.run = nil
	}
}

// Move sets the path of a killed server's folder, now in parent.
func (s *Server) Move(parent string) { s.dir = filepath.Join(parent, filepath.Base(s.dir)) }

// Restart starts the server again after Kill, and waits until it answers.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Kill()
	if err := s.begin(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// begin starts the server and waits until it answers. A killed server may hold its memory and files for a
// moment: then the new process ends at once, and is started again.
func (s *Server) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		run, err := launch(s.bin, s.data(), s.dir, s.who, s.settings...)
		if err != nil {
			return err
		}
		if err := s.connect(ctx, run); !errors.Is(err, errEnded) {
			return err
		}
		if log := run.log(); !bytes.Contains(log, []byte("still in use")) && !bytes.Contains(log, []byte("already exists")) {
			return fmt.Errorf("%w: %s", errEnded, log)
		}
	}
}

var errEnded = errors.New("the server ended")

// connect waits until a process of the server answers. It returns errEnded if the process has ended.
func (s *Server) connect(ctx context.Context, run *process) error {
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			s.run = run
			return conn.Close(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			run.kill()
			return fmt.Errorf("the server does not answer: %w: %s", err, run.log())
		case <-run.done:
			return errEnded
		}
	}
}

func (s *Server) stop() {
	s.Kill()
	_ = os.RemoveAll(s.dir) // in the temporary folder
}

// A process is a process that runs a server. Restart starts a new one.
type process struct {
	pid  int
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	out bytes.Buffer // the start of its output
}

// launch starts a process on the data folder, with its socket in dir.
func launch(bin, data, dir string, who *syscall.SysProcAttr, settings ...string) (*process, error) {
	args := []string{"-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories=" + dir, "-c", "port=5432",
		"-c", "max_connections=300", "-c", "shared_buffers=32MB", "-c", "logging_collector=off", "-c", "log_min_messages=warning",
		"-c", "dynamic_shared_memory_type=mmap"} // its files are in the data folder, so that none are left after a kill
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "postgres"), append(args, settings...)...)
	p := &process{done: make(chan struct{})}
	cmd.SysProcAttr, cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = who, dir, []string{"PATH=" + bin, "LC_ALL=C"}, p, p
	cmd.WaitDelay = time.Second // its children may live longer, and hold its output open
	begun := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel signals the server when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		begun <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
			close(p.done)
		}
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	return p, nil
}

// Write keeps the first 64 KiB of the server's output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(b[:min(len(b), max(0, 1<<16-p.out.Len()))])
	return len(b), nil
}

func (p *process) log() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.out.Bytes())
}

func (p *process) kill() {
	select {
	case <-p.done:
		return
	default:
	}
	killTree(p.pid)
	<-p.done
}

// binaries returns the folder of initdb and postgres, "" if none exists.
func binaries() string {
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil && has(filepath.Dir(p)) {
			return filepath.Dir(p)
		}
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is good
	slices.Reverse(dirs)
	for _, dir := range dirs {
		if has(dir) {
			return dir
		}
	}
	return ""
}

func has(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
