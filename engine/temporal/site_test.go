package temporal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/tool"
)

// workerEnv has the site of a worker process, which is this test program executed again.
const workerEnv = "LATHE_TEMPORAL_WORKER"

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.M(m).Run())
}

// A site says how a process takes part in runs on a real server: the test, which starts runs and answers them, and its workers.
type site struct {
	Server, Database, Queue string
	Journal                 string        // the file that holds what the tools did
	Name                    string        // of the process
	Build                   string        // of its deployment version; "": the worker has no versioning
	Recorded                bool          // histories have no name of this machine
	Hang                    string        // a tool whose calls have their effect and do not return in this process
	Takes                   time.Duration // how long a call takes after it has had its effect
	TTL, Limit              time.Duration
}

// scenarios are what the model says in a run, whose prompt is "SCENE RUN": in each turn it calls these tools, and then it answers.
var scenarios = map[string][][]string{
	"two":    {{"look"}, {"ask_pay"}},
	"load":   {{"look", "put", "pay"}, {"mine", "ask_pay"}, {"remote", "look"}},
	"long":   {{"look", "pay"}, {"look", "pay"}, {"look", "ask_pay"}, {"look", "pay"}, {"look", "remote"}, {"pay"}},
	"tools":  {{"look"}, {"pay"}},
	"asks":   {{"ask_pay"}},
	"client": {{"mine"}},
	"queue":  {{"remote"}},
	"waits":  {{"wait"}},
}

var siteTools = map[string]enginetest.Tool{"look": {Effect: lathe.ReadOnly}, "wait": {Effect: lathe.ReadOnly}, "put": {Effect: lathe.Idempotent},
	"pay": {Effect: lathe.Writes}, "remote": {Effect: lathe.Writes}, "ask_pay": {Effect: lathe.Writes, Asks: true}}

// An entry is a line of the journal.
type entry struct {
	Kind string           `json:"kind"` // "model", "deed", or "event" of a sink
	Deed *enginetest.Deed `json:"deed,omitempty"`
	Run  string           `json:"run"`
	ID   int64            `json:"id,omitempty"` // of the event
}

// A journal is the world outside: each effect of a tool is a line, which is on the disk before the tool returns.
type journal struct {
	file *os.File
	mu   sync.Mutex
}

func (j *journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil || e.Kind != "deed" {
		return err
	}
	return j.file.Sync()
}

// A peer is what a process has of a site.
type peer struct {
	*site
	store   *postgres.Store
	client  client.Client
	flow    *Workflow
	journal *journal
}

// connect opens the store, the journal and the connection to the server.
func (s *site) connect(ctx context.Context) (*peer, error) {
	p := &peer{site: s}
	f, err := os.OpenFile(s.Journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.journal = &journal{file: f}
	if p.store, err = postgres.Open(ctx, s.Database, &postgres.Options{AllowUnsafeDurability: true}); err != nil {
		return nil, err
	}
	opts := client.Options{HostPort: s.Server, Identity: s.Name, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	if p.client, err = client.DialContext(ctx, opts); err != nil {
		return nil, err
	}
	e, err := engine.New(&engine.Options{Store: p.store, Lease: 2 * time.Second})
	if err != nil {
		return nil, err
	}
	approvals := approval.NewQueue(nil)
	var tools []lathe.Tool
	for name, t := range siteTools {
		spec := lathe.ToolSpec{Name: name, Description: "Does it.", Effect: t.Effect, Allowlist: []string{"*"},
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
		if name != "remote" {
			tools = append(tools, &effect{p, spec})
			continue
		}
		q, err := NewQueueTool(&spec, &QueueOptions{TaskQueue: s.Queue + "-tools", Heartbeat: 2 * time.Second})
		if err != nil {
			return nil, err
		}
		tools = append(tools, q)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, err
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Allow: []string{"look", "wait", "put", "pay", "remote"}, Ask: []string{"ask_pay"}}, Approver: approvals})
	if err != nil {
		return nil, err
	}
	l, err := loop.New(&scenarioModel{p}, runner, &loop.Options{Limits: lathe.Limits{ApprovalTTL: s.TTL, RunTimeout: s.Limit}})
	if err != nil {
		return nil, err
	}
	p.flow, err = NewWorkflow(l, &Options{Engine: e, Store: p.store, Approvals: approvals, Heartbeat: 2 * time.Second, Sinks: []event.Sink{p}})
	return p, err
}

// Emit implements [event.Sink].
func (p *peer) Emit(_ context.Context, e event.Event) {
	if !event.IsDelta(e.Data) {
		_ = p.journal.write(entry{Kind: "event", Run: e.RunID, ID: e.ID}) // what is missing is not counted: a process may end before it
	}
}

func (p *peer) close() {
	p.client.Close()
	_ = p.store.Close()
	_ = p.journal.file.Close()
}

// An effect is a tool that writes a line of the journal.
type effect struct {
	p    *peer
	spec lathe.ToolSpec
}

func (t *effect) Spec() *lathe.ToolSpec { return &t.spec }

func (t *effect) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	m := lathe.CallMetaFrom(ctx)
	if t.spec.Name == "wait" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	d := &enginetest.Deed{RunID: m.RunID, CallID: m.CallID, Tool: t.spec.Name, Key: m.IdempotencyKey, Args: slices.Clone(args), Process: t.p.Name}
	if err := t.p.journal.write(entry{Kind: "deed", Run: m.RunID, Deed: d}); err != nil {
		return nil, err
	}
	if t.p.Hang == t.spec.Name {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	t.p.take()
	return &lathe.Output{Data: json.RawMessage(fmt.Sprintf(`{"did":%q}`, m.CallID))}, nil
}

// take lets time pass in which the process may be killed.
func (p *peer) take() {
	if p.Takes > 0 {
		<-time.After(p.Takes)
	}
}

// remote is the activity of the tool on the other task queue.
func (p *peer) remote(_ context.Context, in *CallInput) (*CallResult, error) {
	d := &enginetest.Deed{RunID: in.RunID, CallID: in.CallID, Tool: in.Tool, Key: in.IdempotencyKey, Args: in.Arguments, Process: p.Name}
	if err := p.journal.write(entry{Kind: "deed", Run: in.RunID, Deed: d}); err != nil {
		return nil, err
	}
	p.take()
	return &CallResult{Data: json.RawMessage(fmt.Sprintf(`{"did":%q}`, in.CallID))}, nil
}

// scenarioModel says what the scenario of a run has.
type scenarioModel struct{ p *peer }

func (*scenarioModel) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *scenarioModel) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	scenario, run, _ := strings.Cut(req.Messages[0].Text(), " ")
	turn := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			turn++
		}
	}
	finish := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("done"), Usage: lathe.Usage{InputTokens: 1, TotalTokens: 1}}
	if turns := scenarios[scenario]; turn < len(turns) {
		finish.Reason, finish.Message = lathe.FinishToolCalls, lathe.Message{Role: lathe.RoleAssistant}
		for i, name := range turns[turn] {
			finish.Message.Parts = append(finish.Message.Parts, lathe.ToolCall{ID: fmt.Sprintf("c%d_%d", turn, i), Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, 10*turn+i)})
		}
	}
	return func(yield func(lathe.Delta, error) bool) {
		if err := m.p.journal.write(entry{Kind: "model", Run: run}); err != nil {
			yield(lathe.Delta{}, err)
			return
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: finish}, nil)
	}
}

// work is a worker process. It stops at SIGTERM, and when its input ends: the test is over, or was killed.
func work(text string) error {
	s := &site{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return err
	}
	if s.Recorded {
		worker.SetStickyWorkflowCacheSize(0) // the name of a sticky queue has that of the machine
	}
	p, err := s.connect(context.Background())
	if err != nil {
		return err
	}
	opts := worker.Options{StickyScheduleToStartTimeout: time.Second, DeploymentOptions: worker.DeploymentOptions{
		Version: worker.WorkerDeploymentVersion{DeploymentName: "agents", BuildID: "recorded"}}}
	if s.Build != "" {
		opts.DeploymentOptions.UseVersioning, opts.DeploymentOptions.Version.BuildID = true, s.Build
	}
	runs, tools := worker.New(p.client, s.Queue, opts), worker.New(p.client, s.Queue+"-tools", opts)
	p.flow.Register(runs)
	tools.RegisterActivityWithOptions(p.remote, activity.RegisterOptions{Name: "remote"})
	if err := errors.Join(runs.Start(), tools.Start()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	<-worker.InterruptCh()
	runs.Stop()
	tools.Stop()
	p.close()
	return nil
}

// A process is a child of the test.
type process struct {
	cmd   *exec.Cmd
	input io.Closer
	log   bytes.Buffer
	done  chan struct{}
	err   error
}

// begin starts a program. The child ends when its input is closed, and so when the test ends, however it ends.
func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{})}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.input, cmd.Stderr = input, &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
	_ = p.input.Close()
}

// stop ends the process with SIGTERM, and reports how it ended.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.kill()
		t.Errorf("%s does not end", p.cmd.Path)
	}
	if p.err != nil {
		t.Errorf("%s: %v\n%s", p.cmd.Path, p.err, p.log.String())
	}
}

// serve starts a worker process. change may alter its site.
func (p *peer) serve(t *testing.T, name string, change func(*site)) *process {
	t.Helper()
	own := *p.site
	own.Name = name
	if change != nil {
		change(&own)
	}
	text, err := json.Marshal(&own)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	return begin(t, cmd)
}

// startServer starts the Temporal server that `make temporal` builds, and returns its address.
func startServer(t *testing.T, binary string, args ...string) string {
	t.Helper()
	address, _ := launchServer(t, binary, args...)
	return address
}

// launchServer is startServer, and returns the process, too.
func launchServer(t *testing.T, binary string, args ...string) (string, *process) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"-stdin", "-db", t.TempDir() + "/temporal.db"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := begin(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log.String())
	}
	return strings.TrimSpace(line), p
}
