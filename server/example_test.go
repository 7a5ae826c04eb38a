package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// one is the only model of a server.
type one struct{ loop *loop.Loop }

func (o one) Names() []string { return []string{"demo"} }

func (o one) Model(name string) (*server.Model, error) {
	if name != "demo" {
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: "find the model"}
	}
	return &server.Model{Loop: o.loop}, nil
}

func ExampleNew() {
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := loop.New(sim.New(nil).Model("sim/demo"), runner, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := engine.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := server.New(&server.Options{Engine: e, Setup: server.Setup{Models: one{l}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(g) // or g.Server(), which has the limits that strangers call for
	defer srv.Close()
	resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, strings.Contains(string(body), "7 + 35 = 42."), err)
	http.DefaultClient.CloseIdleConnections()
	// Output: 200 true <nil>
}
