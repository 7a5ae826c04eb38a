package config

import (
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
)

// Egress configures which servers the requests of tools may reach, besides those that the tools name.
type Egress struct {
	// Prefixes, addresses and host names that tools may reach although they are not public, such as `10.1.0.0/16` or
	// `127.0.0.1`.
	Private []string `key:"private" also:"allow_private"`
	// Hosts besides a tool's own to which its server may redirect: names, addresses, `*.example.com`.
	RedirectHosts []string `key:"redirect_hosts" also:"hosts allow_hosts"`
	// Maximum redirects of one request of a tool.
	MaxRedirects int `key:"max_redirects" default:"5" range:"0..20"`
	// What one request of a tool may answer, decompressed.
	MaxResponseBytes int `key:"max_response_bytes" default:"8MiB" is:"size" range:"1.." also:"max_body_bytes"`
}

// An HTTPTool configures a tool whose calls are single HTTP requests.
type HTTPTool struct {
	// What the tool does, for the model.
	Description string `key:"description" also:"summary"`
	// Method of the request.
	Method string `key:"method" default:"GET" of:"GET=get HEAD=head POST=post PUT=put PATCH=patch DELETE=delete" also:"verb"`
	// Address of the request; `{name}` in its path stands for a parameter. What is private needs `tools.egress.private`.
	URL Ref `key:"url" is:"url" also:"endpoint uri address"`
	// The arguments of the tool. A model fills these and nothing else of the request.
	Parameters map[string]*HTTPParameter `key:"parameters" names:"argument" per:"argument name" also:"params arguments args"`
	// How the parameters in the body are sent: as members of a JSON object or a form, or, with one parameter, as
	// text.
	Body string `key:"body" default:"json" of:"json form=urlencoded multipart text=plain" also:"content_type"`
	// What the request does; default: `read_only` for GET and HEAD, else `writes`.
	Effect lathe.Effect `key:"effect" also:"effects"`
	Call   HTTPCall     `key:",inline"`
}

// HTTPCall is what [HTTPTool] and [OpenAPI] have in common: how their requests are sent.
type HTTPCall struct {
	// Fields of the answer that the model may see, as dotted paths; `["*"]` for all. Required.
	Allowlist []string `key:"allowlist" also:"allow fields show"`
	// Further headers of the request.
	Headers map[string]Ref `key:"headers" names:"header" per:"header name to text, may be a reference" is:"header" also:"extra_headers"`
	// Further parts of the query, such as a key.
	Query map[string]Ref `key:"query" names:"argument" per:"name to text, may be a reference" is:"header"`
	// Cookies of the request.
	Cookies map[string]Ref `key:"cookies" names:"header" per:"name to text, may be a reference" is:"header" also:"cookie"`
	// Token of the header `Authorization: Bearer`, as a reference.
	Bearer Ref `key:"bearer" is:"key" also:"token key api_key"`
	// `user:password` of the header `Authorization: Basic`, as a reference.
	Basic Ref `key:"basic" is:"key" also:"password"`
	// Time of one call, its retries included. Default: `tool_calling.tool_timeout`.
	Timeout time.Duration `key:"timeout" range:"0s.."` // 0: that of all tools
	// Time for which equal calls are answered from the cache, where the tool only reads.
	CacheTTL time.Duration `key:"cache_ttl" range:"0s.." also:"cache"`
	// Calls at once; `0`: no limit.
	Concurrency int `key:"concurrency" default:"0" range:"0.."` // 0: no limit
	// Calls a second, of all runs together; one more is answered `rate_limited`. `0`: no limit.
	Rate float64 `key:"rate" default:"0" is:"rate" also:"rps requests_per_second rate_limit"`
	// Requests of one call, the first one included; a tool that writes is never tried again.
	MaxAttempts int   `key:"max_attempts" default:"3" range:"1..10" also:"retries max_retries"`
	OAuth       OAuth `key:"oauth"`
}

// An HTTPParameter is an argument of an [HTTPTool], and where in the request it is sent.
type HTTPParameter struct {
	// Where the value goes.
	In string `key:"in" default:"query" of:"path query header cookie body" also:"place location"`
	// Its name in the request. Default: its own.
	As string `key:"as" is:"word" also:"name rename"`
	// What it means, for the model.
	Description string `key:"description"`
	// Whether the model must give it; those in the path are.
	Required bool `key:"required" default:"false"`
	// Its JSON Schema; `{}` is any value. Default `{type: string}`.
	Schema json.RawMessage `key:"schema" unset:"omit" also:"type enum items properties format minimum maximum pattern"` // an object; nil: a string
	// How lists and objects are written, as in OpenAPI. Default: `simple` in path and header, `form` in query and
	// cookie.
	Style string `key:"style" of:"simple label matrix form spaceDelimited pipeDelimited deepObject"` // empty: that of the place
	// Whether each item is written on its own. Default: with `form` and `deepObject`.
	Explode *bool `key:"explode" default:"unset"` // nil: that of the style
	// Leave reserved characters of a query value as they are, as far as they do not change what the query says.
	AllowReserved bool `key:"allow_reserved" default:"false"`
}

// An OpenAPI configures which operations of an OpenAPI document are tools.
type OpenAPI struct {
	// The document, OpenAPI 3.0 to 3.2, JSON or YAML. A relative path starts at the configuration file.
	File string `key:"file" is:"file" also:"path document spec"`
	Path string `key:"-"` // of File, from where the program runs
	// SHA-256 of the document, in hex: another one is refused. `lathe tools doctor` says what it is now.
	SHA256 string `key:"sha256" is:"sha256" also:"digest checksum pin"` // of the file; empty: any
	// Address before the paths of the document. May be a reference. The servers that the document names are not
	// used.
	Server Ref `key:"server" is:"url" also:"base_url url"`
	// The operations that become tools, by `operationId`; `*` stands for any characters, `?` for one. An operation becomes a tool only if
	// it or one of its tags is named. One without an id has that of its method and path, such as `get_users_id`. If no tool can be
	// made of an operation, a pattern leaves it out with a warning; if its id is named, it is an error.
	Operations []string `key:"operations" is:"operation" also:"include allow"`
	// Operations that do not become tools, even if `operations` or `tags` name them; patterns as in `operations`.
	Exclude []string `key:"exclude" is:"operation" also:"deny skip hide"`
	// Tags whose operations are tools, apart from those of which no tool can be made.
	Tags []string `key:"tags" is:"operation"`
	// Stands before the names of the tools, which are the `operationId`s. A name longer than 64 characters ends in a part of the
	// hash of its `operationId`.
	Prefix string `key:"prefix" is:"word"`
	// Names of tools in place of `prefix` and `operationId`.
	Rename map[string]string `key:"rename" names:"operation" per:"operationId" is:"tool name" also:"alias aliases names"`
	// Allowlists of single operations; they come before `allowlist`.
	Allowlists map[string][]string `key:"allowlists" names:"operation" per:"operationId to list of paths"`
	// Effects of single operations; default: `read_only` for GET and HEAD, else `writes`.
	Effects map[string]lathe.Effect `key:"effects" names:"operation" per:"operationId" also:"effect"`
	// Credentials, by name of the document's security scheme: a key, a token, or `user:password`.
	Security map[string]Ref `key:"security" per:"security scheme to reference" is:"key" also:"credentials auth"`
	Call     HTTPCall       `key:",inline"`
}
