package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

// mostResult is the largest output of a tool that is measured.
const mostResult = 64 << 20

// resultLimits let a tool return mostResult.
var resultLimits = lathe.Limits{MaxOutputBytes: 2 * mostResult}

// results measures the way of a tool's output: through the runner, which checks it and leaves out what the allowlist does not name, and
// through a whole run, which hashes the conversation for the second model call and stores each event.
func results(s *settings) (*Chart, error) {
	c := &Chart{Title: "The result of a tool", Size: "bytes of the tool's output, of which three quarters are shown"}
	sizes := []int{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, mostResult}
	if s.quick {
		sizes = []int{1 << 10, 1 << 12, 1 << 14}
	}
	return c, s.operations(c, "One call", sizes, []measurement{
		{name: "runner: check, redaction, result", prepare: resultRunner},
		{name: "run of two model calls, not stored", prepare: func(n int) (func() error, func(), error) { return s.resultRun(n, false) }},
		{name: "run of two model calls, stored in SQLite", prepare: func(n int) (func() error, func(), error) { return s.resultRun(n, true) }},
	})
}

// A largeTool returns the same output for each call.
type largeTool struct{ output json.RawMessage }

func (*largeTool) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "search", Description: "Finds items.", Schema: json.RawMessage(`{"type":"object"}`), Effect: lathe.ReadOnly, Allowlist: []string{"items.id", "items.text"}, Origin: "bench"}
}

func (t *largeTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: t.output}, nil
}

// newLargeTool makes a tool whose output has about n bytes.
func newLargeTool(n int) *largeTool {
	const item = `{"id":%d,"text":"All work and no play \"makes\" Jack a dull boy, and Jill a dull girl.\nAll play and no work.","internal":"0123456789abcdef"}`
	b := bytes.NewBufferString(`{"items":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, item, i)
	}
	b.WriteString(`]}`)
	return &largeTool{b.Bytes()}
}

func newResultRunner(t *largeTool) (*tool.Runner, error) {
	set, err := tool.NewSet(t)
	if err != nil {
		return nil, err
	}
	return tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Limits: resultLimits})
}

func resultRunner(n int) (func() error, func(), error) {
	t := newLargeTool(n)
	r, err := newResultRunner(t)
	return func() error {
		result, err := r.Call(context.Background(), "search", json.RawMessage(`{}`))
		if err == nil && !shows(result, len(t.output)) {
			err = errAnswer
		}
		return err
	}, nil, err
}

// shows reports whether a result has at least half of n bytes, and nothing of what the allowlist leaves out.
func shows(r *lathe.Output, n int) bool {
	return 2*len(r.Data) >= n && !bytes.Contains(r.Data[:min(len(r.Data), 1000)], []byte("internal"))
}

// resultRun is a run in which a model calls the tool once, and answers.
func (s *settings) resultRun(n int, stored bool) (func() error, func(), error) {
	runner, err := newResultRunner(newLargeTool(n))
	if err != nil {
		return nil, nil, err
	}
	opts := &engine.Options{StoreTimeout: 5 * time.Minute} // the disk of a loaded machine
	stop := func() {}
	if stored {
		dir, err := os.MkdirTemp(s.dir, "results")
		if err != nil {
			return nil, nil, err
		}
		st, err := sqlite.Open(filepath.Join(dir, "runs.db"), nil)
		if err != nil {
			return nil, nil, err
		}
		opts.Store = st
		stop = func() { _ = errors.Join(st.Close(), os.RemoveAll(dir)) } // the folder goes with that of the bench, too
	}
	e, err := engine.New(opts)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return func() error {
		l, err := loop.New(lathetest.NewModel(lathetest.Call("search", `{}`), lathetest.Text("A short answer.")), runner, nil)
		if err != nil {
			return err
		}
		result, err := e.Run(context.Background(), l, &loop.Input{Messages: []lathe.Message{lathe.User("Find all.")}, Limits: &resultLimits}, nil)
		if err != nil {
			return err
		}
		return answered(result.Answer, nil)
	}, stop, nil
}
