package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// A dbosApp is DBOS with one workflow: two model calls and one tool call, as steps.
type dbosApp struct{ ctx dbos.Context }

func newDBOS(ctx context.Context, url string) (*dbosApp, error) {
	c, err := dbos.NewContext(ctx, dbos.Config{AppName: "bench", DatabaseURL: url, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(c, threeSteps)
	return &dbosApp{c}, dbos.Launch(c)
}

func (a *dbosApp) close() { _ = dbos.Shutdown(a.ctx, time.Second) } // it is only measured

func threeSteps(ctx dbos.Context, question string) (string, error) {
	for i := range 3 {
		if _, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) { return fmt.Sprint("step ", i, question), nil }); err != nil {
			return "", err
		}
	}
	return "It is fine.", nil
}

func (a *dbosApp) run() error {
	h, err := dbos.RunWorkflow(a.ctx, threeSteps, "What is the weather?")
	if err != nil {
		return err
	}
	_, err = h.GetResult()
	return err
}
