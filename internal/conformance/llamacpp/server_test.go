package llamacpp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// tools returns the folder of the server, and skips the test where it cannot be used.
func tools(t testing.TB) string {
	t.Helper()
	root := os.Getenv("LATHE_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared") // beside the module's folder
	}
	dir := filepath.Join(root, "tools", "llamacpp")
	if _, err := os.Stat(filepath.Join(dir, "bin", "llama-server")); err != nil {
		t.Skip("the server of llama.cpp is not there: set LATHE_SHARED")
	}
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("xz is not installed")
	}
	if err := exec.Command(filepath.Join(dir, "bin", "llama-server"), "--version").Run(); err != nil {
		t.Skipf("the server of llama.cpp does not run here: %v", err)
	}
	return dir
}

// models holds the unpacked models of this test process.
var models = struct {
	sync.Mutex
	dir string
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	if models.dir != "" {
		os.RemoveAll(models.dir)
	}
	os.Exit(code)
}

// unpack returns the path of a model.
func unpack(t testing.TB, tools, name string) string {
	t.Helper()
	models.Lock()
	defer models.Unlock()
	if models.dir == "" {
		dir, err := os.MkdirTemp("", "lathe-llamacpp-")
		if err != nil {
			t.Fatal(err)
		}
		models.dir = dir
	}
	path := filepath.Join(models.dir, name+".gguf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("xz", "-dc", filepath.Join(tools, "models", name+".gguf.xz"))
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// slots is how many requests a server answers at the same time.
const slots = 2

// A server is a running llama-server.
type server struct {
	url, addr string
	cmd       *exec.Cmd
	exited    chan struct{}
	log       *bytes.Buffer // complete once exited is closed
}

// begin starts a server of a model and does not wait until it answers.
func begin(t testing.TB, model string, flags ...string) *server {
	t.Helper()
	dir := tools(t)
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr) // which freeAddr wrote
	s := &server{url: "http://" + addr + "/v1", addr: addr, exited: make(chan struct{}), log: &bytes.Buffer{}}
	args := append([]string{"-m", unpack(t, dir, model), "--host", "127.0.0.1", "--port", port, "-c", "16384", "-np", fmt.Sprint(slots), "-t", "1",
		"--alias", model, "--no-ui", "--offline", "--jinja"}, flags...)
	s.cmd = exec.Command(filepath.Join(dir, "bin", "llama-server"), args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // it is killed in the end
		close(s.exited)
	}()
	t.Cleanup(s.kill)
	return s
}

// start starts a server and returns once its model is loaded.
func start(t testing.TB, model string, flags ...string) *server {
	t.Helper()
	s := begin(t, model, flags...)
	s.await(t, func() bool {
		resp, err := http.Get("http://" + s.addr + "/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return s
}

// await returns once ready is true. The test ends if the server does, or after a minute.
func (s *server) await(t testing.TB, ready func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); !ready(); {
		select {
		case <-tick.C:
		case <-s.exited:
			t.Fatalf("the server ended:\n%s", s.log)
		case <-ctx.Done():
			t.Fatal("the server is not ready")
		}
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A cutter passes connections on to a server, and cuts each answer off after a number of bytes.
type cutter struct {
	url   string
	after int
	reset bool
}

func cut(t testing.TB, s *server, after int, reset bool) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{url: "http://" + l.Addr().String() + "/v1", after: after, reset: reset}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.pass(conn.(*net.TCPConn), s.addr) })
		}
	})
	return c
}

func (c *cutter) pass(client *net.TCPConn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = io.Copy(server, client) })
	_, _ = io.CopyN(client, server, int64(c.after))
	if c.reset {
		_ = client.SetLinger(0)
	}
	client.Close()
	server.Close()
	sending.Wait()
}
