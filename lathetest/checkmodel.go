package lathetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// patience is the maximum time that a check waits for a turn to end after its context was cancelled, and for goroutines to end.
var patience = 5 * time.Second

// A modelCheck checks one part of the contract of [lathe.Model]. check returns an error if the models that open returns violate it.
type modelCheck struct {
	name  string
	check func(open func() lathe.Model) error
}

var modelChecks = []modelCheck{
	{"the description is complete and does not change", checkDescription},
	{"deltas come in order and agree with the message", checkOrder},
	{"usage is consistent", checkUsage},
	{"the request is not changed", checkRequest},
	{"several goroutines at once", checkConcurrent},
	{"a consumer that stops early frees everything", checkEarlyStop},
	{"a cancelled context ends the turn", checkCancel},
}

// TestModel checks that the models that open returns satisfy the contract of [lathe.Model]: description, order of deltas, usage, error
// codes, concurrent calls, and that a turn ends and releases its goroutines when its consumer stops early or its context is cancelled. Each
// check calls open once and makes at most eight model calls with one tool. All of these calls must succeed with at least one delta. For
// models that fail, see [TestModelError].
func TestModel(t *testing.T, open func() lathe.Model) {
	for _, c := range modelChecks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(open); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestModelError checks a model whose turns all fail, such as one whose server responds with status 500. Each turn must end with exactly
// one error, which must be a [lathe.Error] with a code. An error with code upstream_error must wrap a [lathe.UpstreamError].
func TestModelError(t *testing.T, open func() lathe.Model) {
	if err := checkError(open); err != nil {
		t.Error(err)
	}
}

func request() *lathe.Request {
	return &lathe.Request{
		Messages: []lathe.Message{lathe.System("Answer in one word."), lathe.User("What is the capital of Norway?")},
		Tools: []*lathe.ToolSpec{{Name: "lookup", Description: "Looks a fact up.",
			Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`)}},
	}
}

// A turn contains the deltas and the error that one model call yielded.
type turn struct {
	deltas []lathe.Delta // the last one has the kind DeltaFinish if the turn succeeded
	err    error
	late   bool // the model yielded after its consumer had stopped, or after the end of the turn
}

// callModel makes a model call and calls each with every delta, until each returns false. It returns an error if the turn violates the contract;
// the error of the model is in t.
func callModel(ctx context.Context, m lathe.Model, req *lathe.Request, each func(lathe.Delta) bool) (t turn, err error) {
	over := false // the turn has ended, or its consumer has stopped
	m.Generate(ctx, req)(func(d lathe.Delta, err error) bool {
		if over {
			t.late = true
			return false
		}
		isEnd := err != nil || d.Kind == lathe.DeltaFinish
		if t.err = err; err == nil {
			t.deltas = append(t.deltas, d)
		}
		over = isEnd || each != nil && !each(d)
		return isEnd || !over // a model must end by itself after the end of its turn
	})
	var e *lathe.Error
	switch {
	case t.late:
		return t, errors.New("the model yielded again after its consumer had stopped, or after the end of the turn")
	case !over:
		return t, errors.New("the turn ended without a delta of kind DeltaFinish and without an error")
	case t.err != nil && (!errors.As(t.err, &e) || e.Code == ""):
		return t, fmt.Errorf("the error is not a *lathe.Error with a code: %w", t.err)
	}
	return t, nil
}

// succeed makes a model call that must succeed, and checks its deltas. It returns the finish of the turn.
func succeed(ctx context.Context, m lathe.Model) (*lathe.Finish, error) {
	t, err := callModel(ctx, m, request(), nil)
	if err == nil {
		err = t.err
	}
	if err != nil {
		return nil, err
	}
	fin := t.deltas[len(t.deltas)-1].Finish
	switch {
	case fin == nil:
		return nil, errors.New("the delta of kind DeltaFinish has no Finish")
	case len(t.deltas) == 1:
		return nil, errors.New("no delta came before the end of the turn")
	case fin.Message.Role != lathe.RoleAssistant:
		return nil, fmt.Errorf("the role of the message is %q, want assistant", fin.Message.Role)
	}
	return fin, t.agrees(fin)
}

// agrees returns an error if the deltas are out of order, or differ from the message at the end of the turn.
func (t *turn) agrees(fin *lathe.Finish) error {
	text := ""
	var args []string // of each call
	open := map[int]bool{}
	for i, d := range t.deltas[:len(t.deltas)-1] {
		switch d.Kind {
		case 0:
			return fmt.Errorf("delta %d has no kind", i)
		case lathe.DeltaText:
			if !d.Unreadable {
				text += d.Text
			}
		case lathe.DeltaCallStart:
			if d.Index != len(args) {
				return fmt.Errorf("delta %d begins the call with index %d, want %d", i, d.Index, len(args))
			}
			args, open[d.Index] = append(args, ""), true
		case lathe.DeltaCallArgs, lathe.DeltaCallEnd:
			if !open[d.Index] {
				return fmt.Errorf("delta %d belongs to the call with index %d, which has not begun or has ended", i, d.Index)
			}
			if d.Kind == lathe.DeltaCallEnd {
				delete(open, d.Index)
			} else {
				args[d.Index] += d.Text
			}
		}
	}
	for index := range open {
		return fmt.Errorf("the call with index %d has no end", index)
	}
	return checkMessage(fin, text, args)
}

// checkMessage returns an error if the message of fin differs from the text and the calls' arguments of the deltas.
func checkMessage(fin *lathe.Finish, text string, args []string) error {
	if got, want := strings.TrimSpace(text), strings.TrimSpace(fin.Message.Text()); got != "" && got != want {
		return fmt.Errorf("the text of the deltas is %q, that of the message %q", got, want)
	}
	calls := fin.Message.Calls()
	if len(args) > 0 && len(args) != len(calls) {
		return fmt.Errorf("the deltas have %d calls, the message has %d", len(args), len(calls))
	}
	for i, got := range args {
		if got != calls[i].Arguments {
			return fmt.Errorf("the arguments of call %d are %q in the deltas and %q in the message", i, got, calls[i].Arguments)
		}
	}
	cut := fin.Reason == lathe.FinishLength || fin.Reason == lathe.FinishContentFilter
	if !cut && (len(calls) > 0) != (fin.Reason == lathe.FinishToolCalls) {
		return fmt.Errorf("the finish reason of a message with %d calls is %q", len(calls), fin.Reason)
	}
	return nil
}

func checkDescription(open func() lathe.Model) error {
	m := open()
	info := m.Describe()
	if info.Provider == "" || info.Model == "" {
		return fmt.Errorf("the description %+v lacks the name of the provider or of the model: events and metrics cannot tell the model from others", info)
	}
	if again := m.Describe(); again != info {
		return fmt.Errorf("the model describes itself as %+v and then as %+v", info, again)
	}
	return nil
}

func checkOrder(open func() lathe.Model) error {
	_, err := succeed(context.Background(), open())
	return err
}

func checkUsage(open func() lathe.Model) error {
	fin, err := succeed(context.Background(), open())
	if err != nil {
		return err
	}
	switch u := fin.Usage; {
	case min(u.InputTokens, u.OutputTokens, u.TotalTokens, u.CachedTokens, u.ReasoningTokens) < 0:
		return fmt.Errorf("the usage has a negative number: %+v", u)
	case u.Total() == 0:
		return errors.New("the usage is zero: limits on tokens have no effect")
	case u.CachedTokens > u.InputTokens, u.ReasoningTokens > u.OutputTokens:
		return fmt.Errorf("a part of the usage is larger than the whole: %+v", u)
	}
	return nil
}

func checkRequest(open func() lathe.Model) error {
	req := request()
	if t, err := callModel(context.Background(), open(), req, nil); err != nil || t.err != nil {
		return errors.Join(err, t.err)
	}
	got, err := json.Marshal(req)
	if err != nil {
		return err
	}
	want, err := json.Marshal(request())
	if err == nil && string(got) != string(want) {
		err = errors.New("the model changed its request")
	}
	return err
}

func checkConcurrent(open func() lathe.Model) error {
	m := open()
	return atOnce(func(int) error {
		_, err := succeed(context.Background(), m)
		return err
	})
}

// atOnce calls f with 0 to 3, each in a goroutine, and joins the errors.
func atOnce(f func(i int) error) error {
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func checkEarlyStop(open func() lathe.Model) (err error) {
	m := open()
	left := leaked(func() {
		for deltas := range 3 { // the consumer stops at the delta after these
			seen := 0
			_, err = callModel(context.Background(), m, request(), func(lathe.Delta) bool { seen++; return seen <= deltas })
			if err != nil {
				return
			}
		}
	})
	return errors.Join(err, left)
}

func checkCancel(open func() lathe.Model) (err error) {
	m := open()
	left := leaked(func() {
		err = errors.Join(cancelled(m, beforeCall), cancelled(m, atFirstDelta))
	})
	return errors.Join(err, left)
}

// A cancelTime is the time at which cancelled cancels the context.
type cancelTime int

const (
	beforeCall cancelTime = iota
	atFirstDelta
)

// cancelled makes a model call and cancels its context.
func cancelled(m lathe.Model, when cancelTime) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if when == beforeCall {
		cancel()
	}
	done := make(chan error, 1)
	go func() {
		t, err := callModel(ctx, m, request(), func(lathe.Delta) bool { cancel(); return true })
		switch {
		case err == nil && t.err == nil && when == beforeCall:
			err = errors.New("a turn whose context was cancelled before it began succeeded")
		case err == nil && t.err != nil && lathe.CodeOf(t.err) != lathe.CodeCancelled:
			err = fmt.Errorf("the code of a cancelled turn is %q, want %q", lathe.CodeOf(t.err), lathe.CodeCancelled)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return fmt.Errorf("the turn goes on %v after its context was cancelled", patience)
	}
}

func checkError(open func() lathe.Model) error {
	t, err := callModel(context.Background(), open(), request(), nil)
	if err != nil {
		return err
	}
	var up *lathe.UpstreamError
	switch {
	case t.err == nil:
		return errors.New("the turn succeeded; TestModelError wants one that fails")
	case lathe.CodeOf(t.err) == lathe.CodeUpstream && !errors.As(t.err, &up):
		return fmt.Errorf("an error of the code %s does not wrap a *lathe.UpstreamError: %w", lathe.CodeUpstream, t.err)
	}
	return nil
}
