package guest

import (
	"context"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/tool"
)

// The flags of cchat_send. Other bits are ignored.
const (
	flagMetrics = 1 // the descriptor of the answer has metrics
	flagAuto    = 2 // the host executes the calls of the guest's functions
)

// send implements cchat_send: it returns the descriptor of the answer, or a negative error number. An error ends the guest.
func (p *program) send(ctx context.Context, fd, flags int32) (int32, error) {
	s := p.fds.at(fd).session
	switch {
	case s == nil:
		return -ebadf, nil
	case s.sending:
		return -eagain, nil // called by a function of the same session
	case len(p.fds.open) >= p.fds.most:
		return -enomem, nil
	}
	auto := flags&flagAuto != 0
	noMetrics := []byte("{}")
	req := p.request(s, auto)
	switch {
	case auto && req.Limits.MaxIterations == 0:
		return p.respond(failure(codeCallLimit, "exceeded "+keyRounds), noMetrics), nil
	case p.out.Sends >= p.limits.Sends:
		return p.respond(failure(string(lathe.ReasonBudgetExceeded), "exceeded sends"), noMetrics), nil
	case len(s.messages) == 0:
		return p.respond(failure(string(lathe.CodeInvalidRequest), "the session has no messages"), noMetrics), nil
	}
	reply, err := p.run(ctx, s, req)
	switch {
	case p.fault != nil:
		return 0, p.fault
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return p.respond(refusal(err), noMetrics), nil
	}
	if auto && !req.Auto { // the guest has set max_total_tool_calls to 0
		refuseCalls(reply)
	}
	body, metrics := answer(reply, auto, len(req.Messages), p.inst.Now().Unix()), noMetrics
	if flags&flagMetrics != 0 {
		metrics = usage(&reply.Result.Usage)
	}
	if auto && !p.setHistory(s, reply.History) {
		return -enomem, nil
	}
	return p.respond(body, metrics), nil
}

// respond returns the descriptor of an answer, or -ENOMEM.
func (p *program) respond(body, metrics []byte) int32 {
	if !p.reserve(perItem + len(body)) {
		return -enomem
	}
	return p.fds.add(&entry{response: &response{body: body, metrics: metrics}})
}

// setHistory replaces the messages of the session by the history of a run. It returns false if the history is too long.
func (p *program) setHistory(s *session, history []lathe.Message) bool {
	added := sizeOf(history) - sizeOf(s.messages)
	if !p.reserve(added) {
		return false
	}
	s.size += added
	s.messages = slices.Clone(history)
	return true
}

// request returns the request of a send to the host.
func (p *program) request(s *session, auto bool) *Request {
	req := &Request{
		Run:   lathe.RunInfo{SessionID: s.id, Principal: p.opts.Principal, Labels: p.opts.Labels},
		Model: s.params.model, Messages: slices.Clone(s.messages), Auto: auto,
		Limits:            p.limitsOf(s),
		Timeout:           s.params.timeout,
		StrictUnknownTool: p.opts.StrictUnknownTool || s.params.strict != nil && *s.params.strict,
		ToolChoice:        s.params.choice, ParallelToolCalls: s.params.parallel, ResponseFormat: s.params.responseFormat,
		Overrides: s.params.overrides(),
	}
	if !auto {
		req.Limits.MaxIterations = 1
	}
	if auto && req.Limits.MaxToolCalls != 0 {
		req.MCP = s.mcp.request(&p.opts.MCP)
	} else { // the guest receives the calls unexecuted
		req.Auto, req.Limits.MaxToolCalls = false, 1
		for _, f := range s.functions {
			offer := f.spec
			offer.Owner = lathe.OwnerClient
			req.Offers = append(req.Offers, &offer)
		}
	}
	for _, r := range setting.Rows[lathe.Limits]() {
		if n := r.In(&req.Limits); r.Guest > 0 && r.Key != keyRounds && n.IsZero() { // 0 would mean the default of the host
			n.SetInt(1)
		}
	}
	return req
}

// refuseCalls ends a run as if its first call had exceeded max_total_tool_calls 0: each requested call gets an error as its result.
func refuseCalls(r *Reply) {
	if r.Result.Reason != lathe.ReasonClientToolCalls {
		return
	}
	res := *r.Result
	res.Reason, res.Pending = lathe.ReasonMaxToolCalls, nil
	r.History = slices.Clone(r.History)
	for _, c := range r.Result.Pending {
		r.History = append(r.History, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{
			CallID: c.ID, Name: c.Name, IsError: true, Code: lathe.CodeToolCallLimit,
			Content: string(failure(string(lathe.CodeToolCallLimit), "no call may be executed")),
		}}})
	}
	r.Result = &res
}

// run executes the request with the host, during which the functions of the session are tools.
func (p *program) run(ctx context.Context, s *session, req *Request) (*Reply, error) {
	call := &send{}
	if req.Auto {
		for _, f := range s.functions {
			req.Tools = append(req.Tools, f.during(call))
		}
	}
	s.sending = true
	p.out.Sends++
	reply, err := p.host.Send(ctx, req)
	call.mu.Lock() // a function whose Call has returned may still be running
	call.over = true
	call.mu.Unlock()
	s.sending = false
	hasResult := reply != nil && reply.Result != nil
	if err == nil && !hasResult {
		err = &lathe.Error{Code: lathe.CodeInternal, Op: "guest: send"}
	}
	if hasResult {
		p.out.Usage.Add(reply.Result.Usage)
		if reply.Result.Reason == lathe.ReasonGuestFault && p.fault == nil {
			p.fault = fmt.Errorf("guest: send: %w", tool.ErrGuestFault)
		}
	}
	return reply, err
}
