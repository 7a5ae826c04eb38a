// Package mcptool makes the tools of MCP servers tools of Lathe.
//
// A [Group] supervises a set of servers. It restarts a server that has ended, after a pause that grows with each failed
// attempt, without a limit on the attempts. The tools are named SERVER__TOOL. The group pins each definition by its hash on
// the first connection to a server, and blocks a tool whose definition has changed until an operator accepts it. The group
// ignores a server's annotations of its tools: [Server] sets their effects and allowlists.
//
// Every byte of a server is untrusted. Messages are bounded and checked strictly before they are decoded. Sampling and roots
// requests of a server are refused. Its elicitation requests are refused unless [Server].Elicitation allows them.
//
// A stdio server is a child process in a process group of its own, with an environment of its own.
// It is not a sandbox: the child may do what its user may do.
package mcptool

import (
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

// PinMode says what happens to a definition that has no pin.
type PinMode string

// The pin modes. The zero value counts as TrustFirstUse.
const (
	// TrustFirstUse accepts all definitions of a server that has no pins yet. A tool that the server adds later is blocked
	// until an operator accepts it.
	TrustFirstUse PinMode = "trust-first-use"
	// RequirePin blocks every tool until an operator accepts its definition.
	RequirePin PinMode = "require"
)

// Elicitation says how the elicitation requests of a server, its questions to a user, are answered.
type Elicitation string

// The elicitation modes. The zero value counts as ElicitRefuse.
const (
	ElicitRefuse Elicitation = "refuse" // every question is refused
	// ElicitDefaults answers a form with its default values. It declines a form whose defaults are not sufficient.
	ElicitDefaults Elicitation = "defaults"
	// ElicitAsk asks the client of the call through its [tool.Asker].
	ElicitAsk Elicitation = "ask"
	// ElicitAskURLs is ElicitAsk, and also passes on requests that the user open a URL.
	ElicitAskURLs Elicitation = "ask-urls"
)

// A Server configures one MCP server: how it is reached and what its tools may do. Exactly one of Command and URL is set.
type Server struct {
	Name string // 1 to 32 of a-z, 0-9, single _ and -; begins every tool's name

	Command string // program of a stdio server, no shell
	Args    []string
	Dir     string                   // working directory; "" is this process's own
	Env     map[string]secret.Secret // added to PATH, HOME and LANG

	URL     string                   // endpoint of an HTTP server
	Headers map[string]secret.Secret // sent to the endpoint's origin and nowhere else
	Client  *http.Client             // nil: a plain one that follows no redirects and no proxies
	// Tokens returns the secrets that Client adds to requests itself. They are removed from texts of the server.
	Tokens func() []secret.Secret

	// Tools are the server's names of the tools to offer, in which * stands for any characters and ? for one; nil: all;
	// empty: none. Exclude are those that are not offered even so.
	Tools, Exclude []string
	// Rename are names under which tools are offered in place of SERVER__TOOL, by the server's name of the tool. A name must
	// not be one of another server: text before the first __ that is a server's name is that of this server.
	Rename map[string]string
	// Effects are the effects of tools, by the server's name of the tool. A tool that is not listed counts as one that writes.
	Effects map[string]lathe.Effect
	// Allowlist is the allowlist of every tool that is not in Allowlists.
	Allowlist  []string
	Allowlists map[string][]string

	Elicitation  Elicitation   // how the server's questions to a user are answered
	Required     bool          // Start fails without it
	Pin          PinMode       // of definitions that are not pinned
	StartTimeout time.Duration // to connect and list tools, with all attempts that Start waits for; 30 s
	IdleTimeout  time.Duration // of a call, without progress; 30 s
	CallTimeout  time.Duration // of a call, with all its progress; 10 min
	KeepAlive    time.Duration // between pings to the server; 1 min. Negative: no pings
	MaxLineBytes int           // of one message; 8 MiB
	MaxTools     int           // that the server may have; 256
	Concurrency  int           // calls at once; 0: no limit
}

// Options of a [Group]. The zero value blocks every tool: there are no pins.
type Options struct {
	// Pins stores the accepted definitions. nil blocks every tool.
	Pins *Pins
	// Environ is the environment of this process, as os.Environ returns it. Children get PATH, HOME
	// and LANG of it.
	Environ []string
	// OnChange gets the tools of a server, by their origin, when they have changed. It is called by
	// one goroutine at a time. An error is shown in the server's status.
	OnChange func(origin string, tools []lathe.Tool) error
	// Inspect makes [Start] return a group even if OnChange refuses the tools of a server or a required server is not
	// ready: [Group.Status] then has the reasons.
	Inspect bool
	// LoginCommand returns the next step for a server that requires a login, such as a command. Error texts and statuses show it.
	LoginCommand func(server string) string
	// Log gets a line when a server starts, ends and changes its tools: no arguments, no output.
	Log *slog.Logger
	// Observers observe each request to a server.
	Observers []event.MCPObserver
	// BackoffMin and BackoffMax bound the pause before a server is started again; 500 ms and 1 min.
	BackoffMin, BackoffMax time.Duration
	// StopGrace is the time that a child process has to end by itself before it is killed; 1 s.
	StopGrace time.Duration
	// Now is the clock of statuses and pins; time.Now.
	Now func() time.Time

	wait func(ctx context.Context, d time.Duration) error // before a call is sent again; tests replace it
}

// Limits of definitions.
const (
	maxDescriptionBytes = 8 << 10
	maxSchemaBytes      = 64 << 10
	maxRemoteName       = 128
	maxPages            = 100
)

func (s *Server) withDefaults() Server {
	c := *s
	c.Args, c.Tools, c.Allowlist = slices.Clone(s.Args), slices.Clone(s.Tools), slices.Clone(s.Allowlist)
	c.Exclude, c.Rename = slices.Clone(s.Exclude), maps.Clone(s.Rename)
	set := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	set(&c.StartTimeout, 30*time.Second)
	set(&c.IdleTimeout, 30*time.Second)
	set(&c.CallTimeout, 10*time.Minute)
	if c.KeepAlive == 0 {
		c.KeepAlive = time.Minute
	}
	if c.MaxLineBytes <= 0 {
		c.MaxLineBytes = 8 << 20
	}
	if c.MaxTools <= 0 {
		c.MaxTools = 256
	}
	if c.Pin == "" {
		c.Pin = TrustFirstUse
	}
	if c.Elicitation == "" {
		c.Elicitation = ElicitRefuse
	}
	return c
}

// Check returns an error if the configuration of the server is not valid.
func (s *Server) Check() error {
	switch {
	case !ValidServerName(s.Name):
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

// origin is what the server's tools give as their origin.
func (s *Server) origin() string { return "mcp:" + s.Name }

// secrets are the values that no text of the server's may show.
func (s *Server) secrets() []secret.Secret {
	var out []secret.Secret
	for _, v := range s.Env {
		out = append(out, v)
	}
	for _, v := range s.Headers {
		out = append(out, v)
	}
	if s.Tokens != nil {
		out = append(out, s.Tokens()...)
	}
	return out
}
