package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// runImage starts the image's program with the image's configuration, but at a port of its own: in the unpacked root and as
// the image's user if the test runs as root and the program is that of a release, else where it was unpacked.
func runImage(t *testing.T, root string, config map[string]any) {
	t.Helper()
	list := func(key string) (out []string) {
		for _, v := range config[key].([]any) {
			out = append(out, v.(string))
		}
		return out
	}
	if err := os.WriteFile(filepath.Join(root, "etc/lathe/lathe.yaml"), []byte("audit: {path: audit.jsonl}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	alone := full && os.Getuid() == 0
	if alone {
		for _, c := range []struct {
			path string
			mode os.FileMode
		}{{"", 0o755}, {"var/lib/lathe", 0o700}} {
			if err := os.Chmod(filepath.Join(root, c.path), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(filepath.Join(root, "var/lib/lathe"), imageUser, imageUser); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "lathe"))
		cmd.Env, cmd.Dir = list("Env"), root
		if alone {
			cmd.Path, cmd.Dir = "/lathe", "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
		} else {
			for i := range args {
				args[i] = strings.NewReplacer("/var/lib/", root+"/var/lib/", "/etc/", root+"/etc/").Replace(args[i])
			}
			for i, v := range cmd.Env {
				cmd.Env[i] = strings.Replace(v, "/var/lib/", root+"/var/lib/", 1)
			}
		}
		cmd.Args = append([]string{"/lathe"}, args...)
		return cmd
	}
	out, err := command("tools", "call", "get_current_time", `{"zone":"Asia/Tokyo"}`).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "+09:00") {
		t.Errorf("time zones: %v\n%s", err, out)
	}
	args := list("Cmd")
	for i := range args {
		args[i] = strings.Replace(args[i], "0.0.0.0:8700", "127.0.0.1:0", 1) // other addresses require keys
	}
	server := command(args...)
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var text, addr string
	for addr == "" && lines.Scan() {
		text += lines.Text() + "\n"
		if m := regexp.MustCompile(`lathe serves on http://(\S+)/v1`).FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
	}
	if addr == "" {
		_ = server.Process.Kill()
		t.Fatalf("the server does not start: %v\n%s", server.Wait(), text)
	}
	health := config["Healthcheck"].(map[string]any)["Test"].([]any)
	var probe []string
	for _, v := range health[2:] { // CMD and the program
		probe = append(probe, strings.Replace(v.(string), "127.0.0.1:8700", addr, 1))
	}
	if out, err := command(probe...).CombinedOutput(); err != nil || string(out) != "ready\n" {
		t.Errorf("the health check: %v\n%s", err, out)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		text += lines.Text() + "\n"
	}
	if err := server.Wait(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, name := range []string{"runs.db", "audit.jsonl"} {
		if _, err := os.Stat(filepath.Join(root, "var/lib/lathe", name)); err != nil {
			t.Error(err)
		}
	}
	if out, err := command(probe...).CombinedOutput(); err == nil {
		t.Errorf("the health check of a server that stopped: %s", out)
	}
}
