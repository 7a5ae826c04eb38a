package loop

import (
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// followUp is the loop's own request for an answer: a synthetic user message, sent when the model's answer is blank or not of the
// response format, or a limit is reached. It is the last message of the request. It is removed from the history at the end of the
// run if the model has not answered it.
type followUp struct {
	run       *run
	asked     bool // a blank answer was asked for again, which is done once
	announced bool // the last message was in an event
	format    *responseFormat
	formatted bool // the answer was asked for in its format, without tools, which is done once
	repairs   int  // how often an answer that does not match the schema was asked for again
}

// ask adds a request of the loop, unless it has just made one.
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

// unanswered reports whether the loop's own request is the last message.
func (f *followUp) unanswered() bool {
	r := f.run
	n := len(r.req.Messages)
	return n > len(r.in.Messages) && r.req.Messages[n-1].Synthetic
}

// announce returns the text of the request that the last message is, the first time that it is called for it; "" otherwise.
func (f *followUp) announce() string {
	if f.announced || !f.unanswered() {
		return ""
	}
	f.announced = true
	messages := f.run.req.Messages
	return messages[len(messages)-1].Text()
}

// resume sets what a resumed run has asked for. own are the messages that the run added to its conversation.
func (f *followUp) resume(own []lathe.Message) {
	for i := range own {
		switch {
		case !own[i].Synthetic:
		case rejected(own, i-1) && !f.formatted && slices.ContainsFunc(f.run.result.Trace, leftOutFormat):
			f.inFormat()
		case rejected(own, i-1):
			f.repairs++
		default:
			f.asked = true
		}
	}
	f.announced = f.unanswered()
}

// rejected reports whether message i is an answer that the loop did not accept: the request that follows it says why.
func rejected(messages []lathe.Message, i int) bool {
	return i >= 0 && i+1 < len(messages) && messages[i+1].Synthetic && messages[i].Role == lathe.RoleAssistant && len(messages[i].Calls()) == 0
}

// violation returns in which way the answer of the turn is not what the response format requires; "" if it is, or cannot be judged.
func (f *followUp) violation() string {
	c := &f.run.call
	if f.format == nil || f.run.req.Relay != nil && f.run.req.Relay.Opaque {
		return ""
	}
	for _, p := range c.message.Parts {
		switch p.(type) {
		case lathe.Refusal, lathe.Blob, lathe.Opaque: // a refusal has no format, and what a vendor's server wrote is not read
			return ""
		case lathe.Text, lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
		}
	}
	return f.format.violation(c.answer)
}

// askAgain is what the model reads about an answer that is not of the response format.
const askAgain = "The last message is not an answer in the required format: %s. Answer again with the JSON text alone, without any text before or after it."

// askInFormat asks for an answer in the response format after one that is not, for the reason that violation says, and reports false if the
// run ends with the answer as it is. A turn whose request had tools in place of the format is followed by one with the format and
// without tools. It is not counted as a repair.
func (f *followUp) askInFormat(violation string) bool {
	r := f.run
	switch {
	case r.in.Relay != nil: // the client has the answer
		return false
	case !f.formatted && leftOutFormat(*r.turnTrace()):
		f.inFormat()
	case f.format.checked && f.repairs < r.settings.MaxAnswerRepairs:
		f.repairs++
	default:
		return false
	}
	f.ask(fmt.Sprintf(askAgain, violation))
	return true
}

// leftOutFormat reports whether the response format was left out of the request of the turn.
func leftOutFormat(t event.TurnTrace) bool { return slices.Contains(t.Dropped, FormatPath) }

// inFormat lets the turns that follow be with the response format and without tools.
func (f *followUp) inFormat() {
	f.formatted, f.run.toolsOff, f.run.req.HostedTools = true, true, nil
}
