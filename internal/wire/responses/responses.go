// Package responses is the codec of OpenAI's Responses and of Open Responses, for servers and for clients: [Codec] implements
// [wire.Served] and [wire.Upstream].
//
// # Internal form
//
// On this wire a conversation is a flat list of items. The codec joins consecutive items of a model (reasoning, messages, calls, and items
// of unknown types) into one assistant message, in which each text is a part. The results of calls become tool messages after it, in the
// order of the calls. Ids and statuses of items are not stored: servers refuse ids that they did not create, and with "store": false an id
// refers to nothing.
//
// Three forms that [lathe.Request] cannot represent are translated. A tool in a namespace becomes a function NAMESPACE__NAME. A custom
// tool, whose input is text, becomes a function with one string argument `input`. A name that other wires refuse is shortened and gets a
// hash. [wire.ClientRequest].Names maps internal names to the client's. The members `type` and `format` in [lathe.ToolSpec].Extra mark a
// custom tool, so that a server of this wire receives it as a custom tool.
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

// Wire implements [wire.Served] and [wire.Upstream].
func (Codec) Wire() lathe.Wire { return lathe.WireResponses }

// Path implements [wire.Upstream].
func (Codec) Path(string, bool) string { return "/responses" }

// Vendor implements [wire.Upstream].
func (Codec) Vendor() wire.Vendor {
	return wire.Vendor{BaseURL: "https://api.openai.com/v1", KeyHeader: "Authorization", KeyPrefix: "Bearer "}
}

// Features that a server may refuse: see [wire.EncodeOptions].Without.
const (
	// featureEncrypted is reasoning as opaque data in encrypted_content.
	featureEncrypted = "encrypted_content"
	// featureCustom is a tool whose input is text. If the server has refused it, such a tool is sent as a function with one string
	// argument.
	featureCustom = "custom_tools"
)

// fieldEncrypted is the [lathe.Reasoning].Field of reasoning with opaque data, and the name of the member that contains the data.
const fieldEncrypted = "encrypted_content"

// includeEncrypted is the element of `include` that requests opaque data.
const includeEncrypted = "reasoning.encrypted_content"

// maxID is the longest id of an item or a call that OpenAI's servers accept, in bytes.
const maxID = 64

// CallID returns the form of a call id on this wire.
func CallID(id string) string { return wire.ShortID("call_", id, maxID) }

// get returns the value of a member of an object, or nil if it is absent or null.
func get(obj []byte, name string) []byte {
	v := rawjson.At(obj, name)
	if rawjson.Kind(v) == 'n' {
		return nil
	}
	return v
}

// text returns the string value of a member, or "" for other values.
func text(obj []byte, name string) string { return rawjson.Text(get(obj, name)) }
