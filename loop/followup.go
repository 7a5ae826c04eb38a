package loop

import (
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// followUp is the loop's own request for an answer: a synthetic user message that is sent if the answer of the model is blank or does not
// match the response format, or if a limit is reached. It is the last message of the request. If the model does not answer it, it is
// removed from the history at the end of the run.
//
// The fields below format record which requests were made. Only the methods of followUp write them; a resumed run reconstructs them with
// resume. These methods alone set toolsOff of the run, which is never reset.
type followUp struct {
	run    *run
	format *responseFormat // set when the run is created; nil: the answer is free text

	blankAsked  bool // a request after a blank answer was made; it is made once
	formatAsked bool // the answer was requested again in its format and without tools; this is done once
	repairs     int  // number of other requests after an answer that does not match the format
	announced   bool // an event contains the last message
}

// ask makes the last message a request of the loop: it appends text, unless the last message is already such a request. That is so if the
// model has returned a blank message for it, because blank messages are not added to the history.
func (f *followUp) ask(text string) {
	if f.unanswered() {
		return
	}
	f.announced = false
	f.run.req.Messages = append(f.run.req.Messages, synthetic(text))
}

func synthetic(text string) lathe.Message {
	m := lathe.User(text)
	m.Synthetic = true
	return m
}

// askAfterBlank requests an answer in place of a blank one, without tools unless the settings keep them.
func (f *followUp) askAfterBlank() {
	f.blankAsked = true
	r := f.run
	r.toolsOff = r.toolsOff || !r.settings.FixEmptyFinalKeepTools
	f.ask(r.settings.FixEmptyFinalText)
}

// unanswered reports whether the last message is a request of the loop.
func (f *followUp) unanswered() bool {
	messages := f.run.req.Messages
	n := len(messages)
	return n > len(f.run.in.Messages) && messages[n-1].Synthetic
}

// announce returns the text of the last message if it is a request of the loop that no event contains yet, and marks it as announced. In
// all other cases it returns "".
func (f *followUp) announce() string {
	if f.announced || !f.unanswered() {
		return ""
	}
	f.announced = true
	messages := f.run.req.Messages
	return messages[len(messages)-1].Text()
}

// resume reconstructs the fields of a resumed run. own are the messages that the run added to its conversation; each synthetic one is a
// request of the loop. After a rejected answer it is a request for the format: the first one switched to the format if a turn was sent
// without it, and each of the others is a repair.
func (f *followUp) resume(own []lathe.Message) {
	for i, m := range own {
		switch {
		case !m.Synthetic:
		case !rejected(own, i-1):
			f.blankAsked = true
		case !f.formatAsked && slices.ContainsFunc(f.run.result.Trace, leftOutFormat):
			f.switchToFormat()
		default:
			f.repairs++
		}
	}
	f.announced = f.unanswered()
}

// rejected reports whether message i is an answer that the loop did not accept: a synthetic message follows an assistant message without
// calls.
func rejected(messages []lathe.Message, i int) bool {
	return i >= 0 && i+1 < len(messages) && messages[i+1].Synthetic && messages[i].Role == lathe.RoleAssistant && len(messages[i].Calls()) == 0
}

// violation returns how the answer of the turn differs from the response format. It returns "" if the answer matches, or cannot be checked.
func (f *followUp) violation() string {
	call, relay := &f.run.call, f.run.req.Relay
	if f.format == nil || relay != nil && relay.Opaque {
		return ""
	}
	for _, p := range call.message.Parts {
		switch p.(type) {
		case lathe.Refusal, lathe.Blob, lathe.Opaque: // a refusal has no format, and parts of the vendor's server cannot be read
			return ""
		case lathe.Text, lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
		}
	}
	return f.format.violation(call.answer)
}

// askAgain is the text of the request after an answer that does not match the response format.
const askAgain = "The last message is not an answer in the required format: %s. Answer again with the JSON text alone, without any text before or after it."

// askInFormat requests another answer after one that does not match the response format; violation is the reason. It returns false if the
// run ends with the answer as it is. If the request of the turn had tools in place of the format, the next one has the format and no tools,
// and does not count as a repair.
func (f *followUp) askInFormat(violation string) bool {
	r := f.run
	switch {
	case r.in.extra.Relay != nil: // the client has already received the answer
		return false
	case !f.formatAsked && leftOutFormat(*r.turnTrace()):
		f.switchToFormat()
	case f.format.checked && f.repairs < r.settings.MaxAnswerRepairs:
		f.repairs++
	default:
		return false
	}
	f.ask(fmt.Sprintf(askAgain, violation))
	return true
}

// leftOutFormat reports whether the request of the turn was sent without the response format.
func leftOutFormat(t event.TurnTrace) bool { return slices.Contains(t.Dropped, FormatPath) }

// switchToFormat makes the following requests of the run have the response format, and neither tools nor hosted tools.
func (f *followUp) switchToFormat() {
	f.formatAsked = true
	f.run.toolsOff, f.run.req.HostedTools = true, nil
}
