package replay

import (
	"bytes"
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// Answers returns tools and an approver with which another model can continue the conversation of the record, without executing tools. The
// tools have the definitions of those in set and of those that the client of the record declared. A call gets the recorded result of the
// call of the same tool with equal arguments, compared as canonical JSON. The n-th such call gets the n-th result, and further calls get
// the last one. A call that is not in the record fails with the code unavailable.
//
// The approver repeats the recorded decision for a recorded call, and approves any other call, because no tool is executed. It never
// returns [lathe.ErrPending].
//
// The tools and the approver count calls, so use them for one run only. Answers returns an error with the code content_removed if a store
// has removed content of the record.
func (r *Record) Answers(set *tool.Set, limits lathe.Limits) (*tool.Set, lathe.Approver, error) {
	if err := r.checkWhole(); err != nil {
		return nil, nil, err
	}
	in, err := r.input()
	if err != nil {
		return nil, nil, err
	}
	a := r.answers()
	var tools []lathe.Tool
	for _, specs := range [][]*lathe.ToolSpec{set.Specs(), in.ClientTools} {
		for _, spec := range specs {
			tools = append(tools, a.standIn(spec))
		}
	}
	search := set.Search()
	for _, spec := range in.ClientTools {
		search.Always = append(search.Always, spec.Name)
		if spec.Name == tool.SearchName { // the tool hides the search: the recorded run deferred no tools
			search = tool.Search{}
			break
		}
	}
	out, err := tool.NewSetWithSearch(limits, search, tools...)
	return out, a, err
}

// answers are the recorded calls, by tool and arguments.
type answers struct {
	mu    sync.Mutex
	calls map[string]*recordedCalls
	given map[string]outcome // results by the id of the new call, so that a repeated attempt gets the same result
}

// recordedCalls are the calls of one tool with equal arguments, the oldest first.
type recordedCalls struct {
	outcomes  []outcome
	decisions []*event.ApprovalResolved // an element is nil if the call required no decision
	next      int                       // index of the next outcome
	asked     int                       // index of the next decision
}

var _ lathe.Approver = (*answers)(nil)

func (r *Record) answers() *answers {
	a := &answers{calls: map[string]*recordedCalls{}, given: map[string]outcome{}}
	byID, decided := r.outcomes(), map[string]*event.ApprovalResolved{}
	for i := range r.Events {
		if d, ok := r.Events[i].Data.(*event.ApprovalResolved); ok {
			decided[d.ToolCallID] = d
		}
	}
	for i := range r.Events {
		d, ok := r.Events[i].Data.(*event.ToolCallProposed)
		if !ok {
			continue
		}
		a.add(d.ToolName, d.RawArgs, byID[d.ToolCallID], decided[d.ToolCallID])
		if was := decided[d.ToolCallID]; was != nil && len(was.Arguments) > 0 { // the tool was called with the edited arguments
			a.add(d.ToolName, string(was.Arguments), byID[d.ToolCallID], was)
		}
	}
	return a
}

func (a *answers) add(name, args string, o outcome, d *event.ApprovalResolved) {
	key := callKey(name, args)
	c := a.calls[key]
	if c == nil {
		c = &recordedCalls{}
		a.calls[key] = c
	}
	c.outcomes, c.decisions = append(c.outcomes, o), append(c.decisions, d)
}

// callKey returns a key that is equal for calls of one tool with equal arguments. Text that is not JSON is compared byte by byte.
func callKey(name, args string) string {
	text := bytes.TrimSpace([]byte(args))
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	if object, _, ok := rawjson.RepairObject(text); ok {
		text = object
	}
	if canonical, err := rawjson.AppendCanonical(nil, text); err == nil {
		text = canonical
	}
	return name + "\n" + string(text)
}

// standIn returns a tool with the definition spec that returns recorded results.
func (a *answers) standIn(spec *lathe.ToolSpec) lathe.Tool {
	own := recordedSpec(spec)
	return &standIn{spec: own, atOnce: true, find: func(meta *lathe.CallMeta, args []byte) outcome {
		a.mu.Lock()
		defer a.mu.Unlock()
		if o, ok := a.given[meta.CallID]; ok {
			return o
		}
		var o outcome
		if c := a.calls[callKey(own.Name, string(args))]; c != nil {
			o = c.outcomes[min(c.next, len(c.outcomes)-1)]
			c.next++
		}
		a.given[meta.CallID] = o
		return o
	}}
}

// Approve implements [lathe.Approver].
func (a *answers) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	byReplay := lathe.Approval{Approved: true, By: "replay"}
	c := a.calls[callKey(req.Call.Name, string(req.Args))]
	if c == nil {
		return byReplay, nil
	}
	n := min(c.asked, len(c.decisions)-1)
	c.asked++
	d := c.decisions[n]
	if d == nil {
		return byReplay, nil
	}
	out := approval(d, c.outcomes[n])
	if callKey(req.Call.Name, string(out.Arguments)) == callKey(req.Call.Name, string(req.Args)) { // the model has edited them itself
		out.Arguments = nil
	}
	return out, nil
}
