package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
)

// ErrCannotAsk is the error of [Asker.Ask] if the client of the call cannot answer. A tool that needs the answer returns it; the call then
// ends with unavailable.
var ErrCannotAsk error = &lathe.Error{Code: lathe.CodeUnavailable, Err: errors.New("the client of this call answers no questions")}

// An Asker lets a tool ask the client of its call, which is a user or a model, while the tool executes. Answers are untrusted input. Its
// methods may be called from several goroutines at once.
type Asker interface {
	// Can reports whether the client can answer a question of this kind.
	Can(q Question) bool
	// Ask sends all questions to the client and blocks until all are answered. The tool chooses the names of the questions; the answers
	// have the same names. The time does not count against the tool's timeout. The error wraps [ErrCannotAsk] if the client cannot answer
	// one of the questions, and is ctx.Err() if ctx is done first.
	Ask(ctx context.Context, questions map[string]Question) (map[string]Answer, error)
}

// A Question is what a tool asks its client. Exactly one field is set.
type Question struct {
	Form   *Form   // asks the user to fill in a form
	Link   *Link   // asks the user to visit a URL
	Sample *Sample // asks the client's model for an answer
	Roots  bool    // asks for the folders that the client works in
}

// A Form asks the client's user to fill in fields.
type Form struct {
	Message string // text for the user
	// Schema is the JSON Schema of an object whose members are strings, numbers, booleans and enums. The answer satisfies it.
	Schema json.RawMessage
}

// A Link asks the client's user to visit a URL, for data that neither tools nor models may receive, such as a login or a payment. The
// client shows the URL and does not open it without the user. If the [Answer] is not refused, the user has agreed to visit the URL; it says
// nothing about what happened there.
type Link struct {
	Message string // text for the user
	URL     string // https, or http on the user's own machine
	Before  bool   // the link must be visited before the user answers: an answer means that the user has visited it
}

// A Sample asks the client's model for an answer.
type Sample struct {
	System    string          // system prompt; "": none
	Messages  []lathe.Message // text parts only
	MaxTokens int             // maximum length of the answer, in tokens
}

// An Answer is the client's answer to one [Question]. Only the fields for its kind are set: Refused or Form for a form, Refused for a link,
// Message and Model for a sample, Roots for roots.
type Answer struct {
	// Refused is "decline" or "cancel" if the user did not fill in the form or visit the link; "" if the user did.
	Refused string
	Form    json.RawMessage // the filled-in form: an object that satisfies Form.Schema
	Message lathe.Message   // the answer of the client's model
	Model   string          // the name of the client's model
	Roots   []Root          // the folders that the client works in
}

// A Root is a folder that the client says it works in. It grants no access. Name may be "".
type Root struct{ URI, Name string }

type askerKey struct{}

// WithAsker returns a copy of ctx from which [AskerFrom] returns a, in place of an Asker that ctx has. Tools that are called with this
// context send their questions to the client through a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerFrom returns the Asker of the call to which ctx belongs. It is never nil: without an Asker, it returns one whose Can returns false
// and whose Ask returns [ErrCannotAsk].
func AskerFrom(ctx context.Context) Asker {
	if a, ok := ctx.Value(askerKey{}).(Asker); ok {
		return a
	}
	return cannotAsk{}
}

// AskOne asks a single question with the Asker of ctx, blocks until it is answered, and returns its answer. Its errors are those of
// [Asker.Ask]. name identifies the question to the client.
func AskOne(ctx context.Context, name string, q Question) (Answer, error) {
	got, err := AskerFrom(ctx).Ask(ctx, map[string]Question{name: q})
	if err != nil {
		return Answer{}, err
	}
	return got[name], nil
}

// cannotAsk is the Asker of a call without a client that answers.
type cannotAsk struct{}

func (cannotAsk) Can(Question) bool { return false }

func (cannotAsk) Ask(context.Context, map[string]Question) (map[string]Answer, error) {
	return nil, ErrCannotAsk
}
