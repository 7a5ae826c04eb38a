// Command mcp offers the tools of an MCP server to a model. The server is one of Lathe's own, in the same process.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
	"github.com/lathe-run/lathe/tool/mcptool"
)

func main() {
	ctx := context.Background()
	server := mcp.New(runner(builtin.Calculator()), &mcp.Options{Name: "sums"})
	defer server.Close()
	web := httptest.NewServer(server.Handler())
	defer web.Close()

	dir := must(os.MkdirTemp("", "pins")) // accepted definitions are kept in a file
	defer func() { _ = os.RemoveAll(dir) }()
	group := must(mcptool.Start(ctx, []mcptool.Server{{Name: "sums", URL: web.URL, Required: true,
		Effects: map[string]lathe.Effect{"calculator": lathe.ReadOnly}, Allowlist: []string{"*"}}},
		&mcptool.Options{Pins: mcptool.NewPins(filepath.Join(dir, "pins.json"))}))
	defer func() { _ = group.Close() }()
	var tools []lathe.Tool
	for t, err := range group.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Spec().Name, "from", t.Spec().Origin)
		tools = append(tools, t)
	}
	l := must(loop.New(sim.New(nil).Model("sim/demo"), runner(tools...), nil))
	res := must(l.Do(ctx, &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}}))
	fmt.Println(res.Answer)
}

func runner(tools ...lathe.Tool) *tool.Runner {
	set := must(tool.NewSet(tools...))
	r := must(tool.NewRunner(set, &tool.Options{Policy: policy.Default()}))
	return r
}

// must returns v, or ends the program with the error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
