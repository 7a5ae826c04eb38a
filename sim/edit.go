package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// An edit applies a fault to the events of an answer on wire w and returns the changed events.
type edit func(w lathe.Wire, events []streamed) []streamed

// set returns the object with a new value for the member name, if it has one; value "" removes the member.
func set(object, name, value string) string {
	return string(rawjson.AppendEdited(nil, []byte(object), func(n string, v []byte) (key, to []byte, keep bool) {
		if n != name {
			return nil, v, true
		}
		return nil, []byte(value), value != ""
	}, nil))
}

// setIn is set for a member of the object in member outer.
func setIn(object, outer, name, value string) string {
	if inner := get(object, outer); inner != "" {
		return set(object, outer, set(inner, name, value))
	}
	return object
}

// get returns the value of a member as JSON; "" if none exists, or object is no object.
func get(object, name string) string {
	return string(rawjson.At([]byte(object), name))
}

// textOf returns the text of a member that is a string; "" otherwise.
func textOf(object, name string) string { return rawjson.Text([]byte(get(object, name))) }

// typeOf returns the text of the member type of an object.
func typeOf(object string) string { return textOf(object, "type") }

// indexOf returns the index of the block or item that the event belongs to, or -1.
func (e *streamed) indexOf() int {
	n, err := strconv.Atoi(get(e.data, "index") + get(e.data, "output_index"))
	if err != nil {
		return -1
	}
	return n
}

// beginsCall reports whether the event begins a call.
func (e *streamed) beginsCall() bool {
	return typeOf(get(e.data, "content_block")) == "tool_use" ||
		typeOf(e.data) == "response.output_item.added" && typeOf(get(e.data, "item")) == "function_call"
}

// ends reports whether the event is one of those that end an answer; most wires have two.
func (e *streamed) ends(w lathe.Wire) bool {
	if e.data == "[DONE]" {
		return true
	}
	switch w {
	case lathe.WireResponses:
		switch typeOf(e.data) {
		case "response.completed", "response.incomplete", "response.failed":
			return true
		}
	case lathe.WireMessages:
		return typeOf(e.data) == "message_delta" || typeOf(e.data) == "message_stop"
	case lathe.WireGemini:
		return strings.Contains(e.data, `"finishReason":`) || get(e.data, "promptFeedback") != ""
	}
	return false
}

// each returns an edit that applies change to each event whose data is an object.
func each(change func(w lathe.Wire, e *streamed)) edit {
	return func(w lathe.Wire, events []streamed) []streamed {
		for i := range events {
			if strings.HasPrefix(events[i].data, "{") {
				change(w, &events[i])
			}
		}
		return events
	}
}

// without returns an edit that removes the events for which drop returns true.
func without(drop func(w lathe.Wire, e *streamed) bool) edit {
	return func(w lathe.Wire, events []streamed) []streamed {
		return slices.DeleteFunc(events, func(e streamed) bool { return drop(w, &e) })
	}
}

// chain returns an edit that applies edits in order.
func chain(edits ...edit) edit {
	return func(w lathe.Wire, events []streamed) []streamed {
		for _, e := range edits {
			events = e(w, events)
		}
		return events
	}
}

// endMissing removes the events that end an answer.
var endMissing = without(func(w lathe.Wire, e *streamed) bool { return e.ends(w) })

// cutBeforeEnd closes the connection instead of sending the events that end an answer.
func cutBeforeEnd(w lathe.Wire, events []streamed) []streamed {
	return append(endMissing(w, events), streamed{cut: true})
}

// doneMissing removes the event [DONE].
var doneMissing = without(func(_ lathe.Wire, e *streamed) bool { return e.data == "[DONE]" })

// nameless removes the line `event:` of each event.
var nameless = each(func(_ lathe.Wire, e *streamed) { e.name = "" })

// reindex returns an edit that replaces the indexes of blocks and items.
func reindex(index func(i int) int) edit {
	return each(func(_ lathe.Wire, e *streamed) {
		if n := e.indexOf(); n >= 0 {
			e.data = set(set(e.data, "index", itoa(index(n))), "output_index", itoa(index(n)))
		}
	})
}

// unknownEvent inserts an event of an unknown type after the second event.
func unknownEvent(w lathe.Wire, events []streamed) []streamed {
	e := streamed{name: "response.simulated.progress", data: `{"type":"response.simulated.progress","sequence_number":2,"percent":50}`}
	switch w {
	case lathe.WireMessages:
		e = streamed{name: "simulated_progress", data: `{"type":"simulated_progress","percent":50}`}
	case lathe.WireGemini:
		e = streamed{data: `{"simulatedProgress":{"percent":50}}`}
	}
	return slices.Insert(events, min(2, len(events)), e)
}

// unknownItem appends an item, a block or a part of an unknown type to the answer.
func unknownItem(w lathe.Wire, events []streamed) []streamed {
	at := slices.IndexFunc(events, func(e streamed) bool { return e.ends(w) })
	if at < 0 {
		return events
	}
	next := 0
	for i := range events {
		next = max(next, events[i].indexOf()+1)
	}
	var more []streamed
	switch w {
	case lathe.WireResponses:
		const item = `{"id":"sim_1","type":"simulated_note","status":"completed","note":"a"}`
		for _, typ := range [...]string{"response.output_item.added", "response.output_item.done"} {
			more = append(more, streamed{name: typ, data: `{"type":"` + typ + `","output_index":` + itoa(next) + `,"item":` + item + `}`})
		}
		response := get(events[at].data, "response")
		list := strings.TrimSuffix(get(response, "output"), "]")
		if list != "[" {
			list += ","
		}
		events[at].data = setIn(events[at].data, "response", "output", list+item+"]")
	case lathe.WireMessages:
		more = []streamed{
			{name: "content_block_start", data: `{"type":"content_block_start","index":` + itoa(next) + `,"content_block":{"type":"simulated_note","note":"a"}}`},
			{name: "content_block_stop", data: `{"type":"content_block_stop","index":` + itoa(next) + `}`},
		}
	default:
		more = []streamed{{data: `{"candidates":[{"content":{"role":"model","parts":[{"simulatedNote":{"note":"a"}}]},"index":0}]}`}}
	}
	return renumber(w, slices.Insert(events, at, more...))
}

// renumber numbers the events of the wire Responses anew.
func renumber(w lathe.Wire, events []streamed) []streamed {
	if w != lathe.WireResponses {
		return events
	}
	n := 0
	for i := range events {
		e := &events[i]
		if !strings.HasPrefix(e.data, "{") {
			continue
		}
		e.data = set(e.data, "sequence_number", "")
		e.data = strings.TrimSuffix(e.data, "}") + `,"sequence_number":` + itoa(n) + "}"
		n++
	}
	return events
}

// usageMissing removes the usage.
var usageMissing = each(func(_ lathe.Wire, e *streamed) {
	e.data = setIn(e.data, "message", "usage", "")
	e.data = set(e.data, "usage", "")
	e.data = setIn(e.data, "response", "usage", "null")
	e.data = set(e.data, "usageMetadata", "")
})

// usageSplit moves the input tokens to the first event and leaves the output tokens in the last, as former servers of Anthropic did.
func usageSplit(_ lathe.Wire, events []streamed) []streamed {
	input := ""
	for i := range events {
		if usage := get(events[i].data, "usage"); usage != "" {
			input = get(usage, "input_tokens")
			events[i].data = set(events[i].data, "usage", `{"output_tokens":`+get(usage, "output_tokens")+`}`)
		}
	}
	return each(func(_ lathe.Wire, e *streamed) {
		if typeOf(e.data) == "message_start" {
			e.data = setIn(e.data, "message", "usage", `{"input_tokens":`+input+`,"output_tokens":1}`)
		}
	})(lathe.WireMessages, events)
}

// usageLate moves the usage to an event after the finish reason.
func usageLate(_ lathe.Wire, events []streamed) []streamed {
	for i := range events {
		if usage := get(events[i].data, "usageMetadata"); usage != "" {
			events[i].data = set(events[i].data, "usageMetadata", "")
			return append(events, streamed{data: `{"usageMetadata":` + usage + `}`})
		}
	}
	return events
}

// argsAtOnce writes the complete arguments of calls without deltas: into the event that begins a block of Messages, and into the event
// that ends an item of Responses.
func argsAtOnce(w lathe.Wire, events []streamed) []streamed {
	isPiece := func(_ lathe.Wire, e *streamed) bool {
		return typeOf(e.data) == "response.function_call_arguments.delta" || typeOf(get(e.data, "delta")) == "input_json_delta"
	}
	args := map[string]string{} // by the index of the block
	for i := range events {
		if e := &events[i]; w == lathe.WireMessages && isPiece(w, e) {
			args[get(e.data, "index")] += textOf(get(e.data, "delta"), "partial_json")
		}
	}
	for i := range events {
		e := &events[i]
		if typeOf(get(e.data, "content_block")) == "tool_use" {
			e.data = setIn(e.data, "content_block", "input", orObject(args[get(e.data, "index")]))
		}
	}
	return renumber(w, without(isPiece)(w, events))
}

// argsEmpty writes empty arguments as no text instead of {}.
var argsEmpty = chain(
	without(func(_ lathe.Wire, e *streamed) bool { return strings.Contains(e.data, `"delta":"{}"`) }),
	each(func(_ lathe.Wire, e *streamed) {
		e.data = strings.ReplaceAll(e.data, `"partial_json":"{}"`, `"partial_json":""`)
		e.data = strings.ReplaceAll(e.data, `"arguments":"{}"`, `"arguments":""`)
		e.data = strings.ReplaceAll(e.data, `,"args":{}`, "")
	}), renumber)

// idMissing removes the ids of calls.
var idMissing = each(func(_ lathe.Wire, e *streamed) {
	const mark = `{"functionCall":{"id":`
	for from := 0; ; {
		i := strings.Index(e.data[from:], mark)
		if i < 0 {
			return
		}
		i += from + len(`{"functionCall":`)
		end, err := rawjson.Scan([]byte(e.data), i)
		if err != nil {
			return
		}
		call := set(e.data[i:end], "id", "")
		e.data = e.data[:i] + call + e.data[end:]
		from = i + len(call)
	}
})

// interleave alternates the pieces of consecutive calls, as if the model wrote the calls in parallel: a1 a2 a3 b1 b2 becomes a1 b1 a2 b2 a3.
func interleave(w lathe.Wire, events []streamed) []streamed {
	type call struct {
		index  int // on the wire
		pieces []streamed
	}
	var calls []call
	from, to := len(events), 0 // range of events with the calls
	longest := 0               // number of pieces of the call with the most pieces
	for i := range events {
		e := &events[i]
		index := e.indexOf()
		k := slices.IndexFunc(calls, func(c call) bool { return c.index == index })
		if e.beginsCall() {
			k, calls = len(calls), append(calls, call{index: index})
		}
		if k < 0 {
			continue
		}
		from, to = min(from, i), i+1
		calls[k].pieces = append(calls[k].pieces, *e)
		longest = max(longest, len(calls[k].pieces))
	}
	if len(calls) == 0 {
		return events
	}
	var mixed []streamed
	for n := range longest {
		for _, c := range calls {
			if n < len(c.pieces) {
				mixed = append(mixed, c.pieces[n])
			}
		}
	}
	return renumber(w, slices.Replace(events, from, to, mixed...))
}

// stopReason returns an edit that replaces the stop reason.
func stopReason(reason string) edit {
	return each(func(_ lathe.Wire, e *streamed) {
		if get(get(e.data, "delta"), "stop_reason") != "" {
			e.data = setIn(e.data, "delta", "stop_reason", quote(reason))
		}
	})
}

// malformedCall removes the calls of an answer and sets Google's finish reason for malformed calls.
func malformedCall(w lathe.Wire, events []streamed) []streamed {
	isCall := func(_ lathe.Wire, e *streamed) bool {
		return strings.Contains(e.data, `{"functionCall":`) && !e.ends(w)
	}
	kept := without(isCall)(w, slices.Clone(events))
	if len(kept) == len(events) {
		return events
	}
	return each(func(_ lathe.Wire, e *streamed) {
		e.data = strings.Replace(e.data, `"finishReason":"STOP"`, `"finishReason":"MALFORMED_FUNCTION_CALL"`, 1)
	})(w, kept)
}

// terminalDiffers changes the arguments of calls in the object that ends a response, so that they differ from the deltas.
var terminalDiffers = each(func(_ lathe.Wire, e *streamed) {
	if typeOf(e.data) == "response.completed" {
		e.data = strings.ReplaceAll(e.data, `"arguments":"{\"`, `"arguments":"{\"simulated\":1,\"`)
	}
})

// isError reports whether the event has the type `error`.
func isError(_ lathe.Wire, e *streamed) bool { return typeOf(e.data) == "error" }

// errorFlat leaves an error of the stream only in the members of the event, not in its object `error`.
var errorFlat = chain(endMissing, each(func(w lathe.Wire, e *streamed) {
	if isError(w, e) {
		e.data = set(e.data, "error", "")
	}
}))

// errorNested leaves an error of the stream only in the object `error` of the event, not in its members.
var errorNested = chain(endMissing, each(func(w lathe.Wire, e *streamed) {
	if isError(w, e) {
		for _, name := range [...]string{"code", "message", "param"} {
			e.data = set(e.data, name, "")
		}
	}
}))

// failedOnly removes the event `error` before response.failed.
var failedOnly = without(isError)

// overloaded replaces an error of the stream by that of an overloaded server.
var overloaded = each(func(w lathe.Wire, e *streamed) {
	if isError(w, e) {
		e.data = setIn(e.data, "error", "type", `"overloaded_error"`)
		e.data = setIn(e.data, "error", "message", `"Overloaded"`)
	}
})
