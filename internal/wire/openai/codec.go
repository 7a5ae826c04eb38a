package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Upstream is the codec of chat completions for requests to model servers.
type Upstream struct{}

var _ wire.Upstream = Upstream{}

// Wire implements [wire.Upstream].
func (Upstream) Wire() lathe.Wire { return lathe.WireOpenAIChat }

// Path returns the path below the base URL.
func (Upstream) Path(string, bool) string { return "/chat/completions" }

// Vendor implements [wire.Upstream].
func (Upstream) Vendor() wire.Vendor {
	return wire.Vendor{BaseURL: "https://api.openai.com/v1", KeyHeader: "Authorization", KeyPrefix: "Bearer "}
}

// AppendRequest appends the body of a request, and returns the paths of the members that are not sent.
func (Upstream) AppendRequest(dst []byte, req *lathe.Request, opts *EncodeOptions) (body []byte, dropped []string) {
	if opts == nil {
		opts = &EncodeOptions{}
	}
	head, dropped := appendHead(dst, req, opts)
	body = AppendMessages(head, req.Messages, opts).Lit("]}")
	return body, appendDropped(droppedOfHead(req, opts, dropped), req.Messages, opts)
}

// NewAssembler returns an Assembler for one answer. opts may be nil.
func (Upstream) NewAssembler(opts *wire.AssemblerOptions) wire.Assembler {
	return &eventAssembler{NewAssembler(opts)}
}

// ParseError parses the body of an error response. See the function [ParseError].
func (Upstream) ParseError(status int, body []byte) *APIError { return ParseError(status, body) }

// Refused returns "", since no feature that servers refuse is sent unless a setting enables it.
func (Upstream) Refused(*APIError) string { return "" }

// An eventAssembler is an [Assembler] whose Append also receives the types of events, which chat completions do not use.
type eventAssembler struct{ *Assembler }

// Append reads one event. An event of type error whose data has no error member is also an error of the server.
func (a *eventAssembler) Append(dst []lathe.Delta, event string, data []byte) ([]lathe.Delta, error) {
	before := len(dst)
	dst, err := a.Assembler.Append(dst, data)
	if event != "" && event != "message" {
		a.Unsound = true // official clients ignore or misread named events
	}
	if err == nil && event == "error" && len(dst) == before && !a.Done() {
		a.Err = ParseError(0, data) // some servers use an event type and no error member
		err = a.Err
	}
	return dst, err
}
