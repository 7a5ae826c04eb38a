package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestStdioAnswersEveryLine(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 80) + strings.Repeat("]", 80)
	tests := []struct {
		name, line string
		id         string // of the answer; "" none
		want       string // in the answer
	}{
		{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":12345678901234567890.10}}}`, "1", `"structuredContent":{"n":12345678901234567890.10}`},
		{"call without arguments", `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo"}}`, `"a"`, `"structuredContent":{}`},
		{"ping", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "2", `"result":{}`},
		{"no JSON", `nope`, "null", `-32700`},
		{"nothing", `   `, "", ``},
		{"trailing data", `{"jsonrpc":"2.0","id":3,"method":"ping"} x`, "null", `trailing_data`},
		{"two values", `{"jsonrpc":"2.0","id":3,"method":"ping"}{}`, "null", `-32700`},
		{"duplicate key in arguments", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"\u0061":2}}}`, "4", `duplicate_key`},
		{"duplicate name", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","name":"echo","arguments":{}}}`, "5", `-32600`},
		{"duplicate id", `{"jsonrpc":"2.0","id":6,"id":7,"method":"ping"}`, "null", `duplicate_key`},
		{"other case", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"NAME":"echo","arguments":{}}}`, "8", `names no tool`},
		{"other case of method", `{"jsonrpc":"2.0","id":9,"METHOD":"ping"}`, "9", `neither a request nor a response`},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"a\":\"\xff\"}}}", "null", `invalid_utf8`},
		{"lone surrogate", `{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"echo","arguments":{"a":"\ud800"}}}`, "11", `lone_surrogate`},
		{"too deep", `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"a":` + deep + `}}}`, "12", `too_deep`},
		{"deep for the runner", `{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"echo","arguments":{"a":` + deep[14:146] + `}}}`, "13", `too_deep`},
		{"batch", `[{"jsonrpc":"2.0","id":14,"method":"ping"}]`, "null", `batches`},
		{"a text", `"hello"`, "null", `-32600`},
		{"no version", `{"id":15,"method":"ping"}`, "15", `-32600`},
		{"other version", `{"jsonrpc":"1.0","id":15,"method":"ping"}`, "15", `-32600`},
		{"broken id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "null", `the id is neither`},
		{"large id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "null", `the id is neither`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", `the id is neither`},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, "null", `the id is neither`},
		{"object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", `the id is neither`},
		{"number as method", `{"jsonrpc":"2.0","id":16,"method":5}`, "16", `-32600`},
		{"empty method", `{"jsonrpc":"2.0","id":16,"method":""}`, "16", `-32600`},
		{"params as list", `{"jsonrpc":"2.0","id":17,"method":"tools/list","params":[]}`, "17", `params is not an object`},
		{"unknown method", `{"jsonrpc":"2.0","id":18,"method":"tools/destroy"}`, "18", `-32601`},
		{"not served", `{"jsonrpc":"2.0","id":19,"method":"resources/list"}`, "19", `-32601`},
		{"notification with an id", `{"jsonrpc":"2.0","id":20,"method":"notifications/initialized"}`, "20", `-32601`},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/nonsense"}`, "", ``},
		{"call without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`, "", ``},
		{"response to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}`, "", ``},
		{"result and error", `{"jsonrpc":"2.0","id":98,"result":{},"error":{"code":1,"message":"x"}}`, "98", `-32600`},
		{"unknown tool", `{"jsonrpc":"2.0","id":21,"method":"tools/call","params":{"name":"nope"}}`, "21", `"code":-32602,"message":"unknown tool","data":{"ok":false,"error":{"code":"unknown_tool"`},
		{"arguments as list", `{"jsonrpc":"2.0","id":22,"method":"tools/call","params":{"name":"echo","arguments":[1]}}`, "22", `"invalid_json"`},
		{"bad cursor", `{"jsonrpc":"2.0","id":23,"method":"tools/list","params":{"cursor":"` + strings.Repeat("A", 2000) + `"}}`, "23", `no such cursor`},
		{"strange cursor", `{"jsonrpc":"2.0","id":24,"method":"tools/list","params":{"cursor":"AAAA"}}`, "24", `-32602`},
		{"second initialize", strings.Replace(hello, `"id":0`, `"id":25`, 1), "25", `"error"`},
		{"discover of the other era", `{"jsonrpc":"2.0","id":26,"method":"server/discover","params":{` + meta + `}}`, "26", `"supportedVersions"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil, nil, reader("echo", echo))
			got := r.lines(nil, hello, ready, tt.line, `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
			if len(got[`"last"`]) != 1 || len(got["0"]) != 1 {
				t.Errorf("the session did not go on: %v", got)
			}
			delete(got, `"last"`)
			delete(got, "0")
			if tt.id == "" {
				if len(got) != 0 {
					t.Errorf("answered %v, want nothing", got)
				}
				return
			}
			if len(got) != 1 || len(got[tt.id]) != 1 || !strings.Contains(got[tt.id][0], tt.want) {
				t.Errorf("answered %v, want one with id %s and %s", got, tt.id, tt.want)
			}
		})
	}
}

func TestStdioBothErasInOneProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("echo", echo))
	got := r.lines(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},`+meta+`}}`)
	if len(got["1"]) != 1 || !strings.Contains(got["1"][0], `"resultType":"complete"`) || !strings.Contains(got["1"][0], `"structuredContent":{"a":1}`) {
		t.Errorf("got %v", got)
	}
	got = r.lines(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`)
	if len(got["1"]) != 1 || !strings.Contains(got["1"][0], `"error"`) {
		t.Errorf("a call before initialize was answered %v", got)
	}
	var protocols []string
	for _, e := range r.log.all() {
		if s, ok := e.Data.(*event.RunStarted); ok {
			protocols = append(protocols, s.Labels["transport"]+" "+s.Labels["protocol"])
		}
	}
	if diff := cmp.Diff([]string{"stdio 2026-07-28"}, protocols); diff != "" {
		t.Error(diff)
	}
}

// The input may end right after the last request: it is still answered.
func TestStdioAnswersBeforeItEnds(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, nil, reader("slow", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-release
		return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
	}))
	go func() {
		<-began
		close(release)
	}()
	got := r.lines(nil, hello, ready, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	if len(got["1"]) != 1 || !strings.Contains(got["1"][0], `"text":"done"`) {
		t.Errorf("got %v", got)
	}
}

func TestStdioDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	r := newRig(t, nil, &mcp.Options{Drain: 1}, reader("stuck", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	in, out := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- r.server.ServeStdio(t.Context(), in, io.Discard, nil) }()
	if _, err := io.WriteString(out, hello+"\n"+ready+"\n"+call(1, "stuck", `{}`)+"\n"); err != nil {
		t.Fatal(err)
	}
	<-began
	_ = out.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if types := r.log.types(); types[len(types)-1] != "RunFinished" {
		t.Errorf("the call has no end: %v", types)
	}
}

func TestStdioEndsWithItsContext(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	r := newRig(t, nil, nil, reader("stuck", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- r.server.ServeStdio(ctx, in, io.Discard, nil) }()
	for _, line := range []string{hello, ready, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck"}}`} {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	<-began
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = out.Close()
	if n := r.server.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestStdioCancellationCancelsTheCall(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, nil, reader("stuck", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}))
	in, out := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- r.server.ServeStdio(t.Context(), in, io.Discard, nil) }()
	send := func(line string) {
		t.Helper()
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	send(hello)
	send(ready)
	send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck"}}`)
	<-began
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-ended
	_ = out.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	events := r.log.all()
	if f, ok := events[len(events)-1].Data.(*event.RunFinished); !ok || f.Reason != lathe.ReasonCancelled {
		t.Errorf("the run ended %+v", events[len(events)-1].Data)
	}
}

// T15: a message has a limit, before anything is decoded; the next one is read as ever.
func TestT15_StdioBoundsMessages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 1} {
		line := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`
		const limit = 70_000 // longer than one read
		line += strings.Repeat("x", limit+n-len(line)-3) + `"}}`
		r := newRig(t, nil, &mcp.Options{MaxMessageBytes: limit})
		got := r.lines(nil, hello, ready, line, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if refused := len(got["null"]) == 1; refused != (n > 0) || len(got["2"]) != 1 {
			t.Errorf("%+d bytes: %v", n, got)
		}
	}
}

func TestStdioReportsThatTheReaderIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	in, out := io.Pipe()
	_ = in.CloseWithError(io.ErrClosedPipe)
	if err := r.server.ServeStdio(t.Context(), strings.NewReader("nope\nnope\n"), out, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

// FuzzStdio: whatever a client writes, each line of the answer is strict JSON-RPC, and the session
// that was opened before is still served after.
func FuzzStdio(f *testing.F) {
	for _, s := range []string{"nope", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x",` + meta + `}}`, `{"jsonrpc":"2.0","id":1,"id":"\ud800"}`, "[]", "{\"id\":\"\xff\",\"a\":1,\"a\":2}",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1e99}}`, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`} {
		f.Add([]byte(s))
	}
	set, err := tool.NewSet(reader("echo", echo))
	if err != nil {
		f.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := mcp.New(runner, &mcp.Options{Drain: 1e9})
		defer s.Close()
		var out bytes.Buffer
		in := bytes.NewBufferString(hello + "\n" + ready + "\n")
		in.Write(raw)
		in.WriteString("\n" + `{"jsonrpc":"2.0","id":"the end","method":"ping"}` + "\n")
		if err := s.ServeStdio(t.Context(), in, &out, nil); err != nil {
			t.Fatal(err)
		}
		ended := false
		lines := bufio.NewScanner(&out)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			if err := rawjson.Check(lines.Bytes(), rawjson.Limits{MaxDepth: 200}); err != nil {
				t.Fatalf("%v: %q", err, lines.Bytes())
			}
			if v, _ := rawjson.Get(lines.Bytes(), "jsonrpc"); string(v) != `"2.0"` {
				t.Fatalf("not JSON-RPC: %q", lines.Bytes())
			}
			if id, _ := rawjson.Get(lines.Bytes(), "id"); string(id) == `"the end"` {
				ended = true
			}
		}
		if !ended {
			t.Fatalf("the session ended with %q", raw)
		}
	})
}
