package loop

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
)

// A Relayer is a [lathe.Model] that passes the bytes of its server's answers to a [lathe.Relay]. [lathe.ModelAs] finds it.
type Relayer interface {
	// Relays returns the wire of these bytes; "": the model passes none. The result does not change.
	Relays() lathe.Wire
}

// A TokenCounter is a [lathe.Model] whose server counts the tokens of a request. [lathe.ModelAs] finds it.
type TokenCounter interface {
	// CountTokens returns the number of input tokens of req, without a model call. The error wraps [errors.ErrUnsupported] if the server
	// cannot count.
	CountTokens(ctx context.Context, req *lathe.Request) (int64, error)
}

// CountTokens returns the number of input tokens of req, as the server of the loop's model counts them. The loop's model name is used in place
// of req.Model. The error wraps [errors.ErrUnsupported], with the code invalid_request, if the model is no [TokenCounter], or its server cannot
// count.
func (l *Loop) CountTokens(ctx context.Context, req *lathe.Request) (int64, error) {
	if l.counter == nil {
		return 0, lathe.CodeInvalidRequest.Wrap("loop: count tokens", errors.ErrUnsupported)
	}
	own := *req
	own.Model = l.opts.Model
	return l.counter.CountTokens(ctx, &own)
}

// A ContentChecker is a [lathe.Model] that reports which content of a conversation cannot be sent to its server, such as audio.
// [lathe.ModelAs] finds it.
type ContentChecker interface {
	// CheckContent returns the error that Generate would return for content in the messages after the last answer of a model, and the
	// places of content that would be left out or replaced in earlier messages, such as "messages[2].parts[0]".
	CheckContent(msgs []lathe.Message) (dropped []string, err error)
}

// CheckContent returns the result of the model's [ContentChecker]; nil and nil if the model is none, so that it is not known what its server
// accepts.
func (l *Loop) CheckContent(msgs []lathe.Message) (dropped []string, err error) {
	if l.content == nil {
		return nil, nil
	}
	return l.content.CheckContent(msgs)
}
