package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// Upstream is chat completions as a client of a model's server speaks it.
type Upstream struct{}

var _ wire.Upstream = Upstream{}

// Wire returns the wire's name.
func (Upstream) Wire() lathe.Wire { return lathe.WireOpenAIChat }

// Path returns what follows the base URL.
func (Upstream) Path(string, bool) string { return "/chat/completions" }

// DefaultBaseURL returns the address of OpenAI.
func (Upstream) DefaultBaseURL() string { return "https://api.openai.com/v1" }

// KeyHeader returns the header that has the key.
func (Upstream) KeyHeader() (name, before string) { return "Authorization", "Bearer " }

// Headers returns nil: requests have no fixed headers.
func (Upstream) Headers() [][2]string { return nil }

// AppendRequest appends the body of a request, and returns the paths of what is not sent.
func (Upstream) AppendRequest(dst []byte, req *lathe.Request, opts *EncodeOptions) (body []byte, dropped []string) {
	head, dropped := appendHead(dst, req, opts)
	body = AppendMessages(head, req.Messages, opts).Lit("]}")
	return body, appendDropped(droppedOfHead(req, opts, dropped), req.Messages, opts)
}

// AppendRelayed appends the body of a client's own request. See [AppendRelayed].
func (Upstream) AppendRelayed(dst, body []byte, req *lathe.Request, opts *EncodeOptions) []byte {
	return AppendRelayed(dst, body, req, opts)
}

// NewAssembler returns an Assembler for one answer. opts may be nil.
func (Upstream) NewAssembler(opts *wire.AssemblerOptions) wire.Assembler {
	return &eventAssembler{NewAssembler(opts)}
}

// ParseError reads the body of an error answer. See [ParseError].
func (Upstream) ParseError(status int, body []byte) *APIError { return ParseError(status, body) }

// Refused returns "": no feature that servers refuse is sent without a setting for it.
func (Upstream) Refused(*APIError) string { return "" }

// An eventAssembler is an [Assembler] that gets the types of events: chat completions have none.
type eventAssembler struct{ *Assembler }

// Append reads one event. An event of type error whose data is not a chunk is an error of the server.
func (a *eventAssembler) Append(dst []lathe.Delta, event string, data []byte) ([]lathe.Delta, error) {
	before := len(dst)
	dst, err := a.Assembler.Append(dst, data)
	if event != "" && event != "message" {
		a.Unsound = true // official clients take a named event for something else
	}
	if err == nil && event == "error" && len(dst) == before && !a.Done() {
		a.Err = ParseError(0, data) // some servers name the event and not the member
		err = a.Err
	}
	return dst, err
}
