package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A gateway that was not asked to keep runs has no file to append to or to sync: chat completions cost none.
func TestKeepsNothingUnasked(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("this system does not show the files of a process")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), lathePath(t), "serve", "--addr", "127.0.0.1:0")
	cmd.Dir = dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	url := ""
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://[0-9.:]+/v1`).FindString(lines.Text())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() { // so that the gateway never waits for who reads its log
		}
	}()
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(`{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(b), "42") {
			t.Errorf("%s, %v", b, err)
		}
		files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "fd", "*"))
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, f := range files {
			to, err := os.Readlink(f)
			info, serr := os.Stat(f)
			if err != nil || serr != nil || !info.Mode().IsRegular() || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "/sys/") || strings.HasPrefix(to, "/proc/") {
				continue // it is gone, or no file of a disk
			}
			t.Errorf("it has the file %s open", to)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	<-drained
	_ = cmd.Wait() // it was interrupted
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
