package mcp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

type pair struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sum struct {
	Sum int `json:"sum"`
}

func adder() *tool.Runner {
	add := tool.Func("add", "Adds two numbers.", func(_ context.Context, p pair) (sum, error) { return sum{p.A + p.B}, nil },
		&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	set, err := tool.NewSet(add)
	if err != nil {
		log.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		panic(err)
	}
	return runner
}

func Example() {
	s := mcp.New(adder(), &mcp.Options{Name: "sums", Version: "1.0.0"})
	defer s.Close()
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":7,"b":35}}}
`)
	if err := s.ServeStdio(context.Background(), in, os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true}},"protocolVersion":"2025-11-25","serverInfo":{"name":"sums","version":"1.0.0"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"sum\":42}"}],"structuredContent":{"sum":42}}}
}

func ExampleServer_Handler() {
	s := mcp.New(adder(), nil)
	defer s.Close()
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":7,"b":35},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest(http.MethodPost, web.URL, strings.NewReader(call))
	if err != nil {
		log.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "add"} {
		req.Header.Set(name, value)
	}
	res, err := web.Client().Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	_, structured, _ := strings.Cut(string(b), `"structuredContent":`)
	fmt.Println(res.Status, structured[:len(`{"sum":42}`)])
	// Output: 200 OK {"sum":42}
}
