package loop

import (
	"context"
	"errors"

	"github.com/lathe-run/lathe"
)

// A Relayer is a [lathe.Model] that passes the bytes of its server's answers to a [lathe.Relay]. It is an optional ability that
// [lathe.ModelAs] finds. Relays returns the wire of these bytes; "": the model passes none.
type Relayer interface {
	Relays() lathe.Wire
}

// A TokenCounter is a [lathe.Model] whose server counts the tokens of a request. It is an optional ability that [lathe.ModelAs] finds. The
// error wraps [errors.ErrUnsupported] if the server has no such method.
type TokenCounter interface {
	CountTokens(ctx context.Context, req *lathe.Request) (int64, error)
}

// CountTokens returns the number of tokens of a request as counted by the server of the loop's model. It ignores the model name in the
// request. The error wraps [errors.ErrUnsupported] if the model is no [TokenCounter], or its server has no such method.
func (l *Loop) CountTokens(ctx context.Context, req *lathe.Request) (int64, error) {
	if l.counter == nil {
		return 0, lathe.CodeInvalidRequest.Wrap("loop: count tokens", errors.ErrUnsupported)
	}
	own := *req
	own.Model = l.opts.Model
	return l.counter.CountTokens(ctx, &own)
}

// A ContentChecker is a [lathe.Model] that reports which content of a conversation cannot be sent to its server, such as audio. It is an
// optional ability that [lathe.ModelAs] finds. The error is the one that Generate returns for such content in the messages after the last
// answer. dropped lists the places of content that is left out or replaced in earlier messages, such as "messages[2].parts[0]".
type ContentChecker interface {
	CheckContent(msgs []lathe.Message) (dropped []string, err error)
}

// CheckContent returns the result of the model's [ContentChecker], or nothing if the model has none.
func (l *Loop) CheckContent(msgs []lathe.Message) (dropped []string, err error) {
	if l.content == nil {
		return nil, nil
	}
	return l.content.CheckContent(msgs)
}
