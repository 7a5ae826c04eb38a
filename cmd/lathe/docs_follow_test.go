package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// block is a fenced code block of a document.
type block struct {
	language string
	file     string // a block "```yaml lathe.yaml" is the file lathe.yaml
	body     string // ends with a line end
	before   string // the text between the block before it and the block
}

// blocks returns the fenced code blocks of a document, in order.
func blocks(text string) []block {
	var all []block
	for {
		before, rest, ok := strings.Cut(text, "\n```")
		if !ok {
			return all
		}
		info, rest, _ := strings.Cut(rest, "\n")
		body, after, ok := strings.Cut("\n"+rest, "\n```")
		if !ok {
			return all
		}
		language, file, _ := strings.Cut(strings.TrimSpace(info), " ")
		all = append(all, block{language: language, file: file, body: strings.TrimPrefix(body+"\n", "\n"), before: before})
		text = after
	}
}

// commands returns the commands of a block with their answers. A command is a line that begins with "$ "; what follows up to
// the next is its answer. A line that ends with \ continues in the next one.
func (b *block) commands() (list []command) {
	for _, step := range strings.Split("\n"+strings.TrimSuffix(b.body, "\n"), "\n$ ")[1:] {
		line, answer, _ := strings.Cut(step, "\n")
		for strings.HasSuffix(line, `\`) {
			var next string
			next, answer, _ = strings.Cut(answer, "\n")
			line += "\n" + next
		}
		list = append(list, command{line: line, answer: answer})
	}
	return list
}

type command struct{ line, answer string }

// follower does what a reader of a page does, in one folder: it writes the files that the page shows and enters the commands
// of its console blocks.
type follower struct {
	ts         *testscript.TestScript
	page       string
	env        []string // names of variables that processes in the background get
	ports      map[string]string
	files      map[string]string // as the page shows them
	background []*served
	starts     map[*served]string // what the page shows when it starts them
}

var (
	announced  = regexp.MustCompile(`(?:serves|served|listens) on (https?)://[^\s/]*:([0-9]+)`)
	addrFlag   = regexp.MustCompile(`(--addr )(127\.0\.0\.1|localhost):([0-9]+)`)
	exported   = regexp.MustCompile(`^export (\w+)=(.*)$`)
	changedDir = regexp.MustCompile(`^cd (\S+)$`)
	killed     = regexp.MustCompile(`^kill (?:-(HUP|TERM) )?%([0-9]+)$`)
)

// followDocument writes the files of a document and runs the commands of its console blocks, in order, and compares what they
// say with what the document shows, stdout and stderr as they come. In an answer … stands for any text within a line, and alone
// for any lines.
//
// A command that ends with & runs in the background until the script ends, or until `kill %N`. Servers get ports of their own:
// the follower replaces the port that the page names, in later commands and in files. `export`, `cd` and `kill %N` act on the
// whole page, as in a shell. In tutorials a process in the background says nothing but what the page shows at its start.
func followDocument(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: docs file")
	}
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	f := &follower{ts: ts, page: filepath.Base(args[0]), ports: map[string]string{}, files: map[string]string{}, starts: map[*served]string{},
		env: []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "TZ", "SIM", "LATHE", "SEARCH_URL", "NOTES_URL", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"}}
	ts.Defer(f.stop)
	if ts.Getenv("HOME") == "/no-home" {
		ts.Check(os.Mkdir(ts.MkAbs("home"), 0o700))
		ts.Setenv("HOME", ts.MkAbs("home"))
	}
	ts.Setenv("LATHE_SERVE_ADDR", "127.0.0.1:0")
	f.env = append(f.env, "LATHE_SERVE_ADDR")
	ran := 0
	for _, b := range blocks(string(text)) {
		switch {
		case b.file != "":
			f.write(b.file, b.body)
		case b.language == "console":
			for _, c := range b.commands() {
				f.enter(c)
				ran++
			}
		}
	}
	for _, s := range f.background {
		f.checkTerminal(s)
	}
	if ran == 0 {
		ts.Fatalf("%s has no console block with a command", args[0])
	}
}

// write writes a file with the ports that the servers have.
func (f *follower) write(name, text string) {
	f.files[name] = text
	path := f.ts.MkAbs(name)
	f.ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	f.ts.Check(os.WriteFile(path, []byte(f.actual(text)), 0o644))
}

// actual replaces the ports of a page by those that the servers have, and shown does the reverse.
func (f *follower) actual(text string) string {
	for _, name := range sortedKeys(f.ports) {
		text = strings.NewReplacer("127.0.0.1:"+name, "127.0.0.1:"+f.ports[name], "localhost:"+name, "localhost:"+f.ports[name]).Replace(text)
	}
	return text
}

func (f *follower) shown(text string) string {
	for _, name := range sortedKeys(f.ports) {
		text = strings.ReplaceAll(text, "127.0.0.1:"+f.ports[name], "127.0.0.1:"+name)
	}
	return text
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (f *follower) enter(c command) {
	if line, ok := strings.CutSuffix(c.line, " &"); ok {
		f.start(line, c.answer)
		return
	}
	if m := killed.FindStringSubmatch(c.line); m != nil {
		f.kill(m[1], m[2])
		return
	}
	if m := changedDir.FindStringSubmatch(c.line); m != nil {
		f.ts.Check(f.ts.Chdir(m[1]))
		return
	}
	if m := exported.FindStringSubmatch(c.line); m != nil && !strings.ContainsAny(m[2], ";") {
		f.ts.Check(f.ts.Exec("sh", "-c", "printf %s "+f.actual(m[2])))
		f.ts.Setenv(m[1], f.ts.ReadFile("stdout"))
		f.env = append(f.env, m[1])
		return
	}
	server := ""
	if port := f.ports["8700"]; port != "" && f.ts.Getenv("LATHE_STORE") == "" && !strings.Contains(c.line, "LATHE_STORE") {
		server = "http://127.0.0.1:" + port // the port that commands use if none is named
	}
	f.ts.Setenv("LATHE_SERVER", server)
	// What a command answers is shown whatever its exit code.
	_ = exitCodeOf(f.ts, f.ts.Exec("sh", "-c", "{ "+f.actual(c.line)+"\n} 2>&1"))
	if got := f.shown(f.ts.ReadFile("stdout")); !likeDocument(c.answer).MatchString(strings.TrimRight(got, "\n") + "\n") {
		f.ts.Fatalf("%s shows for\n$ %s\n%s\n\nand the command says\n%s", f.page, c.line, c.answer, got)
	}
}

// start starts a command in the background. It returns when the command has said what the page shows, and, if the command is a
// server, where it serves.
func (f *follower) start(line, answer string) {
	documented := "8700"
	if m := addrFlag.FindStringSubmatch(line); m != nil {
		documented = m[3]
		line = strings.Replace(line, m[0], m[1]+m[2]+":0", 1)
	}
	cmd := exec.Command("sh", "-c", "exec "+f.actual(line)+" 2>&1")
	cmd.Dir = f.ts.MkAbs(".")
	for _, name := range f.env {
		cmd.Env = append(cmd.Env, name+"="+f.ts.Getenv(name))
	}
	out, err := cmd.StdoutPipe()
	f.ts.Check(err)
	f.ts.Check(cmd.Start())
	s := &served{cmd: cmd, output: &outputBuffer{more: make(chan struct{})}, done: make(chan struct{})}
	f.background = append(f.background, s)
	f.starts[s] = answer
	go s.read(out)
	if strings.Contains(line, "serve") {
		m := announced.FindStringSubmatch(s.output.wait(announced))
		if m == nil {
			f.ts.Fatalf("%s: %s did not say where it serves:\n%s", f.page, line, s.output.said())
		}
		f.ports[documented] = m[2]
		for name, text := range f.files { // written before the port was known
			if old := f.actual(text); old != text {
				f.write(name, text)
			}
		}
	}
	if answer == "" {
		return
	}
	pattern := regexp.MustCompile(strings.TrimSuffix(likeDocument(f.actual(answer)).String(), `\z`))
	if s.output.wait(pattern) == "" {
		f.ts.Fatalf("%s shows for\n$ %s &\n%s\n\nand the command says\n%s", f.page, line, answer, f.shown(s.output.said()))
	}
}

// checkTerminal compares all that a process in the background has said with what a tutorial shows at its start: the reader has one terminal,
// in which a line for each request would stand between later commands and their answers.
func (f *follower) checkTerminal(s *served) {
	want, checked := f.starts[s]
	delete(f.starts, s)
	if !checked || !strings.HasPrefix(f.page, "tutorial-") && f.page != "first-tool.md" {
		return
	}
	if got := f.shown(s.output.said()); !likeDocument(want).MatchString(strings.TrimRight(got, "\n") + "\n") {
		f.ts.Fatalf("%s shows that a process in the background says\n%s\n\nand in the terminal it says\n%s", f.page, want, got)
	}
}

// read collects what a process writes until it ends.
func (s *served) read(out io.Reader) {
	defer close(s.done)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		s.output.add(line, err != nil)
		if err != nil {
			return
		}
	}
}

func (s *outputBuffer) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// kill sends a signal to the process that was started as the n-th in the background; after TERM it waits for its end.
func (f *follower) kill(name, number string) {
	n, err := strconv.Atoi(number)
	f.ts.Check(err)
	if n < 1 || n > len(f.background) {
		f.ts.Fatalf("%s: there is no process %%%d", f.page, n)
	}
	s := f.background[n-1]
	if name == "HUP" {
		f.ts.Check(s.cmd.Process.Signal(syscall.SIGHUP))
		return
	}
	f.checkTerminal(s)
	f.ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	s.end()
}

// end waits for the end of a process that was asked to end, and kills it if it takes a minute.
func (s *served) end() {
	late := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() }) // it may be gone
	defer late.Stop()
	<-s.done
	_ = s.cmd.Wait() // its exit code is that of the signal
}

func (f *follower) stop() {
	for _, s := range slices.Backward(f.background) {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Signal(os.Interrupt) // it may be gone
			s.end()
		}
	}
}

// useGo lets a script compile programs offline with this repository: `gosource`.
func useGo(ts *testscript.TestScript, _ bool, _ []string) {
	cmd := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS")
	out, err := cmd.Output()
	ts.Check(err)
	values := strings.Split(string(out), "\n")
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS"} {
		ts.Setenv(name, values[i])
	}
	ts.Setenv("GOPROXY", "off")
	ts.Setenv("LATHE_CLONE", filepath.Dir(ts.Getenv("DOCS")))
}
