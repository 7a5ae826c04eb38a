// Command approval lets a person decide about the calls that change something.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A person approves calls whose question they answer with "y". It reads the answer from standard input.
type person struct{ in *os.File }

func (p person) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	fmt.Printf("call %s with %s? [y/N]\n", req.Tool.Name, req.Args)
	var answer string
	_, _ = fmt.Fscanln(p.in, &answer) // no answer denies
	return lathe.Approval{Approved: answer == "y", By: "terminal", ReasonCode: "denied_by_user"}, nil
}

type file struct {
	Name string `json:"name"`
}

func main() {
	remove := tool.Func("delete_file", "Deletes a file.", func(_ context.Context, f file) (string, error) {
		fmt.Println("deleted", f.Name) // or os.Remove
		return "deleted", nil
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
	tools, err := tool.NewSet(remove)
	if err != nil {
		log.Fatal(err)
	}
	runner, err := tool.NewRunner(tools, &tool.Options{Policy: policy.Default(), Approver: person{os.Stdin}})
	if err != nil {
		log.Fatal(err)
	}
	// A scripted model, so that the example needs no server.
	model := lathetest.NewModel(lathetest.Call("delete_file", `{"name":"notes.txt"}`), lathetest.Text("Done, or denied."))
	l, err := loop.New(model, runner, nil)
	if err != nil {
		log.Fatal(err)
	}
	res, err := l.Do(context.Background(), &loop.Input{Messages: []lathe.Message{lathe.User("Delete notes.txt.")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Answer)
}
