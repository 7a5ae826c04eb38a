package config

import (
	"errors"
	"net/url"
	"time"

	"github.com/lathe-run/lathe"
)

// Serve configures the gateway.
type Serve struct {
	// Address to listen on. Any but a loopback address requires `keys`.
	Addr string `key:"addr" default:"127.0.0.1:8700" is:"host:port" also:"listen port host bind"`
	// Address that serves only `/metrics`, `/livez` and `/readyz`, without a key. Default: `/metrics` is at
	// `serve.addr`, with `keys` for those that have `admin` or `metrics`.
	MetricsAddr string `key:"metrics_addr" is:"host:port"`
	// Host names of the gateway, besides `localhost` and addresses; others are refused. Default: with `keys`, on an
	// address that others reach, any name. An empty list: none.
	Hosts []string `key:"hosts" is:"host" unset:"omit" also:"host allowed_hosts"`
	// Origins whose pages may call the gateway, such as `https://chat.example.com`.
	Origins []string `key:"origins" is:"origin" also:"origin cors allowed_origins"`
	// Scheme and host under which clients reach the gateway, such as `https://lathe.example.com`, for the OAuth metadata of
	// `serve.oidc`. Default: `https` with `serve.tls`, else `http`, and the host of each request.
	PublicURL string  `key:"public_url" is:"origin" also:"external_url url"`
	TLS       TLS     `key:"tls"`
	OIDC      OIDC    `key:"oidc"`
	Console   Console `key:"console"`
	// What a key without `models` or `tools` may use of these. With `none`, the list `["*"]` allows everything.
	DefaultGrant string `key:"default_grant" default:"all" of:"all=everything none=nothing,deny" also:"default_deny grants"`
	// Body of one request, decompressed.
	MaxBodyBytes int `key:"max_body_bytes" default:"16MiB" is:"size" range:"1.." also:"max_request_bytes"`
	// Memory of requests that are not answered yet, in all: bodies, decompressed, the conversations decoded from them,
	// with what the gateway adds, and messages of WebSockets; each body counts at least twice. Beyond it requests are
	// answered 503, and 429 if one key has half of it; a body that is too large for it alone is answered 413. Default,
	// `0`: a quarter of `GOMEMLIMIT`, else of the cgroup's limit, else of the machine's memory. Changes take effect
	// after a restart.
	MaxInflightBytes int64 `key:"max_inflight_bytes" default:"0" is:"size" range:"0..1024GiB" also:"max_memory max_in_flight_bytes"`
	// Messages in a conversation that a request has; more are answered 413.
	MaxMessages int `key:"max_messages" default:"10000" range:"1.." also:"max_history"`
	// Parts of these messages together, tool calls left out; the text parts of a tool's result count as one.
	MaxParts int `key:"max_parts" default:"20000" range:"1.."`
	// Tool calls of these messages together.
	MaxCalls int `key:"max_calls" default:"10000" range:"1.."`
	// Tools that a request declares; more are answered 413 before they are read. `tool_calling.max_tools` bounds the
	// tools of a run.
	MaxTools int `key:"max_tools" default:"10000" range:"1.."`
	// Characters of one text that a user sends to `/api/chat`.
	MaxText int `key:"max_text" default:"1000000" range:"1.." also:"max_prompt max_input"`
	// Requests at once; more are answered 503. With several keys one key has a quarter of them at most, and gets 429
	// beyond that.
	MaxConcurrent int `key:"max_concurrent" default:"1024" range:"1.." also:"max_requests"`
	// Runs that this gateway executes at once; more are answered 503, and waiting ones are left to other gateways. Changes
	// take effect after a restart.
	MaxRuns int `key:"max_runs" default:"1024" range:"1.."`
	// Streams of events of runs, and those that MCP clients listen on, at once, beside these requests; likewise.
	MaxWatchers int `key:"max_watchers" default:"1024" range:"1.." also:"max_streams"`
	// Connections between two requests; beyond it the one that has been idle longest is closed.
	MaxIdle int `key:"max_idle_connections" default:"4096" range:"1.." also:"max_connections"`
	// Time without a byte after which a stream gets a comment.
	KeepAlive time.Duration `key:"keep_alive" default:"15s" range:"1s.." also:"ping heartbeat"`
	// What `usage` of a chat completion counts if its run made several model calls: `last_call`, which clients
	// compare with the model's context window, or `sum`. `lathe.usage` always has the sum.
	Usage string `key:"usage" default:"last_call" of:"last_call=last,turn sum=total,run" also:"usage_mode"`
	// Time after the end of a run in which the same request, sent again, does not execute its calls again: see
	// docs/gateway.md. `0`: each request has a run of its own.
	RetryWindow time.Duration `key:"retry_window" default:"10m" range:"0s..24h" also:"retry idempotency"` // 0: off
	// Time after the delivery of an answer in which the same request gets the same answer, if its run called a tool that
	// may write and `serve.retry_window` has not passed: for proxies that can lose an answer. `0`: such a request has a
	// run of its own.
	RepeatWindow time.Duration `key:"repeat_window" default:"0s" range:"0s..24h" also:"retry idempotency proxy"`
	// Time between the answer that the gateway is not ready and the end of its listening, for balancers.
	DrainDelay time.Duration `key:"drain_delay" default:"0s" range:"0s.."`
	// Time in which requests may finish before the gateway stops.
	DrainTimeout time.Duration `key:"drain_timeout" default:"30s" range:"0s.." also:"shutdown_timeout grace"`
	// Where runs are kept: `memory` (the default: until the gateway ends), `sqlite:PATH`,
	// `postgres://USER@HOST/DATABASE`, a reference to one of these, or `none`. `--store` and `LATHE_STORE` come
	// first. See docs/cluster.md.
	Store Ref `key:"store" is:"store" also:"database db"`
	// Folder with results of `lathe eval`, one subfolder each, which admin keys see at `/api/evals` and in the console.
	// They hold conversations. A relative path starts at the configuration file. Default: none are shown.
	Evals string `key:"evals" also:"eval_results results"`
	// File with further keys, read again at each reload. Each line is `NAME SHA256 ENTRY`: the name of the new key, its
	// SHA-256, which `lathe keys new` prints, and an entry of `keys` whose rights, limits and group it has; its budget
	// has the amounts of the entry. Such an entry needs no key of its own. Empty lines and those that begin with `#` are
	// skipped. At most 200,000 keys and 64 MiB. A relative path starts at the configuration file. Default: no file.
	KeysFile string `key:"keys_file" also:"key_file keys_path"`
	// Where other gateways on the same store reach this one, such as `http://10.0.3.7:8700`; it requires `cluster.key`.
	Advertise string `key:"advertise" also:"advertise_url peer"`
	// Key of the items by which clients carry what a run did in the gateway to their next request: a reference to 32
	// characters at least. Default: the store makes one for all gateways on it; without a store each gateway makes one
	// at its start.
	SealKey Ref `key:"seal_key" is:"key"`
	// Key that was `serve.seal_key` before: what was sealed with it is still read.
	PreviousSealKey Ref `key:"previous_seal_key" is:"key"`
	// Time without a message after which the calls of a worker are given to others, or are unknown.
	WorkerLease time.Duration `key:"worker_lease" default:"10s" range:"1s.." also:"lease"`
}

// TLS configures how the gateway serves HTTPS.
type TLS struct {
	// File of the certificate and its chain, in PEM: `serve.addr` and `serve.console.listen` serve HTTPS then, with TLS
	// 1.2 at least. SIGHUP reads it again.
	Cert string `key:"cert" is:"file" also:"certificate cert_file"`
	// File of the certificate's key, in PEM.
	Key string `key:"key" is:"file" also:"key_file private_key"`
}

// Console configures the web console of the gateway.
type Console struct {
	// Whether the console is served.
	Enabled bool `key:"enabled" default:"true" also:"page ui"`
	// Address that serves only the console and the API that it calls; the console is not at `serve.addr` then.
	// Any but a loopback address requires `keys`. Default: the console is served at `serve.addr`.
	Listen string `key:"listen" is:"host:port" also:"addr port"`
	// Time after which a browser that has signed in with a key has to sign in again.
	SessionLife time.Duration `key:"session_lifetime" default:"12h" range:"1s.." also:"session_timeout"`
}

// Cluster configures requests between gateways that share a store.
type Cluster struct {
	// Key by which gateways that share a store authenticate to each other, as a reference; 16 characters at least.
	// Without it a watcher of a run that another gateway executes gets its text a model call at a time.
	Key Ref `key:"key" is:"key" also:"cluster_key secret"`
	// Time after which other gateways resume the runs of a gateway that no longer renews its claims; a shared store only.
	Lease time.Duration `key:"lease" default:"10s" range:"1s.." also:"run_lease"`
}

// An APIKey configures a key with which clients call the gateway, and what it permits.
type APIKey struct {
	// The key, as a reference: `${NAME}` or `${file:path}`; 16 characters at least. Default: the key has only its
	// `sha256`, or is a profile of `serve.oidc` or `serve.keys_file` and no request sends it.
	Key Ref `key:"key" is:"key" also:"secret token value"`
	// SHA-256 of the key in place of the key itself. `lathe keys new` makes a random key and prints both: a key that a
	// person has thought of can be found from its hash.
	SHA256 string `key:"sha256" is:"key sha256" also:"hash digest"`
	// Models that the key may use. Default: `["*"]`, all, or what `serve.default_grant` says. An empty list: none.
	Models []string `key:"models" unset:"all" also:"model"` // nil: every model; empty: none
	// Tools of the gateway that runs of the key may use. Default: `["*"]`, all, or what `serve.default_grant` says. An empty
	// list: none.
	Tools []string `key:"tools" is:"tool" unset:"all" also:"tool"` // nil: every tool; empty: none
	// Whose calls the key may approve, deny and answer: `own` those of its own runs, `others` those of the runs of
	// all other keys, or names of keys. An empty list: none.
	Approve []string `key:"approve" default:"own" also:"approver approves approvals"`
	// Whether the key is that of an operator: it sees all runs, decides about all calls, and sees and changes the state
	// of the gateway (servers, accepted definitions, configuration, audit log).
	Admin bool `key:"admin" default:"false" also:"operator root"`
	// Whether the key may read `/metrics`, which shows the use and the costs of all keys; an admin key may without it.
	Metrics bool `key:"metrics" default:"false" also:"scrape prometheus"`
	// Objects of the account at the model's vendor that requests may name, such as files by `file_id`: `true` for all, or kinds (`file`,
	// `vector_store`, `container`, `skill`, `cache`, `prompt`, `conversation`, `item`, `connector`, `audio`) and ids. All keys share
	// the account. Objects that an answer to the key had in the last 48 hours need no entry. See docs/gateway.md.
	VendorObjects []string `key:"vendor_objects" is:"vendor object" unset:"none" also:"file_ids vendor_files"`
	// Tools that the model's vendor may execute for requests, such as `web_search` and `code_interpreter`, by name, without their
	// version. Others are removed from requests and listed in `X-Lathe-Ignored`. Default: `["*"]`, all, with a warning at start.
	VendorTools []string `key:"vendor_tools" is:"vendor tool" unset:"all" also:"hosted_tools server_tools"` // nil: every tool
	// Requests in a minute; `0`: no bound.
	RequestsPerMinute int `key:"requests_per_minute" default:"0" range:"0.." also:"rpm rate rate_limit"`
	// Requests at once; `0`: no bound.
	Concurrency int `key:"concurrency" default:"0" range:"0.." also:"max_concurrent"`
	// Limits narrow those of tool_calling; fields that are not above 0 have no effect.
	lathe.Limits `key:",inline" narrow:"keys" note:"It can only lower the limit of tool_calling."`
	// Group of the key, whose budget it shares. Default: none.
	Group  string    `key:"group" is:"word" also:"team"`
	Budget KeyBudget `key:"budget" also:"quota"`
}

// isStore refuses a password in the file itself.
func isStore(r *Ref) error {
	if r.shown != "" {
		return nil
	}
	u, err := url.Parse(r.Reveal())
	if err != nil {
		return errors.New("a store is sqlite:PATH or postgres://USER@HOST/DATABASE")
	}
	_, has := u.User.Password()
	if has || u.Query().Has("password") {
		return errors.New("a password does not stand in the file: name the store by a reference, ${NAME}, or set PGPASSWORD")
	}
	return nil
}
