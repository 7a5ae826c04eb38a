package mcptool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/leaktest"
)

// The test binary is also the MCP server that the tests talk to: with MCP_TEST_SERVER set it speaks
// JSON-RPC lines on its standard streams, with the faults that the variable names.
const serverEnv = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode, ok := os.LookupEnv(serverEnv); ok {
		serveTest(mode)
		os.Exit(0)
	}
	leaktest.Main(m)
}

type testMessage struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// testTools are what the server offers where MCP_TEST_TOOLS names no file with something else.
const testTools = `[
{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},
{"name":"any.thing","description":"Takes anything.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}
]`

type testServer struct {
	mode  string
	out   *bufio.Writer
	lines *bufio.Scanner
}

func serveTest(mode string) {
	s := &testServer{mode: mode, out: bufio.NewWriter(os.Stdout), lines: bufio.NewScanner(os.Stdin)}
	s.lines.Buffer(nil, 1<<20)
	switch mode {
	case "exit":
		fmt.Fprintf(os.Stderr, "cannot \x1b[31mread %s\x1b[0m\n", os.Getenv("TOKEN"))
		os.Exit(3)
	case "deaf": // never reads
		time.Sleep(time.Hour)
	case "huge-start": // one line that does not end
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return
			}
		}
	case "once": // the second start fails
		if _, err := os.Stat(os.Getenv("MARK")); err == nil {
			os.Exit(4)
		}
		_ = os.WriteFile(os.Getenv("MARK"), nil, 0o600)
	}
	for {
		m, ok := s.read()
		if !ok {
			if mode == "immortal" {
				time.Sleep(time.Hour)
			}
			return
		}
		s.handle(m)
	}
}

func (s *testServer) read() (m testMessage, ok bool) {
	for s.lines.Scan() {
		m = testMessage{}
		if json.Unmarshal(s.lines.Bytes(), &m) == nil {
			return m, true
		}
	}
	return m, false
}

func (s *testServer) line(text string) {
	_, _ = s.out.WriteString(text + "\n")
	_ = s.out.Flush()
}

func (s *testServer) result(m testMessage, result string) {
	answer := `{"result":` + result + `,"jsonrpc":"2.0","id":` + string(m.ID) + `}`
	if s.mode == "batched" {
		answer = `[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},` + answer + `,5]`
	}
	s.line(answer)
}

func (s *testServer) text(m testMessage, text string) {
	b, _ := json.Marshal(text)
	s.result(m, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
}

func (s *testServer) handle(m testMessage) {
	if s.mode == "garbage" {
		s.line("INFO starting up, 100% {")
		s.line(`{"jsonrpc":"2.0","method":"notifications/`)
		s.line(`[]`)
		s.line(`"text"`)
	}
	switch m.Method {
	case "server/discover":
		if s.mode != "oldhang" {
			s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"method not found"}}`)
		}
	case "initialize":
		if s.mode == "hang" {
			return
		}
		s.result(m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{},"extensions":{"acme/x":{}}},"instructions":"Say it \u200btwice.","serverInfo":{"name":"test","version":"1"}}`)
	case "tools/list":
		tools := testTools
		if file := os.Getenv("MCP_TEST_TOOLS"); file != "" {
			b, _ := os.ReadFile(file)
			tools = string(b)
		}
		s.result(m, `{"tools":`+strings.ReplaceAll(tools, "\n", "")+`}`)
	case "ping":
		s.result(m, `{}`)
	case "tools/call":
		s.call(m)
	}
}

func (s *testServer) call(m testMessage) {
	var p struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Meta      map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if p.Name == "echo" {
		s.text(m, fmt.Sprint(p.Arguments["text"]))
		return
	}
	switch do, _ := p.Arguments["do"].(string); do {
	case "crash":
		os.Exit(7)
	case "hang":
		return
	case "progress": // until it is cancelled
		token, _ := json.Marshal(p.Meta["progressToken"])
		n, _ := p.Arguments["n"].(float64)
		for i := range int(n) {
			s.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
			time.Sleep(40 * time.Millisecond)
		}
		s.text(m, "done")
	case "cancelled": // answers what the next message is
		_ = os.WriteFile(os.Getenv("MARK")+".begun", nil, 0o600)
		next, _ := s.read()
		_ = os.WriteFile(os.Getenv("MARK"), []byte(next.Method), 0o600)
	case "huge":
		s.text(m, strings.Repeat("x", 50<<20))
	case "utf8":
		s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[{"type":"text","text":"` + "\xff\xfe" + `"}]}}`)
	case "twice": // two answers in one: a reader that takes the last sees another than one that takes the first
		s.result(m, `{"content":[{"type":"text","text":"first"}],"content":[{"type":"text","text":"second"}]}`)
	case "deep":
		s.result(m, `{"structuredContent":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`)
	case "abyss": // nested deeper than encoding/json decodes
		s.result(m, `{"structuredContent":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`)
	case "open":
		s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[`)
	case "raw":
		raw, _ := p.Arguments["result"].(string)
		s.result(m, raw)
	case "as": // answers with a message of the caller's, in which ID stands for the id
		raw, _ := p.Arguments["message"].(string)
		s.line(strings.ReplaceAll(raw, "ID", string(m.ID)))
	case "refuse":
		s.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no such \u001b[2J` + "\U000E0041" + `path"}}`)
	case "env":
		s.text(m, strings.Join(os.Environ(), "\n"))
	case "pid":
		s.text(m, fmt.Sprint(os.Getpid()))
	case "change":
		_ = os.WriteFile(os.Getenv("MCP_TEST_TOOLS"), []byte(p.Arguments["tools"].(string)), 0o600)
		s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.text(m, "changed")
	case "ask": // the server wants something of its client
		var got []string
		for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
			s.line(`{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":{"messages":[],"maxTokens":1,"message":"x","requestedSchema":{"type":"object"}}}`)
			answer, _ := s.read()
			got = append(got, method+" "+string(answer.Error))
		}
		s.text(m, strings.Join(got, "\n"))
	case "child": // leaves a grandchild that has its streams and does not end
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), serverEnv+"=deaf")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			s.text(m, err.Error())
			return
		}
		s.text(m, fmt.Sprint(c.Process.Pid))
	default:
		s.text(m, "{}")
	}
}
