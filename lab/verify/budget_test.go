package verify_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/lab/verify"
	"github.com/lathe-run/lathe/sim"
)

// A counter counts the requests that a transport gets, and changes the answers.
type counter struct {
	n      int
	answer func(*http.Response) *http.Response
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n++
	resp, err := sim.New(nil).Transport().RoundTrip(req)
	if err == nil && c.answer != nil {
		resp = c.answer(resp)
	}
	return resp, err
}

// rewritten has the body of a response changed.
func rewritten(change func([]byte) []byte) func(*http.Response) *http.Response {
	return func(resp *http.Response) *http.Response {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(change(body)))
		return resp
	}
}

// No more requests are made than stated, repeats among them, though the server answers each with 429 and Retry-After.
func TestRequestsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	c := &counter{answer: func(resp *http.Response) *http.Response {
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", "0")
		return resp
	}}
	opts := options()
	reference := target(sim.DemoModel, "", c)
	rep, err := verify.Run(t.Context(), target(sim.DemoModel, "", c), &reference, opts)
	if err != nil {
		t.Fatal(err)
	}
	if want := verify.Plan(opts, true).Requests; c.n != want || rep.Budget.Requests != want || rep.Target.Requests+rep.Reference.Requests != want {
		t.Errorf("%d requests were made, %d and %d reported, %d stated", c.n, rep.Target.Requests, rep.Reference.Requests, want)
	}
	if rep.Target.Stopped != "requests" || rep.Target.NotMeasured == 0 || rep.Status != verify.Failed {
		t.Errorf("%s %v %+v", rep.Status, rep.Why, rep.Target)
	}
}

// No request is begun that could exceed the tokens, by the server's count, or by the size of what it sends where it does not count.
func TestTokensStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 8000)
	for name, c := range map[string]struct {
		answer func(*http.Response) *http.Response
		with   func(*verify.Options)
		most   int // requests
	}{
		"a small budget": {nil, func(o *verify.Options) { o.MaxTokens = 5000 }, 20},
		"a large count": {rewritten(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"prompt_tokens":`), []byte(`"prompt_tokens":90000`))
		}), nil, 5},
		"a count beyond all": {rewritten(func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"prompt_tokens":`), []byte(`"prompt_tokens":922337203685`))
		}), nil, 1},
		"a negative count": {rewritten(func(b []byte) []byte {
			b = bytes.ReplaceAll(b, []byte(`"prompt_tokens":`), []byte(`"prompt_tokens":-`))
			b = bytes.ReplaceAll(b, []byte(`"completion_tokens":`), []byte(`"completion_tokens":-`))
			return bytes.ReplaceAll(b, []byte(`"content":"`), []byte(`"content":"`+long))
		}), func(o *verify.Options) { o.MaxTokens = 40_000 }, 10},
		"no count": {rewritten(func(b []byte) []byte {
			b = bytes.ReplaceAll(b, []byte(`"usage"`), []byte(`"use"`))
			return bytes.ReplaceAll(b, []byte(`"content":"`), []byte(`"content":"`+long))
		}), func(o *verify.Options) { o.MaxTokens = 40_000 }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := &counter{answer: c.answer}
			opts := options()
			if c.with != nil {
				c.with(opts)
			}
			var tokens, of int64
			opts.Progress = func(p verify.Progress) {
				if tokens, of = p.Tokens, p.OfTokens; tokens+int64(4096) > of {
					t.Errorf("a request begins after %d of %d tokens", tokens, of)
				}
			}
			rep, err := verify.Run(t.Context(), target(sim.DemoModel, "", count), nil, opts)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Target.Stopped != "tokens" || count.n > c.most || of != rep.Budget.Tokens {
				t.Errorf("%d requests, %d of %d tokens, %+v", count.n, tokens, of, rep.Target)
			}
			if table := files(t, rep)["table"]; !strings.Contains(table, " not measured, the budget of tokens was used up\n") {
				t.Errorf("the table does not say why requests are missing:\n%s", table)
			}
			if rep.Status == verify.Inconclusive && !strings.Contains(rep.Why[0], "the budget of tokens was used up") || rep.Status == verify.Passed {
				t.Errorf("%s %v", rep.Status, rep.Why)
			}
		})
	}
}

// A verification of each wire stays within its budget.
func TestPlanIsEnough(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		rep := measure(t, sim.ThinkingModel, w, options())
		if rep.Target.Stopped != "" || rep.Target.InputTokens+rep.Target.OutputTokens > rep.Budget.Tokens || rep.Target.InputTokens > rep.Budget.InputTokens {
			t.Errorf("%s: %+v, %+v", w, rep.Budget, rep.Target)
		}
	}
	if least := verify.Plan(&verify.Options{MaxTokens: 7}, true).Tokens; least != 7 {
		t.Errorf("%d tokens", least)
	}
}
