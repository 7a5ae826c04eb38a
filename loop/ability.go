package loop

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
)

// A Relayer is a [lathe.Model] that can pass the bytes of its server's answers to a [lathe.Relay]. [lathe.ModelAs] finds the Relayer of a
// model.
type Relayer interface {
	// Relays returns the wire of the bytes that the model passes to a Relay; "": it passes none. The result must not change.
	Relays() lathe.Wire
}

// A TokenCounter is a [lathe.Model] whose server can count the tokens of a request. [lathe.ModelAs] finds the TokenCounter of a model.
type TokenCounter interface {
	// CountTokens returns the number of input tokens of req, without a model call. If the server cannot count, the error must wrap
	// [errors.ErrUnsupported].
	CountTokens(ctx context.Context, req *lathe.Request) (int64, error)
}

// CountTokens returns the number of input tokens of req, as the server of the loop's model counts them. The model name of the loop replaces
// req.Model. If the model is not a [TokenCounter] or its server cannot count, the error has the code invalid_request and wraps
// [errors.ErrUnsupported].
func (l *Loop) CountTokens(ctx context.Context, req *lathe.Request) (int64, error) {
	if l.counter == nil {
		return 0, lathe.CodeInvalidRequest.Wrap("loop: count tokens", errors.ErrUnsupported)
	}
	own := *req
	own.Model = l.opts.Model
	return l.counter.CountTokens(ctx, &own)
}

// A ContentChecker is a [lathe.Model] that reports which content of a conversation cannot be sent to its server, such as audio.
// [lathe.ModelAs] finds the ContentChecker of a model.
type ContentChecker interface {
	// CheckContent reports content that the server does not accept. err must be the error that Generate would return for such content in
	// the messages after the last answer of a model. dropped are the places of such content in earlier messages, which Generate would leave
	// out or replace, such as "messages[2].parts[0]".
	CheckContent(msgs []lathe.Message) (dropped []string, err error)
}

// CheckContent returns the result of the model's [ContentChecker]. It returns nil and nil if the model is not a ContentChecker: it is then
// not known which content the server accepts.
func (l *Loop) CheckContent(msgs []lathe.Message) (dropped []string, err error) {
	if l.content == nil {
		return nil, nil
	}
	return l.content.CheckContent(msgs)
}
