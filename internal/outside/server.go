package outside

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// App returns the gateway that `lathe serve` would run with the default configuration, with additional tools. The caller must close it.
func App(tools ...lathe.Tool) (*app.App, error) {
	cfg, err := app.LoadConfig("", &app.LoadOptions{Environ: []string{}, Settings: map[string]string{"tools.builtin": "calculator"}})
	if err != nil {
		return nil, err
	}
	return app.New(cfg, &app.Options{Tools: tools, NoStore: true})
}

// models are the models of a server, by name.
type models map[string]*loop.Loop

// Names implements server.Models.
func (m models) Names() []string { return slices.Sorted(maps.Keys(m)) }

// Model implements server.Models.
func (m models) Model(name string) (*server.Model, error) {
	if l := m[name]; l != nil {
		return &server.Model{Loop: l}, nil
	}
	return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: "outside: find the model"}
}

// Server returns a handler that serves one model with the tools of runner, without a configuration, and stores its runs in runs. stop waits
// for the active requests, and until their runs are stored.
func Server(name string, model lathe.Model, runner *tool.Runner, runs store.Store) (h http.Handler, stop func(context.Context) error, err error) {
	l, err := loop.New(model, runner, nil)
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.New(&engine.Options{Store: runs})
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.New(&server.Options{Engine: e, Setup: server.Setup{Models: models{name: l}}})
	if err != nil {
		return nil, nil, err
	}
	return srv, func(ctx context.Context) error {
		srv.Drain(ctx)
		return e.Flush(ctx, "")
	}, nil
}
