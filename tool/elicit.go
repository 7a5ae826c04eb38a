package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
)

// ErrCannotAsk is the error of an [Asker] whose client does not answer such questions. A tool that requires the answer returns this error,
// and its call ends with code unavailable.
var ErrCannotAsk error = &lathe.Error{Code: lathe.CodeUnavailable, Err: errors.New("the client of this call answers no questions")}

// An Asker asks the client of a call a question while the tool is executing: its user or its model. Answers are untrusted. Its methods may
// be called from several goroutines at once.
type Asker interface {
	// Can reports whether the client answers such a question.
	Can(q Question) bool
	// Ask asks all questions at once, each under a name that the tool chooses, and returns when all are answered. Its time does not count
	// for the tool's timeout. The error is or wraps [ErrCannotAsk] if the client does not answer a question, and is that of ctx if ctx is
	// done first.
	Ask(ctx context.Context, questions map[string]Question) (map[string]Answer, error)
}

// A Question is a question of a tool to its client. Exactly one field is set.
type Question struct {
	Form   *Form
	Link   *Link
	Sample *Sample
	Roots  bool // asks for the folders that the client works in
}

// A Form asks the user of the client to fill in fields.
type Form struct {
	Message string
	// Schema is the JSON Schema of an object whose members are strings, numbers, booleans and enums. The answer satisfies it.
	Schema json.RawMessage
}

// A Link asks the user of the client to visit a URL, for data that tools and models must not receive: a login, a payment. The client shows
// the URL and never opens it by itself. An answer that is not refused means that the user visits it; it does not contain the outcome.
type Link struct {
	Message string
	URL     string // https, or http on the user's own machine
	Before  bool   // the answer means that the user has already visited the URL
}

// A Sample asks the client's model for an answer. Messages contain only text.
type Sample struct {
	System    string
	Messages  []lathe.Message
	MaxTokens int
}

// An Answer is the client's answer to one [Question]. The kind of the question determines which field is set.
type Answer struct {
	// Refused is "decline" or "cancel" if the user did not fill in the form or visit the link.
	Refused string
	Form    json.RawMessage // the filled-in form: an object that satisfies the schema
	Message lathe.Message   // the message of the client's model
	Model   string          // the name of the client's model
	Roots   []Root
}

// A Root is a folder that the client works in. It is informational and grants no access.
type Root struct{ URI, Name string }

type askerKey struct{}

// WithAsker returns a context in which tools ask the client by a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerFrom returns the Asker of the call to which ctx belongs. It is never nil: if none exists, Can returns false and Ask returns
// ErrCannotAsk.
func AskerFrom(ctx context.Context) Asker {
	if a, ok := ctx.Value(askerKey{}).(Asker); ok {
		return a
	}
	return cannotAsk{}
}

// AskOne asks one question. See [Asker.Ask].
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
