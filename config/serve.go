package config

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// Serve says how the daemon serves.
type Serve struct {
	Addr          string
	MetricsAddr   string // empty: with everything else
	Hosts         []string
	Origins       []string
	MaxBodyBytes  int
	MaxMessages   int
	MaxParts      int
	MaxCalls      int
	MaxText       int
	MaxConcurrent int
	MaxWatchers   int
	MaxIdle       int
	KeepAlive     time.Duration
	Usage         string        // last_call, sum
	RetryWindow   time.Duration // 0: off
	RepeatWindow  time.Duration
	DrainDelay    time.Duration
	DrainTimeout  time.Duration
	WorkerLease   time.Duration
	Store         Ref
	Advertise     string
}

// Cluster is how daemons that share a store know each other.
type Cluster struct {
	Key   Ref
	Lease time.Duration
}

// keys returns the rows of daemons that share a store, bound to c.
func (c *Cluster) keys() []key {
	return []key{
		{"cluster.key", "", reference(&c.Key, isKey), "Key by which daemons that share a store prove to each other that they belong together, as a reference; 16 characters at least. Without it a watcher of a run that another daemon carries sees its text a model call at a time.", "cluster_key secret"},
		{"cluster.lease", "10s", duration(&c.Lease, time.Second), "Time after which others go on with the runs of a daemon that is not heard of; a shared store only.", "run_lease"},
	}
}

// An APIKey is who may call the daemon.
type APIKey struct {
	Key               Ref
	Models            []string // nil: every model; empty: none
	Tools             []string // nil: every tool; empty: none
	Approve           []string // "own", "others" and names of keys; empty: none
	RequestsPerMinute int
	Concurrency       int
	// Limits narrow those of tool_calling: zero fields, and those below zero, say nothing.
	Limits lathe.Limits
}

// keys returns the rows of the daemon, bound to s.
func (s *Serve) keys() []key {
	return []key{
		{"serve.addr", "127.0.0.1:8700", address(&s.Addr), "Address to listen on. One that others reach wants `keys`.", "listen port host bind"},
		{"serve.metrics_addr", "", address(&s.MetricsAddr), "Address that serves `/metrics`, `/livez` and `/readyz` alone, without a key. Default: `/metrics` is served with everything else.", ""},
		{"serve.hosts", "", distinct{hostList(&s.Hosts)}, "Names under which clients ask for the daemon, besides `localhost` and addresses; others are refused. Default: with `keys`, on an address that others reach, any name. An empty list: none.", "host allowed_hosts"},
		{"serve.origins", "", originList(&s.Origins), "Origins whose pages may call the daemon, such as `https://chat.example.com`.", "origin cors allowed_origins"},
		{"serve.max_body_bytes", "16MiB", size(&s.MaxBodyBytes, 1, maxSize), "Body of one request, decompressed.", "max_request_bytes"},
		{"serve.max_messages", "10000", count(&s.MaxMessages, 1, maxCount), "Messages in a conversation that a request has; more are answered 413.", "max_history"},
		{"serve.max_parts", "20000", count(&s.MaxParts, 1, maxCount), "Parts of these messages together, tool calls left out; the text parts of a tool's result count as one.", ""},
		{"serve.max_calls", "10000", count(&s.MaxCalls, 1, maxCount), "Tool calls of these messages together.", ""},
		{"serve.max_text", "1000000", count(&s.MaxText, 1, maxCount), "Characters of one text that a user sends to `/api/chat`; the page takes no longer one.", "max_prompt max_input"},
		{"serve.max_concurrent", "1024", count(&s.MaxConcurrent, 1, maxCount), "Requests at once; more are answered 503. With several keys one key has a quarter of them at most, and gets 429 beyond that.", "max_requests"},
		{"serve.max_watchers", "1024", count(&s.MaxWatchers, 1, maxCount), "Streams of events of runs, and those that MCP clients listen on, at once, beside these requests; likewise.", "max_streams"},
		{"serve.max_idle_connections", "4096", count(&s.MaxIdle, 1, maxCount), "Connections between two requests; beyond it the one that has been idle longest is closed.", "max_connections"},
		{"serve.keep_alive", "15s", duration(&s.KeepAlive, time.Second), "Time without a byte after which a stream gets a comment.", "ping heartbeat"},
		{"serve.usage", "last_call", words(&s.Usage, "last_call=last,turn", "sum=total,run"), "What `usage` of a chat completion counts if its run made several model calls: `last_call`, which clients compare with the model's context window, or `sum`. `lathe.usage` always has the sum.", "usage_mode"},
		{"serve.retry_window", "10m", durationUpTo(&s.RetryWindow, 24*time.Hour), "Time after the end of a run in which the same request, sent again, does not execute its calls again: see docs/gateway.md. `0`: each request has a run of its own.", "retry idempotency"},
		{"serve.repeat_window", "0s", durationUpTo(&s.RepeatWindow, 24*time.Hour), "Time after the delivery of an answer in which the same request gets the same answer, if its run called a tool that may write and `serve.retry_window` has not passed: for proxies that can lose an answer which they have received. `0`: such a request has a run of its own.", "retry idempotency proxy"},
		{"serve.drain_delay", "0s", duration(&s.DrainDelay, 0), "Time between the answer that the daemon is not ready and the end of its listening, for balancers.", ""},
		{"serve.drain_timeout", "30s", duration(&s.DrainTimeout, 0), "Time in which requests may finish before the daemon stops.", "shutdown_timeout grace"},
		{"serve.store", "", reference(&s.Store, isStore), "Where runs are kept: `memory` (the default: until the daemon ends), `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, a reference to one of these, or `none`. `--store` and `LATHE_STORE` come first. See docs/cluster.md.", "database db"},
		{"serve.advertise", "", text(&s.Advertise), "Where other daemons on the same store reach this one, such as `http://10.0.3.7:8700`; it wants `cluster.key`.", "advertise_url peer"},
		{"serve.worker_lease", "10s", duration(&s.WorkerLease, time.Second), "Time without a word after which the calls of a worker are given to others, or are unknown.", "lease"},
	}
}

// keys returns the rows of one key, bound to k.
func (k *APIKey) keys() []key {
	l := &k.Limits
	return []key{
		{"key", "", reference(&k.Key, isKey), "The key, as a reference: `${NAME}` or `${file:path}`; 16 characters at least.", "secret token value"},
		{"models", "", grant(&k.Models, isName), "Models that the key may use. Default: `[\"*\"]`, all. An empty list: none.", "model"},
		{"tools", "", grant(&k.Tools, isToolName), "Tools of the daemon that runs of the key may use. Default: `[\"*\"]`, all. An empty list: none.", "tool"},
		{"approve", "own", names(&k.Approve), "Whose calls the key may approve, deny and answer: `own` those of its own runs, `others` those of the runs of all other keys, or names of keys. An empty list: none.", "approver approves approvals"},
		{"requests_per_minute", "0", count(&k.RequestsPerMinute, 0, maxCount), "Requests in a minute; `0`: no bound.", "rpm rate rate_limit"},
		{"concurrency", "0", count(&k.Concurrency, 0, maxCount), "Requests at once; `0`: no bound.", "max_concurrent"},
		{"max_iterations", "0", count(&l.MaxIterations, 0, maxCount), "Model calls of one run, where that is less than in `tool_calling`.", ""},
		{"max_total_tool_calls", "0", count(&l.MaxToolCalls, 0, maxCount), "Tool calls of one run, likewise.", "max_tool_calls"},
		{"run_timeout", "none", durationOr(&l.RunTimeout, "none"), "Time of one run, likewise.", ""},
		{"max_tokens_total", "none", tokens(&l.MaxTokensTotal), "Tokens of one run, likewise.", "max_tokens"},
		{"max_cost", "none", dollars(&l.MaxCost), "US dollars of one run, likewise.", ""},
	}
}

// isStore refuses a password that stands in the file.
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

// address is a host and a port.
func address(p *string) value {
	v := text(p).(*fn)
	v.what = "host:port"
	v.setFn = func(s string) error {
		if i := strings.LastIndexByte(s, ':'); s != "" && (i < 0 || i == len(s)-1) {
			return errors.New("an address is a host and a port, such as 127.0.0.1:8700")
		}
		*p = s
		return nil
	}
	return v
}

func hostList(p *[]string) lister {
	return listValue{p, func(s string) error {
		if len(s) > 253 || strings.ContainsAny(s, "/:@ ") {
			return errors.New("a host is a name without a port, such as lathe.example.com")
		}
		return nil
	}}
}

func originList(p *[]string) lister {
	return listValue{p, func(s string) error {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return errors.New("an origin is a scheme and a host, such as https://chat.example.com")
		}
		return nil
	}}
}
