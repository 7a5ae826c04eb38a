// Package migratetest writes rows to a database of each schema version, and checks them after the current code has migrated the database.
// The tests of store/sqlite and store/postgres share it.
package migratetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A Store is a store of runs with all optional interfaces, so that every table can have a row.
type Store interface {
	store.Store
	store.Retainer // includes RunIndex
	store.SignalStore
	store.RequestStore
	store.SecretKeeper
	store.ValueKeeper
	store.Ledger
	remote.Queue // includes WorkerIndex
}

// A Kind is a kind of rows that a schema version added. Every version has runs, their events and model calls.
type Kind int

// Kinds of rows.
const (
	Signals Kind = iota
	Calls
	Gone
	Requests
	Secrets
	Values
	Ledger
	Messages
	kinds
)

// Since has, for each kind, the first schema version with these rows.
type Since [kinds]int

// Kinds has true for each kind of rows in a database.
type Kinds [kinds]bool

// In returns the kinds of rows in a database of a version.
func (s Since) In(version int) (k Kinds) {
	for i, first := range s {
		k[i] = version >= first
	}
	return k
}

// forever is a duration after which nothing in a test database has expired.
const forever = 876_000 * time.Hour

const (
	question = "Send Ann a mail."
	answer   = "The mail is sent."
	day      = "2026-11-23"
)

// conversation contains messages that are long enough to be stored apart from the events of their runs.
var conversation = []lathe.Message{lathe.User(strings.Repeat("A long question. ", 300)), lathe.User("And a short one.")}

// Digest is the digest of the request that started run_finished.
var Digest = store.RequestDigest(sha256.Sum256([]byte("a")))

// Write writes the contents of a test database: run_finished, two runs that wait for an approval (run_waiting, and run_signaled with a
// signal), and rows of each kind.
func Write(t *testing.T, s Store) {
	t.Helper()
	start(t, s, "run_gone", policy.AllowAll())
	if err := s.DeleteBefore(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	start(t, s, "run_finished", policy.AllowAll())
	for _, id := range []string{"run_waiting", "run_signaled"} {
		start(t, s, id, policy.Tools{Ask: []string{"send_mail"}})
	}
	Complete(t, s, Kinds{Gone: true})
}

var table = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// CheckRows fails t for each table of a dump that has no row, except the tables in but: a version that adds a table needs a [Kind].
func CheckRows(t *testing.T, stored string, but ...string) {
	t.Helper()
	for _, m := range table.FindAllStringSubmatch(stored, -1) {
		if !strings.Contains(stored, "\nINSERT INTO "+m[1]+" ") && !slices.Contains(but, m[1]) {
			t.Errorf("the stored database has no row in the table %s: write and check one in package migratetest", m[1])
		}
	}
}

// start executes a run until it ends or waits for an approval.
func start(t *testing.T, s Store, id string, p lathe.Policy) {
	t.Helper()
	l, _ := newLoop(t, p, leavesPending, lathetest.Call("send_mail", "{}"), lathetest.Text(answer))
	in := &loop.Input{Run: lathe.RunInfo{RunID: id, SessionID: "s1", Principal: "ann"}, Messages: []lathe.Message{lathe.User(question)},
		Limits: &lathe.Limits{RunTimeout: forever, ApprovalTTL: forever}, Park: true, Target: "mail"}
	if _, err := newEngine(t, s).Run(t.Context(), l, in, nil); err != nil {
		t.Fatal(err)
	}
}

// Complete writes the rows of each kind that is not in has, and returns has with these kinds added. It cannot write the kind Gone.
func Complete(t *testing.T, s Store, has Kinds) Kinds {
	t.Helper()
	ctx := t.Context()
	reservation := func(id string) *store.Reservation {
		limit := store.Limit{Nanos: 1_000_000, Tokens: 1_000_000}
		return &store.Reservation{ID: id, UsageKey: store.UsageKey{Day: day, Key: "ann", Group: "team", Model: "mail"}, InputTokens: 100, OutputTokens: 50, Nanos: 700,
			Expires: time.Now().Add(forever), KeyDay: limit, KeyMonth: limit, GroupDay: limit, GroupMonth: limit}
	}
	for kind, write := range map[Kind]func() error{
		Signals: func() error {
			return s.PutSignal(ctx, store.Signal{RunID: "run_signaled", Kind: store.SignalCancel, Body: json.RawMessage(`{"by":"ann"}`)})
		},
		Calls: func() error {
			_, err := s.PutCall(ctx, &remote.Call{Key: "key_1", RunID: "run_waiting", CallID: "call_9", RequestID: "req_1", SessionID: "s1",
				Tool: "act", Definition: "d1", Effect: lathe.Writes, Arguments: json.RawMessage(`{"to":"ann"}`)}, forever)
			return errors.Join(err, s.PutWorker(ctx, &remote.Worker{ID: "worker_1", Pool: "mail", Tools: []remote.Tool{{Name: "act"}}}, forever))
		},
		Requests: func() error { return s.PutRequest(ctx, Digest, "run_finished", "") },
		Secrets:  func() error { return failed(s.SharedSecret(ctx, "one", []byte("a shared secret"))) },
		Values:   func() error { return s.SetValue(ctx, "tool/act", []byte("disabled")) },
		Ledger: func() error {
			return errors.Join(s.Reserve(ctx, reservation("res_settled")), s.Reserve(ctx, reservation("res_open")),
				s.Settle(ctx, "res_settled", store.Counts{Calls: 1, InputTokens: 80, OutputTokens: 20, Tokens: 100, Nanos: 500}))
		},
		Messages: func() error {
			_, err := s.Append(ctx, "run_short", 0, event.Event{ID: 1, RunID: "run_short", Data: &event.RunStarted{Principal: "bob", Messages: conversation[:1]}})
			_, failed := s.Append(ctx, "run_long", 0, event.Event{ID: 1, RunID: "run_long", Data: &event.RunStarted{Principal: "bob", Messages: conversation}})
			return errors.Join(err, failed)
		},
	} {
		if has[kind] {
			continue
		}
		if err := write(); err != nil {
			t.Errorf("writing rows of kind %d: %v", kind, err)
		}
		has[kind] = true
	}
	return has
}

func failed[T any](_ T, err error) error { return err }

// checks has, for each kind of rows, a function that reads the rows which [Complete] has written (for Gone: [Write]). It returns what it has read,
// and whether that is what was written.
var checks = map[Kind]func(ctx context.Context, s Store) (got any, ok bool, err error){
	Signals: func(ctx context.Context, s Store) (any, bool, error) {
		signals, err := s.Signals(ctx, "run_signaled")
		return signals, len(signals) == 1 && signals[0].Kind == store.SignalCancel && sameJSON(signals[0].Body, `{"by":"ann"}`), err
	},
	Calls: checkCalls,
	Gone: func(ctx context.Context, s Store) (any, bool, error) {
		var gone *store.GoneError
		_, err := read(ctx, s, "run_gone")
		return err, errors.As(err, &gone) && gone.Principal == "ann" && !gone.Time.IsZero(), nil
	},
	Requests: func(ctx context.Context, s Store) (any, bool, error) {
		r, err := s.FindRequest(ctx, Digest)
		return r, r.RunID == "run_finished" && !r.Delivered, err
	},
	Secrets: func(ctx context.Context, s Store) (any, bool, error) {
		secret, err := s.SharedSecret(ctx, "one", []byte("another"))
		return secret, string(secret) == "a shared secret", err
	},
	Values: func(ctx context.Context, s Store) (any, bool, error) {
		values, err := s.Values(ctx, "tool/")
		return values, len(values) == 1 && string(values["tool/act"]) == "disabled", err
	},
	Ledger: func(ctx context.Context, s Store) (any, bool, error) {
		balances, err := s.Balances(ctx, []store.Account{{Kind: "key", Name: "ann", Period: day}})
		if err != nil {
			return nil, false, err
		}
		b := balances[0]
		return b, b.SpentNanos == 500 && b.SpentTokens == 100 && b.ReservedNanos == 700 && b.ReservedTokens == 150, nil
	},
	Messages: checkMessages,
}

func checkCalls(ctx context.Context, s Store) (got any, ok bool, err error) {
	c, err := s.FindCall(ctx, "key_1")
	if err != nil {
		return nil, false, err
	}
	workers, err := s.Workers(ctx)
	if err != nil || len(workers) != 1 {
		return workers, false, err
	}
	callOK := c.State == remote.Queued && c.Effect == lathe.Writes && sameJSON(c.Arguments, `{"to":"ann"}`) && c.Left > 0
	w := workers[0]
	return c, callOK && w.ID == "worker_1" && w.Pool == "mail" && w.Tools[0].Name == "act", nil
}

func checkMessages(ctx context.Context, s Store) (got any, ok bool, err error) {
	for id, want := range map[string][]lathe.Message{"run_short": conversation[:1], "run_long": conversation} {
		events, err := read(ctx, s, id)
		if err != nil {
			return nil, false, err
		}
		if !reflect.DeepEqual(events[0].Data.(*event.RunStarted).Messages, want) {
			return events, false, nil
		}
	}
	return nil, true, nil
}

// Check checks the runs of a migrated database, and its rows of the kinds in has.
func Check(t *testing.T, s Store, has Kinds) {
	t.Helper()
	ctx := t.Context()
	rows, _, err := s.Runs(ctx, &store.RunFilter{Principal: "ann", SessionID: "s1"})
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d runs, %v", len(rows), err)
	}
	for i := range rows {
		checkRun(t, s, &rows[i])
	}
	for status, want := range map[string]int{"completed": 1, "parked": 2} {
		if rows, _, err := s.Runs(ctx, &store.RunFilter{Principal: "ann", Status: status}); err != nil || len(rows) != want {
			t.Errorf("%d runs that are %s, want %d, %v", len(rows), status, want, err)
		}
	}
	if calls, _, err := s.ModelCalls(ctx, &store.RunFilter{RunID: "run_finished"}); err != nil || len(calls) != 2 || calls[0].Status != "success" {
		t.Errorf("model calls %+v, %v", calls, err)
	}
	for kind, check := range checks {
		if !has[kind] {
			continue
		}
		if got, ok, err := check(ctx, s); !ok || err != nil {
			t.Errorf("rows of kind %d: %+v, %v", kind, got, err)
		}
	}
	if _, err := read(ctx, s, "run_gone"); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("a run that was removed: %v", err)
	}
}

// checkRun compares the row of a run with the events of the run.
func checkRun(t *testing.T, s Store, row *store.RunSummary) {
	t.Helper()
	events, err := read(t.Context(), s, row.RunID)
	if err != nil || len(events) == 0 {
		t.Fatalf("%s: %d events, %v", row.RunID, len(events), err)
	}
	var expires time.Time
	for i := range events {
		if events[i].ID != int64(i)+1 || events[i].RunID != row.RunID {
			t.Errorf("event %d of %s is event %d of %s", i+1, row.RunID, events[i].ID, events[i].RunID)
		}
		if asked, ok := events[i].Data.(*event.ApprovalRequested); ok {
			expires = asked.ExpiresAt
		}
	}
	first, ok := events[0].Data.(*event.RunStarted)
	if !ok || len(first.Messages) != 1 || first.Messages[0].Text() != question || first.Principal != "ann" {
		t.Errorf("%s begins with %+v", row.RunID, events[0].Data)
	}
	status := "parked"
	if row.RunID == "run_finished" {
		status = "completed"
	}
	if row.Status != status || row.LastID != int64(len(events)) || !row.Resumable || row.ToolCalls != 1 || row.Target != "mail" {
		t.Errorf("the row of %s with %d events: %+v", row.RunID, len(events), row)
	}
	if status == "parked" && (expires.IsZero() || !row.WakeAt.Equal(expires) || len(row.Pending) != 1) {
		t.Errorf("%s waits for %v until %v, want until %v", row.RunID, row.Pending, row.WakeAt, expires)
	}
}

// Resume approves the pending call of run_waiting, resumes the run, and checks that the call is executed once and that the run ends.
func Resume(t *testing.T, s Store) {
	t.Helper()
	l, mails := newLoop(t, policy.Tools{Ask: []string{"send_mail"}}, approvesAll, lathetest.Text(answer))
	e := newEngine(t, s)
	result, err := e.Resume(t.Context(), l, "run_waiting", nil)
	if err != nil || result.Reason != lathe.ReasonAnswered || result.Answer != answer || mails.Load() != 1 {
		t.Fatalf("%+v after %d mails, %v", result, mails.Load(), err)
	}
	if _, err := e.Resume(t.Context(), l, "run_waiting", nil); lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("resumed twice: %v", err)
	}
	rows, _, err := s.Runs(t.Context(), &store.RunFilter{Principal: "ann", Status: "completed"})
	if err != nil || !slices.ContainsFunc(rows, func(r store.RunSummary) bool { return r.RunID == "run_waiting" && r.Reason == lathe.ReasonAnswered }) {
		t.Errorf("the runs that ended: %+v, %v", rows, err)
	}
}

func read(ctx context.Context, s Store, id string) (events []event.Event, err error) {
	for e, err := range s.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func sameJSON(got json.RawMessage, want string) bool {
	var a, b map[string]string
	return json.Unmarshal(got, &a) == nil && json.Unmarshal([]byte(want), &b) == nil && maps.Equal(a, b)
}

func newEngine(t *testing.T, s Store) *engine.Engine {
	t.Helper()
	e, err := engine.New(&engine.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newLoop returns a loop with the tool send_mail, and the number of executions of that tool.
func newLoop(t *testing.T, p lathe.Policy, a approver, steps ...lathetest.Step) (*loop.Loop, *atomic.Int64) {
	t.Helper()
	sent := &mails{}
	set, err := tool.NewSet(sent)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: p, Approver: a})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(lathetest.NewModel(steps...), runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l, &sent.n
}

type mails struct{ n atomic.Int64 }

func (*mails) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "send_mail", Effect: lathe.Writes, Allowlist: []string{"*"}}
}

func (m *mails) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	m.n.Add(1)
	return &lathe.Output{Data: json.RawMessage(`{"ok":true}`)}, nil
}

// An approver says what happens to the calls that require an approval.
type approver int

const (
	leavesPending approver = iota
	approvesAll
)

func (a approver) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	if a == leavesPending {
		return lathe.Approval{}, lathe.ErrPending
	}
	return lathe.Approval{Approved: true, By: "ann"}, nil
}
