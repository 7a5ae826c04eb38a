package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// mcpServer is an MCP server on standard streams for the scripts: `mcpserver FILE`. The file holds
// its definitions, a JSON array on one line. Its tools say their arguments again, but for `die`,
// which ends it.
func mcpServer() {
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || len(m.ID) == 0 {
			continue
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1.2.0"}}`
		case "tools/list":
			tools, err := os.ReadFile(os.Args[1])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			answer = `"result":{"tools":` + string(tools[:len(tools)-1]) + `}`
		case "tools/call":
			if m.Params.Name == "die" {
				fmt.Fprintln(os.Stderr, "asked to die")
				os.Exit(1)
			}
			text, err := json.Marshal(m.Params.Name + " " + string(m.Params.Arguments))
			if err != nil {
				os.Exit(1)
			}
			answer = `"result":{"content":[{"type":"text","text":` + string(text) + `}]}`
		}
		fmt.Fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", m.ID, answer)
		if out.Flush() != nil {
			return
		}
	}
}
