package provider

import (
	"errors"
	"io"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// AssemblerOptions bound the answer that an [Assembler] joins. A zero field has the default in its comment.
type AssemblerOptions struct {
	MaxCalls int // 256 calls
	MaxBytes int // 32 MiB of text, reasoning, arguments and unknown members
}

// An Assembler joins the chunks of a chat completion that is streamed on OpenAI's wire. It accepts the damaged streams of real
// servers: pieces of calls in any order, with missing or repeated indexes, ids and names. What it had to tolerate is in the
// Faults of the result. It is used by one goroutine at a time, for one answer.
type Assembler struct{ a *openai.Assembler }

// NewAssembler returns an Assembler. opts may be nil.
func NewAssembler(opts *AssemblerOptions) *Assembler {
	var o openai.AssemblerOptions
	if opts != nil {
		o.MaxCalls, o.MaxBytes = opts.MaxCalls, opts.MaxBytes
	}
	return &Assembler{openai.NewAssembler(&o)}
}

// Append reads one chunk, the data of one server-sent event, and returns its deltas. It does not keep data. Data that is
// not a chunk is skipped and counted. An error that the server reports wraps a *[lathe.UpstreamError]; that and an answer above
// the limits are final.
func (a *Assembler) Append(data []byte) ([]lathe.Delta, error) {
	deltas, err := a.a.Append(nil, data)
	return deltas, assemblyError(err)
}

// Done reports whether the server has sent [DONE].
func (a *Assembler) Done() bool { return a.a.Done() }

// Finish returns the whole answer after the last chunk. It is called once. An answer that broke off is an error of code
// upstream_protocol: no part of it is returned.
func (a *Assembler) Finish() (*lathe.Finish, error) {
	f, err := a.a.Finish(true)
	return f, assemblyError(err)
}

// Assemble reads a stream of server-sent events on OpenAI's wire to its end and returns the whole answer. Lines and events of r
// are bounded like those of a [Chat]. opts may be nil.
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
				err = openai.ParseError(0, ev.Data) // some servers name the event and not the member
			}
		}
		if err != nil {
			return nil, assemblyError(err)
		}
	}
	return a.Finish()
}

// assemblyError returns err as this package's callers know it.
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
		return &lathe.Error{Code: lathe.CodeUpstream, Op: op, Err: (&Chat{}).fromInBand(api, nil)}
	}
	return &lathe.Error{Code: lathe.CodeUpstreamProtocol, Op: op, Err: err}
}
