package enginetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
)

// A scenario is one behaviour of an engine: a script of the model, and what the client does.
type scenario struct {
	name   string
	script Script
	client func(*execution)
}

// gone is the error of a model server that is not available for a moment.
var gone = &lathe.Error{Code: lathe.CodeUpstream, Op: "enginetest"}

// How [Engine].Restart ends the process.
const (
	gracefully = false
	killed     = true
)

var scenarios = []scenario{
	{"a whole run with two tools", Script{Turns: []Turn{Ask(1, Look, Pay), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if p.countDeeds("c1_0") != 1 || p.countDeeds("c1_1") != 1 {
			p.Error("not each call was executed once")
		}
	}},
	{"parallel reads", Script{Parallel: 3, Turns: []Turn{Ask(1, Look, Look, Look, Pay), Reply("done")}}, func(p *execution) {
		p.unordered = true
		look := p.environment.hold(Look)
		p.start()
		for range 3 {
			p.must("hold", waitFor(look.begun, "the call"))
		}
		close(look.over)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok", "c1_2 ok", "c1_3 ok")
	}},
	{"writes have keys of their own", Script{Turns: []Turn{Ask(1, Pay, Pay), Ask(2, Pay), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		for _, id := range []string{"c1_0", "c1_1", "c2_0"} {
			if n := p.countDeeds(id); n != 1 {
				p.Errorf("%s was executed %d times", id, n)
			}
		}
	}},
	{"an approval is given", askScript, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.answer("c1_0", approval.Answer{Verb: approval.Approve})
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
	}},
	{"an approval is denied", askScript, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.answer("c1_0", approval.Answer{Verb: approval.Deny})
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 approval_denied", "c1_1 ok")
		if p.countDeeds("c1_0") != 0 {
			p.Error("the denied call was executed")
		}
	}},
	{"an approval edits the arguments", askScript, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.answer("c1_0", approval.Answer{Verb: approval.Edit, Arguments: json.RawMessage(`{"n":7}`)})
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		for _, d := range p.environment.world.deedsOf(p.id) {
			if d.CallID == "c1_0" && !sameJSON(d.Args, []byte(`{"n":7}`)) {
				p.Errorf("the call was executed with %s", d.Args)
			}
		}
	}},
	{"an approver answers in place of the tool", askScript, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.answer("c1_0", approval.Answer{Verb: approval.AnswerIt, Result: json.RawMessage(`"by hand"`)})
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if p.countDeeds("c1_0") != 0 {
			p.Error("the tool was executed, too")
		}
	}},
	{"an approval expires", Script{Limits: lathe.Limits{ApprovalTTL: 15 * time.Second}, Turns: askScript.Turns}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 approval_expired", "c1_1 ok")
	}},
	{"an approval waits over a restart", askScript, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.must("restart", p.engine.Restart(p.Context(), gracefully))
		p.answer("c1_0", approval.Answer{Verb: approval.Approve})
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if p.countDeeds("c1_0") != 1 {
			p.Error("the approved call was not executed once")
		}
	}},
	{"two approvals are given one after the other", Script{Turns: []Turn{Ask(1, AskPay, Pay, AskPut), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.answer("c1_0", approval.Answer{Verb: approval.Approve})
		p.await(lathe.ReasonAwaitingApproval)
		p.answer("c1_2", approval.Answer{Verb: approval.Approve})
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok", "c1_2 ok")
	}},
	{"a client returns a result", Script{Turns: []Turn{Ask(1, Mine, Pay), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingToolResults)
		p.must("result", p.engine.Result(p.Context(), p.id, "c1_0", lathe.Output{Data: json.RawMessage(`{"from":"the client"}`)}))
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if !strings.Contains(p.content("c1_0"), "the client") {
			p.Errorf("the model got %s", p.content("c1_0"))
		}
	}},
	{"a client's result waits over a restart", Script{Turns: []Turn{Ask(1, Mine), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingToolResults)
		p.must("restart", p.engine.Restart(p.Context(), gracefully))
		p.must("result", p.engine.Result(p.Context(), p.id, "c1_0", lathe.Output{Data: json.RawMessage(`"failed"`), IsError: true}))
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 execution_failed")
	}},
	{"a run that waits is cancelled", askScript, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAwaitingApproval)
		p.must("cancel", p.engine.Cancel(p.Context(), p.id))
		p.await(lathe.ReasonCancelled)
		p.results("c1_0 cancelled", "c1_1 cancelled")
	}},
	{"a run is cancelled in a call", Script{Turns: []Turn{Ask(1, Look, Pay), Reply("done")}}, func(p *execution) {
		look := p.environment.hold(Look)
		p.start()
		p.must("hold", waitFor(look.begun, "the call"))
		p.must("cancel", p.engine.Cancel(p.Context(), p.id))
		p.await(lathe.ReasonCancelled)
		if p.countDeeds("c1_1") != 0 {
			p.Error("a call was executed after the run was cancelled")
		}
	}},
	{"a run is cancelled in a model call", Script{Turns: []Turn{Reply("done")}}, func(p *execution) {
		model := p.environment.hold("model")
		p.start()
		p.must("hold", waitFor(model.begun, "the model call"))
		p.must("cancel", p.engine.Cancel(p.Context(), p.id))
		p.await(lathe.ReasonCancelled)
	}},
	{"the time limit of a run", Script{Limits: lathe.Limits{RunTimeout: 5 * time.Second}, Turns: []Turn{Ask(1, Look), Reply("done")}}, func(p *execution) {
		p.environment.hold(Look)
		p.start()
		p.await(lathe.ReasonRunTimeout)
	}},
	{"the time limit of a tool that reads", Script{Limits: lathe.Limits{ToolTimeout: 2 * time.Second}, Turns: []Turn{Ask(1, Look, Pay), Reply("done")}}, func(p *execution) {
		p.environment.hold(Look)
		p.start()
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 timeout", "c1_1 ok")
	}},
	{"the time limit of a tool that writes", Script{Limits: lathe.Limits{ToolTimeout: 2 * time.Second}, Turns: []Turn{Ask(1, Pay, Look), Reply("done")}}, func(p *execution) {
		p.environment.hold(Pay)
		p.start()
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 timeout", "c1_1 ok")
		if n := p.countDeeds("c1_0"); n != 1 {
			p.Errorf("the call was executed %d times", n)
		}
	}},
	{"a model call is repeated", Script{Turns: []Turn{{Retry: gone, Calls: Ask(1, Pay).Calls}, Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok")
	}},
	{"a model call fails", Script{Turns: []Turn{Ask(1, Pay), {Err: gone}}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonUpstreamError)
		p.results("c1_0 ok")
	}},
	{"a process is lost in a read", Script{Turns: []Turn{Ask(1, Look, Pay), Reply("done")}}, func(p *execution) {
		p.lose(Look)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if n := p.countDeeds("c1_0"); n != 2 {
			p.Errorf("the call was executed %d times, want 2", n)
		}
	}},
	{"a process is lost in an idempotent write", Script{Turns: []Turn{Ask(1, Put, Pay), Reply("done")}}, func(p *execution) {
		p.lose(Put)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if n := p.countDeeds("c1_0"); n != 2 {
			p.Errorf("the call was executed %d times, want 2", n)
		}
	}},
	{"a process is lost in a write", Script{Turns: []Turn{Ask(1, Pay, Look), Reply("done")}}, func(p *execution) {
		p.lose(Pay)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 interrupted", "c1_1 ok")
		if n := p.countDeeds("c1_0"); n != 1 {
			p.Errorf("the call was executed %d times", n)
		}
	}},
	{"a process is lost in a write whose outcome is known", Script{Turns: []Turn{Ask(1, Book, Look), Reply("done")}}, func(p *execution) {
		p.lose(Book)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c1_1 ok")
		if n := p.countDeeds("c1_0"); n != 1 {
			p.Errorf("the call was executed %d times", n)
		}
	}},
	{"a process is lost in a model call", Script{Turns: []Turn{Ask(1, Pay), Reply("done")}}, func(p *execution) {
		p.lose("model")
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok")
	}},
	{"a run without progress is parked and resumed", Script{Turns: []Turn{Ask(1, Pay), Reply("done")}}, func(p *execution) {
		model := p.environment.hold("model")
		p.start()
		for range 6 {
			p.must("hold", waitFor(model.begun, "the model call"))
			p.must("kill", p.engine.Restart(p.Context(), killed))
		}
		p.await(lathe.ReasonInterrupted)
		p.environment.release("model")
		p.must("resume", p.engine.Resume(p.Context(), p.id))
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok")
	}},
	{"the limit of turns", Script{Limits: lathe.Limits{MaxIterations: 2}, Turns: []Turn{Ask(1, Pay), Ask(2, Pay), Ask(3, Pay)}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonMaxIterations)
	}},
	{"the limit of calls", Script{Limits: lathe.Limits{MaxToolCalls: 2}, Turns: []Turn{Ask(1, Pay, Look, Pay), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonMaxToolCalls)
		if n := p.countDeeds("c1_2"); n != 0 {
			p.Error("a call beyond the limit was executed")
		}
	}},
	{"a call that the policy denies", Script{Turns: []Turn{Ask(1, Never, Pay), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 policy_denied", "c1_1 ok")
		if p.countDeeds("c1_0") != 0 {
			p.Error("the denied call was executed")
		}
	}},
	{"an unknown tool", Script{Turns: []Turn{Ask(1, "nothing", Pay), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 unknown_tool", "c1_1 ok")
	}},
	{"secrets and hidden members do not reach the model", Script{Turns: []Turn{Ask(1, Tell), Reply("done")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		if got := p.content("c1_0"); strings.Contains(got, environmentSecret) || strings.Contains(got, "hidden") || !strings.Contains(got, "[[secret:KEY:") {
			p.Errorf("the model got %s", got)
		}
	}},
	{"a session is continued", Script{Turns: []Turn{Ask(1, Look), Reply("done"), Ask(2, Pay), Reply("done again")}}, func(p *execution) {
		p.start()
		p.await(lathe.ReasonAnswered)
		p.start(append(p.state.Messages, lathe.User("and now?"))...)
		p.await(lathe.ReasonAnswered)
		p.results("c1_0 ok", "c2_0 ok")
		if p.countDeeds("c1_0") != 0 || p.countDeeds("c2_0") != 1 {
			p.Error("the run that continues the session did not execute its own call alone")
		}
	}},
}

var askScript = Script{Turns: []Turn{Ask(1, AskPay, Pay), Reply("done")}}

// lose starts a run and kills its process in a call of a tool, or of the model, after the effect of the call.
func (p *execution) lose(name string) {
	p.Helper()
	h := p.environment.hold(name)
	p.start()
	p.must("hold", waitFor(h.begun, "the call"))
	p.environment.release(name)
	p.must("kill", p.engine.Restart(p.Context(), killed))
}

// content returns what the model received for a call.
func (p *execution) content(callID string) string {
	for _, m := range p.state.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(lathe.ToolResult); ok && r.CallID == callID {
				return r.Content
			}
		}
	}
	return ""
}
