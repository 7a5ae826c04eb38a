package mcptool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// The tools of a server are in a set, and stay what the server has.
func ExampleStart() {
	server := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "now", Description: "Says what time it is."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, "noon", nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	dir, err := os.MkdirTemp("", "lathe")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	set, err := tool.NewSet()
	if err != nil {
		panic(err)
	}
	group, err := mcptool.Start(context.Background(), []mcptool.Server{{
		Name: "clock", URL: web.URL, Required: true,
		Effects:   map[string]lathe.Effect{"now": lathe.ReadOnly},
		Allowlist: []string{"*"},
	}}, &mcptool.Options{Pins: mcptool.NewPins(filepath.Join(dir, "pins.json")), OnChange: set.Replace})
	if err != nil {
		panic(err)
	}
	defer group.Close()
	for _, sp := range set.Specs() {
		fmt.Println(sp.Name, sp.Effect, sp.Origin)
	}
	// Output: clock__now read_only mcp:clock
}
