package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Served is the codec of chat completions as a server speaks them.
type Served struct{}

var _ wire.Served = Served{}

// Wire implements [wire.Served].
func (Served) Wire() lathe.Wire { return lathe.WireOpenAIChat }

// ParseRequest implements [wire.Served]. It reads what [ParseAny] reads.
func (Served) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	req, err := ParseAny(body)
	if err != nil {
		return nil, err
	}
	req.Body = body
	return req, nil
}

// NewWriter implements [wire.Served].
func (Served) NewWriter(head *wire.AnswerHead) wire.Writer {
	if head.Whole {
		return &servedWriter{ChunkWriter: &ChunkWriter{fold: &fold{head: head}}}
	}
	w := &servedWriter{ChunkWriter: NewChunkWriter(completionID(head), head.Model, head.Created, head.Request != nil && head.Request.IncludeUsage)}
	if head.Request != nil && head.Request.Obfuscate {
		w.Pad()
	}
	return w
}

// AppendError implements [wire.Served].
func (Served) AppendError(dst []byte, e *wire.APIError) []byte { return AppendError(dst, e) }

func completionID(head *wire.AnswerHead) string {
	return "chatcmpl-" + head.ID
}

// A servedWriter is a [wire.Writer] of chat completions, which show no call of this server.
type servedWriter struct {
	*ChunkWriter
	id, model string // of chunks that were passed; "": none was
}

var _ wire.Writer = (*servedWriter)(nil)

// AppendDelta implements [wire.Writer].
func (w *servedWriter) AppendDelta(dst []byte, d lathe.Delta) []byte {
	w.follow()
	if d.Kind == lathe.DeltaCallStart && d.Name != "" {
		d.Name = callName(d.Name)
	}
	return w.ChunkWriter.AppendDelta(dst, d)
}

// follow has the next chunk bear the id and model of those that were passed.
func (w *servedWriter) follow() {
	if w.id != "" {
		w.GoOn(w.id, w.model)
		w.id = ""
	}
}

// AppendServerCall implements [wire.Writer].
func (*servedWriter) AppendServerCall(dst []byte, _ *wire.ServerCall) []byte { return dst }

// AppendApproval implements [wire.Writer].
func (*servedWriter) AppendApproval(dst []byte, _ *wire.Approval) []byte { return dst }

// AppendCarrier implements [wire.Writer].
func (*servedWriter) AppendCarrier(dst []byte, _ string) []byte { return dst }

// AppendFinish implements [wire.Writer].
func (w *servedWriter) AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	w.follow()
	if w.fold != nil {
		return w.ChunkWriter.AppendFinish(dst, f, extra)
	}
	return w.AppendDone(w.ChunkWriter.AppendFinish(dst, f, extra))
}

// AppendError implements [wire.Writer].
func (*servedWriter) AppendError(dst []byte, e *wire.APIError) []byte {
	return AppendErrorFrame(dst, e)
}

// AppendKeepAlive implements [wire.Writer].
func (*servedWriter) AppendKeepAlive(dst []byte) []byte {
	return wire.JSON(dst).Lit(": keep-alive\n\n")
}

// Pass implements [wire.Writer].
func (w *servedWriter) Pass(raw *lathe.Raw) []byte {
	for _, d := range raw.Deltas {
		w.ChunkWriter.Pass(d)
	}
	w.PassEnd(raw.Finished, raw.UsageOnly)
	w.id, w.model = raw.ID, raw.Model
	return raw.Bytes
}
