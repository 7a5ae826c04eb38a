package lathetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/recording"
	"github.com/lathe-run/lathe/secret"
)

// recordVariable is the environment variable that makes [Recorded] record.
const recordVariable = "LATHE_RECORD"

// Recorded returns a model that answers from a recording of a real model, without a network. The recording is in file, such as
// testdata/refund.json. If the environment variable LATHE_RECORD is set, Recorded makes the recording instead: it passes each request to
// the model that open returns, and writes the file at the end of the test, unless the test has failed. Otherwise open is not called.
//
// A request gets the first unused answer to an equal request. If the recording has no such answer, the model call ends with an error of
// code invalid_request and the test fails: the message names the first difference. The test also fails if an answer is not used. The ids of
// runs and requests are not compared, nor how the ids of calls are written. A time or a random text in a message is a difference: set
// [loop.Options].Now, or use testing/synctest.
//
// An answer has the text, reasoning and calls of the message as deltas; the deltas of the server are not recorded. Failures of a server are
// recorded. The file has the requests and the answers as JSON with a version, and no address, header or key of the server. If something in
// the file would look like a key, the test fails and nothing is written. Several models can answer from one file, but only one model of a
// test process may record it: a second one, which would overwrite what the first has recorded, fails its test.
func Recorded(t testing.TB, file string, open func() (lathe.Model, error)) lathe.Model {
	t.Helper()
	m := &recorded{t: t, file: file}
	if os.Getenv(recordVariable) != "" {
		m.record(open)
		return m
	}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = m.read(raw)
	}
	if err != nil {
		t.Fatalf("lathetest.Recorded: %v: record it with %s=1 go test", err, recordVariable)
	}
	t.Cleanup(m.checkUsed)
	return m
}

// record makes m record the model that open returns.
func (m *recorded) record(open func() (lathe.Model, error)) {
	m.t.Helper()
	before, found := recordings.LoadOrStore(m.file, m)
	other := before.(*recorded)
	isRepeated := other.ended.Load() && other.t.Name() == m.t.Name() // go test -count 2
	if found && !isRepeated {
		m.t.Fatalf("lathetest.Recorded: %s is recorded by %s already: give each recording a file of its own", m.file, other.t.Name())
	}
	recordings.Store(m.file, m)
	var err error
	if m.real, err = open(); err != nil {
		m.t.Fatalf("lathetest.Recorded: %v", err)
	}
	m.Version = recordedVersion
	m.Model = m.real.Describe()
	m.Model.Server = ""
	m.t.Cleanup(m.write)
}

// recordings are the last models that record, by file.
var recordings sync.Map

// recordedVersion is the version of the JSON form of a recording. Members are added, never renamed; a form that an older program would read
// with a different meaning has a later version.
const recordedVersion = 1

// A recorded is a model that records, if real is not nil, or replays.
type recorded struct {
	t    testing.TB
	file string
	real lathe.Model

	ended atomic.Bool // the test has ended

	mu sync.Mutex
	recordedFile
	used []bool // by exchange
}

// A recordedFile is the JSON form of a recording.
type recordedFile struct {
	Version   int                `json:"version"`
	Model     lathe.ModelInfo    `json:"model"` // without Server
	Exchanges []recordedExchange `json:"exchanges"`
}

type recordedExchange struct {
	Request json.RawMessage `json:"request"` // a recordedRequest
	recording.Result
}

type recordedRequest struct {
	Model             string            `json:"model,omitempty"`
	Messages          []lathe.Message   `json:"messages"`
	Tools             []recordedTool    `json:"tools,omitempty"`
	ToolChoice        string            `json:"tool_choice,omitempty"` // a mode, or "function NAME"
	ParallelToolCalls *bool             `json:"parallel_tool_calls,omitempty"`
	Sampling          lathe.Sampling    `json:"sampling,omitzero"`
	Overrides         []lathe.Member    `json:"overrides,omitempty"`
	HostedTools       []json.RawMessage `json:"hosted_tools,omitempty"`
}

type recordedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// recordedForm returns the JSON of a request. Calls have the ids call_1, call_2 and so on, since a program may generate them.
func recordedForm(req *lathe.Request) (json.RawMessage, error) {
	r := recordedRequest{Model: req.Model, Messages: slices.Clone(req.Messages), ToolChoice: strings.TrimSpace(req.ToolChoice.Mode + " " + req.ToolChoice.Name),
		ParallelToolCalls: req.ParallelToolCalls, Sampling: req.Sampling, Overrides: req.Overrides, HostedTools: req.HostedTools}
	for _, spec := range req.Tools {
		r.Tools = append(r.Tools, recordedTool{spec.Name, spec.Description, spec.Schema})
	}
	ids := map[string]string{}
	written := func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("call_%d", len(ids)+1)
		}
		return ids[id]
	}
	for i := range r.Messages {
		parts := slices.Clone(r.Messages[i].Parts)
		for n, p := range parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				p.ID = written(p.ID)
				parts[n] = p
			case lathe.ToolResult:
				p.CallID = written(p.CallID)
				parts[n] = p
			default: // a part without an id of a call
			}
		}
		r.Messages[i].Parts = parts
	}
	return json.Marshal(&r)
}

// Describe implements [lathe.Model]. It returns the description of the recorded model, without the address of its server.
func (m *recorded) Describe() lathe.ModelInfo { return m.Model }

// Generate implements [lathe.Model].
func (m *recorded) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		form, err := recordedForm(req)
		switch {
		case err != nil:
			yield(lathe.Delta{}, lathe.CodeInvalidRequest.Wrap("lathetest: recorded model", err))
		case m.real != nil:
			for d, err := range m.real.Generate(ctx, req) {
				if r, ok := recording.Of(d, err); ok {
					m.mu.Lock()
					m.Exchanges = append(m.Exchanges, recordedExchange{form, r})
					m.mu.Unlock()
				}
				if !yield(d, err) {
					return
				}
			}
		default:
			m.replay(ctx, form, yield)
		}
	}
}

func (m *recorded) replay(ctx context.Context, form json.RawMessage, yield func(lathe.Delta, error) bool) {
	e, err := m.take(form)
	if err != nil {
		m.t.Errorf("%v", err)
		yield(lathe.Delta{}, err)
		return
	}
	last, err := e.Replay()
	if err == nil {
		for _, d := range deltasOf(&last.Finish.Message) {
			if ctx.Err() != nil {
				err = lathe.CodeCancelled.Wrap("lathetest: recorded model", context.Cause(ctx))
				break
			}
			if !yield(d, nil) {
				return
			}
		}
	}
	if err != nil {
		last = lathe.Delta{}
	}
	yield(last, err)
}

// take returns the answer to a request.
func (m *recorded) take(form json.RawMessage) (*recordedExchange, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	difference := ""
	for i := range m.Exchanges {
		if m.used[i] {
			continue
		}
		d := differs(m.Exchanges[i].Request, form)
		if d == "" {
			m.used[i] = true
			return &m.Exchanges[i], nil
		}
		if difference == "" {
			difference = fmt.Sprintf("the next request, number %d of the recording, has %s", i+1, d)
		}
	}
	return nil, lathe.CodeInvalidRequest.Errorf("lathetest: recorded model", "%s does not have this request: %s. If the change is right, record again with %s=1 go test", m.file, cmp.Or(difference, "the recording has no further answer"), recordVariable)
}

// differs returns the first difference of two requests, with its path; "": they are equal.
func differs(recorded, now json.RawMessage) string {
	var was, is any
	if err := errors.Join(json.Unmarshal(recorded, &was), json.Unmarshal(now, &is)); err != nil {
		return "a request that is not JSON"
	}
	return differsIn("", was, is)
}

func differsIn(path string, was, is any) string {
	oldObject, wasObject := was.(map[string]any)
	newObject, isObject := is.(map[string]any)
	if wasObject && isObject {
		return membersDiffer(path, oldObject, newObject)
	}
	oldList, wasList := was.([]any)
	newList, isList := is.([]any)
	if wasList && isList {
		for i := range min(len(oldList), len(newList)) {
			if d := differsIn(fmt.Sprintf("%s[%d]", path, i), oldList[i], newList[i]); d != "" {
				return d
			}
		}
		if len(oldList) != len(newList) {
			return fmt.Sprintf("%d %s, not %d", len(oldList), path, len(newList))
		}
		return ""
	}
	if was == is { // they differ in type, or neither is an object or a list
		return ""
	}
	old, _ := json.Marshal(was)
	now, _ := json.Marshal(is)
	return fmt.Sprintf("%s %.300s, not %.300s", path, old, now)
}

// membersDiffer compares the members of was by name, and then those that only is has.
func membersDiffer(path string, was, is map[string]any) string {
	names := slices.Sorted(maps.Keys(was))
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if d := differsIn(strings.TrimPrefix(path+"."+name, "."), was[name], is[name]); d != "" {
			return d
		}
	}
	return ""
}

// read parses a recording.
func (m *recorded) read(raw []byte) error {
	if err := json.Unmarshal(raw, &m.recordedFile); err != nil {
		return fmt.Errorf("%s is not a recording: %w", m.file, err)
	}
	if m.Version != recordedVersion {
		return fmt.Errorf("%s has version %d, want %d", m.file, m.Version, recordedVersion)
	}
	for i := range m.Exchanges {
		if e := &m.Exchanges[i]; e.Finish == nil && e.Failure == nil {
			return fmt.Errorf("%s: exchange %d has no result", m.file, i+1)
		}
	}
	m.used = make([]bool, len(m.Exchanges))
	return nil
}

// namesSecret reports whether a text in a JSON document names a secret and has its value. A name alone, as in the schema of a tool, is none.
func namesSecret(document []byte) bool {
	var walk func(name string, v any) bool
	walk = func(name string, v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for name, v := range v {
				if walk(name, v) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, func(v any) bool { return walk("", v) })
		case string:
			text := name + ": " + v
			return secret.ScrubProse(v) != v || secret.ScrubProse(text) != text
		}
		return false
	}
	var v any
	return json.Unmarshal(document, &v) == nil && walk("", v)
}

// write writes the recording, if the test has not failed.
func (m *recorded) write() {
	m.ended.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.t.Failed() {
		return
	}
	if err := m.writeFile(); err != nil {
		m.t.Errorf("lathetest.Recorded: %v", err)
	}
}

func (m *recorded) writeFile() error {
	raw, err := json.MarshalIndent(&m.recordedFile, "", " ")
	if err != nil {
		return err
	}
	if secret.NewFinder(nil, true).Has(raw) || namesSecret(raw) {
		return fmt.Errorf("%s is not written: something in it looks like a key", m.file)
	}
	if err := os.MkdirAll(filepath.Dir(m.file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(m.file, append(raw, '\n'), 0o644)
}

// checkUsed fails the test if it did not make all recorded model calls.
func (m *recorded) checkUsed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	unused := 0
	for _, used := range m.used {
		if !used {
			unused++
		}
	}
	if unused > 0 && !m.t.Failed() {
		m.t.Errorf("lathetest.Recorded: %d of the %d model calls in %s were not made. If the change is right, record again with %s=1 go test", unused, len(m.used), m.file, recordVariable)
	}
}
