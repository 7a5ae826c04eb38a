package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
)

// ErrCannotAsk is returned by an [Asker] whose client answers no such question. A tool that needs the answer returns the
// error, and its call is answered unavailable.
var ErrCannotAsk error = &lathe.Error{Code: lathe.CodeUnavailable, Err: errors.New("the client of this call answers no questions")}

// An Asker asks the client of a call a question while the tool runs: its user, or its model. Answers are untrusted. It may
// be used by several goroutines at once.
type Asker interface {
	// Can reports whether such a question could be asked.
	Can(q Question) bool
	// Ask asks all questions at once, each under a name of the tool's, and returns when all are answered. The time that it
	// takes does not count for the tool's timeout. The error is, or wraps, [ErrCannotAsk] if the client does not answer one
	// of them, and that of ctx if ctx ends first.
	Ask(ctx context.Context, questions map[string]Question) (map[string]Answer, error)
}

// A Question is what a tool wants to know. Exactly one field is set.
type Question struct {
	Form   *Form
	Link   *Link
	Sample *Sample
	Roots  bool // the folders that the client works in
}

// A Form asks the person who uses the client.
type Form struct {
	Message string
	// Schema is the JSON Schema of an object whose members are texts, numbers, booleans and choices. An
	// answer satisfies it.
	Schema json.RawMessage
}

// A Link asks the user of the client to visit an address, for what tools and models must not see: a login, a payment. The
// client shows it and never opens it by itself. An answer that is not refused says that the user visits it, and nothing
// about the outcome.
type Link struct {
	Message string
	URL     string // https, or http on the person's own machine
	Before  bool   // the answer means that the user has visited the address
}

// A Sample asks the client's model. Messages hold text.
type Sample struct {
	System    string
	Messages  []lathe.Message
	MaxTokens int
}

// An Answer is the client's answer to one [Question]. The field that is set depends on the question.
type Answer struct {
	// Refused, when set, is how the person did not fill in the form or visit the link: "decline" or "cancel".
	Refused string
	Form    json.RawMessage // what was filled in: an object that satisfies the schema
	Message lathe.Message   // of the model
	Model   string          // as the client names it
	Roots   []Root
}

// A Root is a folder that the client works in. It is informational and grants no access.
type Root struct{ URI, Name string }

type askerKey struct{}

// WithAsker returns a context in which tools ask the client through a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerFrom returns the Asker of the call that ctx belongs to. It is never nil: without one it is an
// Asker that can ask nothing.
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

// cannotAsk is the Asker of a call without one.
type cannotAsk struct{}

func (cannotAsk) Can(Question) bool { return false }

func (cannotAsk) Ask(context.Context, map[string]Question) (map[string]Answer, error) {
	return nil, ErrCannotAsk
}
