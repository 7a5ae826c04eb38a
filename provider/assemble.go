package provider

import (
	"errors"
	"io"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// AssemblerOptions are the limits on the answer that an [Assembler] joins. The comment of each field states its default, for 0.
type AssemblerOptions struct {
	MaxCalls int // 256 calls
	MaxBytes int // 32 MiB of text, reasoning, arguments and unknown members
}

// An Assembler joins the chunks of a streamed chat completion on OpenAI's wire. It accepts the malformed streams of real servers: pieces
// of calls in any order, with missing or repeated indexes, ids and names. The Faults of the result count what it tolerated. It is used
// for one answer, by one goroutine at a time.
type Assembler struct{ a *openai.Assembler }

// NewAssembler returns an Assembler. opts may be nil.
func NewAssembler(opts *AssemblerOptions) *Assembler {
	var o openai.AssemblerOptions
	if opts != nil {
		o.MaxCalls, o.MaxBytes = opts.MaxCalls, opts.MaxBytes
	}
	return &Assembler{openai.NewAssembler(&o)}
}

// Append reads one chunk, the data of one server-sent event, and returns its deltas. It does not retain data. Data that is not a chunk
// is skipped and counted. If the server reports an error, Append returns an error that wraps a *[lathe.UpstreamError]. After an error,
// also that of an answer above the limits, the Assembler must not be used.
func (a *Assembler) Append(data []byte) ([]lathe.Delta, error) {
	deltas, err := a.a.Append(nil, data)
	return deltas, assemblyError(err)
}

// Done reports whether the server has sent [DONE].
func (a *Assembler) Done() bool { return a.a.Done() }

// Finish returns the complete answer after the last chunk. It is called once. If the answer is truncated, it returns no part of it, but
// an error with the code upstream_protocol.
func (a *Assembler) Finish() (*lathe.Finish, error) {
	f, err := a.a.Finish(true)
	return f, assemblyError(err)
}

// Assemble reads a stream of server-sent events on OpenAI's wire to its end and returns the complete answer. The limits on lines and
// events of r are those of a [Chat]. opts may be nil.
func Assemble(r io.Reader, opts *AssemblerOptions) (*lathe.Finish, error) {
	a := NewAssembler(opts)
	events := sse.NewReader(r, &sse.Options{RawUTF8: true})
	defer events.Release()
	for !a.Done() {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			var deltas []lathe.Delta
			deltas, err = a.Append(ev.Data)
			if err == nil && ev.Type == "error" && len(deltas) == 0 && !a.Done() {
				err = openai.ParseError(0, ev.Data) // some servers set the type of the event, but no member error
			}
		}
		if err != nil {
			return nil, assemblyError(err)
		}
	}
	return a.Finish()
}

// assemblyError converts err to a *lathe.Error.
func assemblyError(err error) error {
	const op = "provider: assemble"
	var known *lathe.Error
	var api *openai.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &api):
		return lathe.CodeUpstream.Wrap(op, (&Chat{}).fromInBand(api, nil))
	}
	return lathe.CodeUpstreamProtocol.Wrap(op, err)
}
