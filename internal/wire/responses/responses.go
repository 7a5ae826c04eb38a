// Package responses is the codec of OpenAI's Responses and of Open Responses, for servers and for clients: [Codec] implements
// [wire.Served] and [wire.Upstream].
//
// # Internal form
//
// On this wire a conversation is a flat list of items. The codec joins consecutive items of a model (reasoning, messages, calls,
// and items of unknown types) into one assistant message, in which each text of a message is a part. The results of calls become
// tool messages after it, in the order of the calls. The ids and statuses of items are not kept: servers refuse ids that they did
// not create, and with "store": false an id refers to nothing.
//
// [lathe.Request] cannot represent three forms, which are translated. A tool in a namespace becomes a function NAMESPACE__NAME. A
// custom tool, whose input is text, becomes a function with one string argument `input`. A name that other wires refuse is
// shortened and gets a hash. [wire.ClientRequest].Names maps the names back. The members `type` and `format` in
// [lathe.ToolSpec].Extra mark a custom tool, so that it is sent as a custom tool to a server of this wire.
package responses

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Codec is the codec of Responses. The zero value is ready for use.
type Codec struct{}

var (
	_ wire.Served   = Codec{}
	_ wire.Upstream = Codec{}
)

// New returns the codec.
func New() Codec { return Codec{} }

// Wire returns [lathe.WireResponses].
func (Codec) Wire() lathe.Wire { return lathe.WireResponses }

// Path returns "/responses".
func (Codec) Path(string, bool) string { return "/responses" }

// DefaultBaseURL returns the base URL of OpenAI.
func (Codec) DefaultBaseURL() string { return "https://api.openai.com/v1" }

// KeyHeader returns the header and the prefix of a bearer token.
func (Codec) KeyHeader() (name, before string) { return "Authorization", "Bearer " }

// Headers returns nil: requests have no fixed headers.
func (Codec) Headers() [][2]string { return nil }

// Features that a server may refuse: see [wire.EncodeOptions].Without.
const (
	// FeatureEncrypted is reasoning as opaque data.
	FeatureEncrypted = "encrypted_content"
	// FeatureCustom is a tool whose input is text. Without it such a tool is a function with one string argument.
	FeatureCustom = "custom_tools"
)

// fieldEncrypted is the [lathe.Reasoning].Field of reasoning with opaque data, and the wire's member that has the data.
const fieldEncrypted = "encrypted_content"

// includeEncrypted is what the member `include` names to get opaque data.
const includeEncrypted = "reasoning.encrypted_content"

// maxID is the length of ids of items and calls that OpenAI's servers accept.
const maxID = 64

// CallID returns the id that a call has on the wire.
func CallID(id string) string { return wire.ShortID("call_", id, maxID) }

// given reports whether a value is present and not null.
func given(v []byte) bool { return wire.Kind(v) != 0 && wire.Kind(v) != 'n' }

// get returns a member of an object that is not null; nil if there is none.
func get(obj []byte, name string) []byte {
	v, _ := rawjson.Get(obj, name)
	if !given(v) {
		return nil
	}
	return v
}

// text returns the text of a member that is a string, else "".
func text(obj []byte, name string) string { return rawjson.Text(get(obj, name)) }
