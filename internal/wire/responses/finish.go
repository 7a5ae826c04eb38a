package responses

import (
	"cmp"
	"math"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// end reads the response object at the end of a stream, or the body of an answer that is not streamed.
func (a *Assembler) end(response []byte, status string) {
	a.readNames(response)
	if status == statusFailed {
		a.Err = failure(response)
		return
	}
	i := 0
	for el := range rawjson.Elements(get(response, "output")) {
		if rawjson.Kind(el) == '{' {
			a.settle(i, el)
		}
		if a.Err != nil {
			return
		}
		i++
	}
	a.terminal, a.status = true, status
	if status == statusIncomplete {
		a.reason = text(get(response, "incomplete_details"), "reason")
		a.Grow(len(a.reason))
	}
	a.endOpenItems()
	if usage := get(response, "usage"); usage != nil {
		var bad int
		a.usage, bad = readUsage(usage)
		a.Faults = wire.CountFault(a.Faults, faultUsageInvalid, bad)
		if cost, err := strconv.ParseFloat(string(get(usage, "cost")), 64); err == nil && cost >= 0 && !math.IsInf(cost, 0) {
			a.cost = &cost
		}
	}
}

// endOpenItems ends the items that the server has not ended. Their calls are executed only if the answer is complete and the arguments are.
func (a *Assembler) endOpenItems() {
	for _, it := range a.items {
		if it.done {
			continue
		}
		it.done = true
		completed := a.status == statusCompleted
		if completed {
			a.Damage(faultItemOpen)
		}
		if it.kind == itemCall || it.kind == itemCustom {
			// The input of a custom tool may be incomplete without being invalid.
			valid := it.kind == itemCall && (it.args.Len() == 0 || wire.Sendable([]byte(it.args.String())))
			it.cut = it.cut || !completed || !valid
			it.endCall(&a.itemReader)
		}
	}
}

// settle compares item index of the response object with the streamed item, and adds the item if it was not streamed.
func (a *Assembler) settle(index int, raw []byte) {
	it := a.items.match(index, raw)
	if it == nil {
		it = a.items.unmatched(index, raw)
	}
	if it == nil {
		if !a.notStreamed {
			a.Damage(faultEventOrder)
		}
		it = a.begin(index, raw)
	}
	if it == nil { // a limit is reached
		return
	}
	it.settled = true
	switch {
	case !it.done:
		a.close(it, raw)
	case it.kind == itemCall && !it.cut:
		v := get(raw, "arguments")
		given := rawjson.Kind(v) == '"' && len(v) > len(`""`)
		if given && !rawjson.EqualKey(v, it.args.String()) && !it.hasArguments(v) {
			it.cut = true
			a.Damage(faultArgsDiffer)
		}
	}
}

// hasArguments reports whether the arguments of a call are the JSON in quoted, a string, apart from their encoding.
func (it *item) hasArguments(quoted []byte) bool {
	return rawjson.Equal([]byte(it.args.String()), []byte(rawjson.Text(quoted)))
}

// unmatched returns the streamed item of an item of the response object whose ids are others: the one at the index, else the first that is
// left of its kind. Of functions with a call id, it is the first call with the same name and arguments. It returns nil if none exists.
func (all items) unmatched(index int, raw []byte) *item {
	kind, at := kindOf(text(raw, "type")), all.at(index)
	if at != nil && !at.settled && at.kind == kind {
		return at
	}
	for _, it := range all {
		if it.settled || it.kind != kind {
			continue
		}
		if kind != itemCall || text(raw, "call_id") == "" || it.isCall(raw) {
			return it
		}
	}
	return nil
}

// isCall reports whether raw is a call of the same tool with the same arguments.
func (it *item) isCall(raw []byte) bool {
	arguments := get(raw, "arguments")
	return it.callName == joinName(text(raw, "namespace"), text(raw, "name")) && rawjson.Kind(arguments) == '"' && it.hasArguments(arguments)
}

// failure returns the error of a failed response.
func failure(response []byte) *wire.APIError {
	e := Codec{}.ParseError(0, response)
	e.Message = cmp.Or(e.Message, "the server reported that the response failed")
	return e
}

// Finish implements [wire.Assembler].
func (a *Assembler) Finish(bool) (*lathe.Finish, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	if !a.terminal {
		return nil, wire.ErrIncomplete
	}
	f := &lathe.Finish{Usage: a.usage, Model: a.Model, ResponseID: a.ID, ProviderCost: a.cost, RawReason: cmp.Or(a.reason, a.status)}
	f.Message = lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireResponses, Parts: a.parts()}
	f.Reason = a.finishReason()
	f.Faults = a.Faults
	return f, nil
}

// finishReason returns the internal finish reason for the status and the content of the response.
func (a *Assembler) finishReason() lathe.FinishReason {
	calls := a.calls > 0
	if a.status == statusIncomplete {
		switch a.reason {
		case reasonLength:
			return lathe.FinishLength
		case reasonFilter:
			return lathe.FinishContentFilter
		}
		a.Fault(faultFinishUnknown)
		if !calls {
			return lathe.FinishUnknown
		}
	}
	if calls {
		return lathe.FinishToolCalls
	}
	return lathe.FinishStop
}

// parts returns the parts of the message, item by item.
func (a *Assembler) parts() (parts []lathe.Part) {
	for _, it := range a.items {
		switch it.kind {
		case itemMessage:
			for _, p := range it.parts {
				if p.text.Len() == 0 {
					continue
				}
				if p.kind == partRefusal {
					parts = append(parts, lathe.Refusal{Text: p.text.String()})
					continue
				}
				t := lathe.Text{Text: p.text.String(), Commentary: it.phase == phaseCommentary, Extra: p.extra}
				if it.phase != "" && !t.Commentary {
					t.Extra = append(t.Extra, lathe.Member{Name: "phase", Value: rawjson.AppendQuote(nil, it.phase)})
				}
				parts = append(parts, t)
			}
		case itemReasoning:
			if it.text.Len() == 0 && it.data == "" {
				continue
			}
			r := lathe.Reasoning{Text: it.text.String(), Data: it.data, ID: it.id}
			if r.Data != "" {
				r.Field = fieldEncrypted
			}
			parts = append(parts, r)
		case itemCall, itemCustom:
			if it.callID == "" {
				a.Fault(faultIDMissing)
			}
			if it.callName == "" {
				a.Fault(faultNameMissing)
			}
			parts = append(parts, lathe.ToolCall{ID: it.callID, Name: it.callName, Arguments: it.args.String(), Incomplete: it.cut, Extra: it.extra})
		case itemOpaque:
			if it.raw != nil {
				parts = append(parts, lathe.Opaque{JSON: it.raw})
			}
		}
	}
	return parts
}

// Complete implements [wire.Assembler].
func (a *Assembler) Complete(dst []lathe.Delta, body []byte) ([]lathe.Delta, *lathe.Finish, error) {
	a.Out = dst
	body, ok := rawjson.Object(body)
	if !ok {
		return dst, nil, wire.ErrNoAnswer
	}
	status := text(body, "status")
	switch {
	case rawjson.Kind(get(body, "output")) != '[' && status != statusFailed:
		if get(body, "error") != nil || text(body, "type") == "error" {
			a.Err = Codec{}.ParseError(0, body)
			return dst, nil, a.Err
		}
		return dst, nil, wire.ErrNoAnswer
	case status == "":
		status = statusCompleted
	case status != statusCompleted && status != statusIncomplete && status != statusFailed:
		return dst, nil, wire.ErrIncomplete // status queued, in_progress or cancelled
	}
	a.notStreamed = true
	a.end(body, status)
	dst = a.Take()
	f, err := a.Finish(true)
	return dst, f, err
}
