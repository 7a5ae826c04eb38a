package lathe

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrCannotAsk is returned by an [Asker] that has nobody to ask. A tool that can do without the
// answer goes on; one that cannot returns the error, and its call is answered unavailable.
var ErrCannotAsk error = &Error{Code: CodeUnavailable, Err: errors.New("nobody can be asked")}

// An Asker asks whoever is behind a call something while the tool runs: the person, or the model of
// the client that made the call. What comes back is untrusted. It may be used by several goroutines
// at once.
type Asker interface {
	// Can reports whether such a question could be asked.
	Can(q Question) bool
	// Ask asks all questions at once, each under a name of the tool's, and returns when every one is
	// answered. The time that it takes does not count for the tool's timeout. The error is, or wraps,
	// [ErrCannotAsk] where there is nobody for one of them, and ctx's when ctx ends first.
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

// A Link asks the person who uses the client to visit an address, for what tools and models are not to
// see: a login, a payment. It is shown and never opened for them. An answer that is not refused says
// that they do so, and nothing of what they do there.
type Link struct {
	Message string
	URL     string // https, or http on the person's own machine
	Before  bool   // the tool goes on with the answer: it says that they have been there
}

// A Sample asks the client's model. Messages hold text.
type Sample struct {
	System    string
	Messages  []Message
	MaxTokens int
}

// An Answer is what came back.
type Answer struct {
	// Refused, when set, is how the person did not fill in the form or visit the link: "decline" or "cancel".
	Refused string
	Form    json.RawMessage // what was filled in: an object that satisfies the schema
	Message Message         // of the model
	Model   string          // as the client names it
	Roots   []Root
}

// A Root is a folder that a client works in. It is a hint, and gives no right.
type Root struct{ URI, Name string }

type askerKey struct{}

// WithAsker returns a context whose tools ask a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerFrom returns the Asker of the call that ctx belongs to. It is never nil: without one it is an
// Asker that can ask nothing.
func AskerFrom(ctx context.Context) Asker {
	if a, ok := ctx.Value(askerKey{}).(Asker); ok {
		return a
	}
	return nobody{}
}

// AskOne asks one question. See [Asker.Ask].
func AskOne(ctx context.Context, name string, q Question) (Answer, error) {
	got, err := AskerFrom(ctx).Ask(ctx, map[string]Question{name: q})
	if err != nil {
		return Answer{}, err
	}
	return got[name], nil
}

type nobody struct{}

func (nobody) Can(Question) bool { return false }

func (nobody) Ask(context.Context, map[string]Question) (map[string]Answer, error) {
	return nil, ErrCannotAsk
}
