package mcp

import (
	"errors"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// codeBusy is the JSON-RPC error code of a request that may be repeated later.
const codeBusy = -32000

// maxID bounds the id of a request, in bytes.
const maxID = 256

// messageLimits apply to a whole message. Arguments are nested three levels deep in it; the runner checks them again.
var messageLimits = rawjson.Limits{MaxDepth: 72, MaxKeys: 10_000}

// statelessEra is the first protocol version without sessions.
const statelessEra = "2026-07-28"

// A message contains the fields of a client's message that inspect reads before the SDK decodes it.
type message struct {
	id      string // JSON text; "" if the message expects no response
	method  string // "" for a response
	version string // protocol version in params._meta
}

// A refusal is the JSON-RPC error for a message that the server does not pass to the SDK.
type refusal struct {
	id   string // JSON text; "": null
	code int
	text string
}

// invalid returns the refusal of a message that is not a valid request.
func invalid(id, text string) *refusal {
	return &refusal{id: id, code: jsonrpc.CodeInvalidRequest, text: text}
}

// invalidParams is the error of a request whose parameters are not valid or name something that does not exist.
func invalidParams(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}

// notNow is the error of a request that may be repeated later.
func notNow(text string) error { return &jsonrpc.Error{Code: codeBusy, Message: text} }

func internalError(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}

var errNoMethod = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method"}

// methods are the methods of requests that the server supports.
var methods = []string{
	"initialize", "ping", "tools/list", "tools/call", "logging/setLevel",
	"server/discover", "subscriptions/listen", "completion/complete",
	"resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
	"prompts/list", "prompts/get",
	"tasks/get", "tasks/update", "tasks/cancel",
}

// inspect checks one message: strict JSON, a JSON-RPC 2.0 object, and a supported method. It reads the same bytes that the SDK decodes
// later.
func inspect(b []byte) (m message, fault *refusal) {
	if err := rawjson.Check(b, messageLimits); err != nil {
		return m, unreadable(b, err)
	}
	b = b[rawjson.SkipSpace(b, 0):]
	if b[0] != '{' {
		return m, invalid("", "a message is a JSON object")
	}
	if id := rawjson.At(b, "id"); id != nil {
		if !validID(id) {
			return m, invalid(m.id, "the id is neither a text of at most 256 bytes nor a whole number")
		}
		m.id = string(id)
	}
	if rawjson.TextAt(b, "jsonrpc") != "2.0" {
		return m, invalid(m.id, `jsonrpc is not "2.0"`)
	}
	method := rawjson.At(b, "method")
	if method == nil {
		hasResult, hasError := rawjson.At(b, "result") != nil, rawjson.At(b, "error") != nil
		if m.id == "" || hasResult == hasError { // a response has one of the two
			return m, invalid(m.id, "neither a request nor a response")
		}
		return m, nil
	}
	if method[0] != '"' {
		return m, invalid(m.id, "the method is not a text")
	}
	if m.method = rawjson.Text(method); m.method == "" {
		return m, invalid(m.id, "the method is not a name")
	}
	if params := rawjson.At(b, "params"); params != nil && params[0] != '{' {
		return m, invalid(m.id, "params is not an object")
	}
	m.version = rawjson.TextAt(b, "params", "_meta", "io.modelcontextprotocol/protocolVersion")
	if m.id != "" && !slices.Contains(methods, m.method) {
		return m, &refusal{id: m.id, code: jsonrpc.CodeMethodNotFound, text: "no such method"}
	}
	return m, nil
}

// validID reports whether an id is a string of at most maxID bytes or an integer that every JSON decoder reads exactly.
func validID(id []byte) bool {
	if id[0] == '"' {
		return len(id) <= maxID
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n >= -(1<<53) && n <= 1<<53 && string(id) != "-0"
}

// unreadable returns the refusal of a message that is not strict JSON, with the offset and the kind of the error.
func unreadable(b []byte, err error) *refusal {
	fault := &refusal{code: jsonrpc.CodeParseError, text: "not strict JSON"}
	if se, ok := errors.AsType[*rawjson.SyntaxError](err); ok {
		fault.text += ": " + se.Kind + " at byte " + strconv.Itoa(se.Offset)
		switch se.Kind {
		case rawjson.KindDuplicate, rawjson.KindDeep, rawjson.KindKeys, rawjson.KindSurrogate:
			fault.code = jsonrpc.CodeInvalidRequest // the message is JSON, but not strict
			fault.id = looseID(b)
		}
	}
	return fault
}

// looseID returns the id of a message that is JSON, though not strict, so that the client receives a response to its request. Nothing else
// is read from such a message.
func looseID(b []byte) string {
	b = b[rawjson.SkipSpace(b, 0):]
	end, err := rawjson.Scan(b, 0)
	if err != nil || rawjson.SkipSpace(b, end) != len(b) || b[0] != '{' {
		return ""
	}
	id, n := "", 0
	for key, value := range rawjson.Members(b) {
		if rawjson.EqualKey(key, "id") && validID(value) {
			id = string(value)
			n++
		}
	}
	if n != 1 || rawjson.Check([]byte(id), rawjson.Limits{}) != nil {
		return ""
	}
	return id
}

// append appends the JSON-RPC error response.
func (r *refusal) append(dst []byte) []byte {
	return jsonrpc2.AppendError(dst, r.id, r.code, r.text)
}
