package approval_test

import (
	"encoding/json"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
)

// An approval for a session applies to the further calls of the tool in that session.
func ExampleGrants() {
	request := func(session, path string) *lathe.ApprovalRequest {
		return &lathe.ApprovalRequest{CallInfo: lathe.CallInfo{Run: &lathe.RunInfo{RunID: "run_1", SessionID: session},
			Tool: &lathe.ToolSpec{Name: "write_file"}, Args: json.RawMessage(`{"path":"` + path + `"}`)}}
	}
	var g approval.Grants
	if err := g.Add(request("chat-7", "a.txt"), approval.ScopeSession, "ann"); err != nil {
		panic(err)
	}
	fmt.Println(g.Allows(request("chat-7", "b.txt")))
	fmt.Println(g.Allows(request("chat-8", "b.txt")))
	g.EndSession("chat-7")
	fmt.Println(g.Allows(request("chat-7", "b.txt")))
	// Output:
	// ann true
	//  false
	//  false
}
