// Package mcptool offers the tools of MCP servers as tools.
//
// A [Group] supervises a set of servers. It restarts a server that has ended, after a pause that grows with each failed attempt, without a
// limit on the attempts. The tools are named SERVER__TOOL. The group pins each definition by its hash on the first connection to a server,
// and blocks a tool whose definition has changed until an operator accepts it. The group ignores the annotations that a server declares for
// its tools: the configuration, a [Server], sets their effects and allowlists.
//
// Every byte of a server is untrusted. Messages have limits and are checked strictly before they are decoded. Sampling and roots requests
// of a server are refused. Its elicitation requests are refused unless [Server].Elicitation allows them.
//
// A stdio server is a child process in its own process group, with its own environment. It is not a sandbox: the child has all permissions
// of its user.
package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/secret"
)

// PinMode says which tool definitions are trusted before an operator has accepted them. An accepted definition is pinned: if the server
// changes it, the tool is blocked.
type PinMode string

// The pin modes. "" is TrustFirstUse.
const (
	// TrustFirstUse accepts all definitions of a server that has no pins yet. A tool that the server adds later is blocked until an
	// operator accepts it.
	TrustFirstUse PinMode = "trust-first-use"
	// RequirePin blocks every tool until an operator accepts it.
	RequirePin PinMode = "require"
)

// Elicitation says how elicitation requests, which are questions of a server to a user, are answered.
type Elicitation string

// The elicitation modes. "" is ElicitRefuse.
const (
	ElicitRefuse Elicitation = "refuse" // all questions are declined
	// ElicitDefaults fills in a form with its default values, and declines it if a required value has none.
	ElicitDefaults Elicitation = "defaults"
	// ElicitAsk passes forms to the client of the tool call through the call's [tool.Asker]. If the call has no Asker, the server gets the
	// answer cancel or, with protocol version 2026-07-28, the call ends with the code unavailable.
	ElicitAsk Elicitation = "ask"
	// ElicitAskURLs does what ElicitAsk does, and also passes on requests to visit a URL.
	ElicitAskURLs Elicitation = "ask-urls"
)

// A Server is the configuration of one MCP server. Exactly one of Command and URL must be set, and at least one of Allowlist and
// Allowlists.
type Server struct {
	Name string // 1 to 32 characters of a-z, 0-9 and single _ or -; tools are offered as NAME__TOOL

	Command string // program of a stdio server, executed without a shell
	Args    []string
	Dir     string                   // working directory; "": that of this process
	Env     map[string]secret.Secret // added to PATH, HOME and LANG

	URL     string                   // endpoint of an HTTP server
	Headers map[string]secret.Secret // added to requests to the origin of URL only
	Client  *http.Client             // nil: a client that follows no redirects and uses no proxies
	// Tokens returns the secrets that Client adds to requests, so that they can be removed from texts of the server; nil: none. It may be
	// called from several goroutines at once.
	Tokens func() []secret.Secret

	// Tools lists the tools to offer, by the names that the server uses; nil: all; empty: none. Exclude lists tools that are not offered,
	// even if Tools lists them. In both lists * stands for any characters and ? for one byte.
	Tools, Exclude []string
	// Rename maps the names that the server uses for tools to the names under which the tools are offered, in place of SERVER__TOOL. Such a
	// name must not begin with the name of another server followed by __.
	Rename map[string]string
	// Effects maps the names that the server uses for tools to the effects of the tools. A tool without an entry counts as one that writes.
	Effects map[string]lathe.Effect
	// Allowlist lists the fields of the output that the model may receive, as [lathe.ToolSpec].Allowlist does. It applies to each tool of
	// the server that has no entry in Allowlists, a map from the server's name of a tool to the list for that tool.
	Allowlist  []string
	Allowlists map[string][]string

	Elicitation  Elicitation   // answers to questions of the server; "": ElicitRefuse
	Required     bool          // [Start] returns an error if the server is not ready
	Pin          PinMode       // "": TrustFirstUse
	StartTimeout time.Duration // for all first attempts together, and then for each further one; 0: 30 s
	IdleTimeout  time.Duration // time without an answer or progress after which a call ends; 0: 30 s
	CallTimeout  time.Duration // total time of a call; 0: 10 min
	KeepAlive    time.Duration // interval of pings to the server; 0: 1 min. Negative: no pings
	MaxLineBytes int           // maximum size of one message of the server; 0: 8 MiB
	MaxTools     int           // maximum number of the server's tools; 0: 256. A server with more does not become ready
	Concurrency  int           // maximum number of concurrent calls of a tool; 0: no limit
}

// Options configure a [Group].
type Options struct {
	// Pins stores the accepted definitions; nil: every tool is blocked.
	Pins *Pins
	// Environ is the environment of this process, as os.Environ returns it. Children get its PATH, HOME and LANG; nil: none of them, so that
	// Command must be the path of a program unless Env has PATH.
	Environ []string
	// OnChange, if not nil, is called with all offered tools of a server, and the origin of these tools, when they change. The method
	// Replace of a [tool.Set] can be used as OnChange. OnChange is called by one goroutine at a time. If it returns an error, the status of
	// the server has ProblemTools and the text of the error.
	OnChange func(origin string, tools []lathe.Tool) error
	// Inspect makes [Start] return a group although OnChange refuses the tools of a server, or a required server is not ready:
	// [Group.Status] then has the reasons.
	Inspect bool
	// LoginCommand, if not nil, returns a text that tells the operator how to log in to the server with this name, for example
	// "run acme login". It is part of error texts, and is not executed.
	LoginCommand func(server string) string
	// Log receives a line when a server becomes ready, ends or changes its tools, without arguments and outputs; nil: no logging.
	Log *slog.Logger
	// Observers observe each request to a server.
	Observers []event.MCPObserver
	// BackoffMin and BackoffMax are the shortest and longest pause before the group reconnects to a server; 0: 500 ms and 1 min.
	BackoffMin, BackoffMax time.Duration
	// StopGrace is the time that a child process gets to end after its standard input was closed, and again after SIGTERM; then it is
	// killed. 0: 1 s.
	StopGrace time.Duration
	// Now is the clock of statuses and pins; nil: time.Now.
	Now func() time.Time

	wait func(ctx context.Context, d time.Duration) error // waits before a call is sent again; tests replace it
}

// Limits of definitions.
const (
	maxDescriptionBytes = 8 << 10
	maxSchemaBytes      = 64 << 10
	maxRemoteName       = 128
	maxPages            = 100
)

// withDefaults returns a copy with the defaults, with slices and maps of its own.
func (s *Server) withDefaults() Server {
	c := *s
	c.Args, c.Tools, c.Allowlist = slices.Clone(s.Args), slices.Clone(s.Tools), slices.Clone(s.Allowlist)
	c.Exclude, c.Rename = slices.Clone(s.Exclude), maps.Clone(s.Rename)
	c.Env, c.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	c.Effects, c.Allowlists = maps.Clone(s.Effects), maps.Clone(s.Allowlists)
	for name, fields := range c.Allowlists {
		c.Allowlists[name] = slices.Clone(fields)
	}
	setDefault(&c.StartTimeout, 30*time.Second)
	setDefault(&c.IdleTimeout, 30*time.Second)
	setDefault(&c.CallTimeout, 10*time.Minute)
	setDefault(&c.MaxLineBytes, 8<<20)
	setDefault(&c.MaxTools, 256)
	c.KeepAlive = cmp.Or(c.KeepAlive, time.Minute) // negative: no pings
	c.Pin = cmp.Or(c.Pin, TrustFirstUse)
	c.Elicitation = cmp.Or(c.Elicitation, ElicitRefuse)
	return c
}

// setDefault sets a value that is not above 0.
func setDefault[T int | time.Duration](p *T, value T) {
	if *p <= 0 {
		*p = value
	}
}

// Check returns an error that says what is wrong with the configuration, or nil. [Start] calls it.
func (s *Server) Check() error {
	switch {
	case !validServerName(s.Name):
		return fmt.Errorf("the server name %.80q is not 1 to 32 of a-z, 0-9 and single _ or - between them", s.Name)
	case s.Command == "" && s.URL == "":
		return errors.New("neither a command nor a url")
	case s.Command != "" && s.URL != "":
		return errors.New("both a command and a url: a server has one of them")
	case s.Command == "" && (len(s.Args) > 0 || s.Dir != "" || len(s.Env) > 0):
		return errors.New("args, dir and env go with a command")
	case s.URL == "" && (len(s.Headers) > 0 || s.Client != nil):
		return errors.New("headers go with a url")
	case len(s.Allowlist) == 0 && len(s.Allowlists) == 0:
		return errors.New(`no allowlist: name the fields of the output that the model may see ("*" for all)`)
	case s.Pin != "" && s.Pin != TrustFirstUse && s.Pin != RequirePin:
		return fmt.Errorf("pin is %s or %s", TrustFirstUse, RequirePin)
	case !slices.Contains([]Elicitation{"", ElicitRefuse, ElicitDefaults, ElicitAsk, ElicitAskURLs}, s.Elicitation):
		return fmt.Errorf("elicitation is %s, %s, %s or %s", ElicitRefuse, ElicitDefaults, ElicitAsk, ElicitAskURLs)
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("the url does not begin with http:// or https:// and a host")
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("%.80q is not the name of an environment variable", name)
		}
	}
	return s.checkNames()
}

// origin returns the origin of the server's tools.
func (s *Server) origin() string { return "mcp:" + s.Name }

// secrets returns the values that no displayed text of the server may contain.
func (s *Server) secrets() []secret.Secret {
	out := slices.AppendSeq(slices.Collect(maps.Values(s.Env)), maps.Values(s.Headers))
	if s.Tokens != nil {
		out = append(out, s.Tokens()...)
	}
	return out
}
