package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// Servers are the running MCP servers of a configuration. The caller must call Close.
type Servers struct {
	group   *mcptool.Group // nil: there are no servers
	clients []*egress.Client
	tokens  map[string]*oauth.Client // by name of the server, for servers for which tokens can be obtained
}

// ServerOptions are the options of [StartServers]. The zero value starts all servers.
type ServerOptions struct {
	// Only names the servers to start; nil: all.
	Only []string
	// Inspect makes it no error that a required server is not ready, or that tools cannot be added to the set: Status reports it.
	Inspect bool
	// Environ is the environment from which servers that are started as programs get PATH, HOME and LANG, in the form of os.Environ. nil:
	// the environment of the process.
	Environ []string
	Log     *slog.Logger // nil: discards
	// Observers are called for each request to the servers.
	Observers []event.MCPObserver
}

// StartServers starts the MCP servers of the configuration and adds their tools to the set, also after each change of the tools. If it
// returns no error, the caller must call Close.
func StartServers(ctx context.Context, cfg *config.Config, set *tool.Set, opts *ServerOptions) (*Servers, error) {
	if opts == nil {
		opts = &ServerOptions{}
	}
	s := &Servers{tokens: map[string]*oauth.Client{}}
	var list []mcptool.Server
	for name := range text.ByName(cfg.Tools.MCP) {
		if opts.Only != nil && !slices.Contains(opts.Only, name) {
			continue
		}
		one, err := s.server(name, cfg)
		if err != nil {
			s.Close()
			return nil, invalidConfig("tools.mcp.%s: %w", name, err)
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return s, nil
	}
	group, err := mcptool.Start(ctx, list, &mcptool.Options{OnChange: set.Replace, Inspect: opts.Inspect, Log: opts.Log, Observers: opts.Observers, Pins: mcptool.NewPins(stateFile(cfg, cfg.Tools.Pins)),
		Environ: environOf(opts.Environ), LoginCommand: LoginCommand})
	if err != nil {
		s.Close()
		if lathe.CodeOf(err) == lathe.CodeUnavailable {
			return nil, lathe.CodeUnavailable.Errorf(Op, "%w; `lathe tools doctor` examines it", err)
		}
		return nil, configError(err)
	}
	s.group = group
	return s, nil
}

// ServersOf returns the names of the MCP servers that provide any of the tools; nil tools (all) return nil (all).
func ServersOf(cfg *config.Config, tools []string) []string {
	if tools == nil {
		return nil
	}
	only := []string{}
	for _, name := range tools {
		if server, _, ok := cfg.Tools.MCPTool(name); ok {
			only = append(only, server)
		}
	}
	return only
}

// server returns the options of one MCP server.
func (s *Servers) server(name string, cfg *config.Config) (mcptool.Server, error) {
	c := cfg.Tools.MCP[name]
	out := mcptool.Server{
		Name: name, Command: c.Command, Args: c.Args, Dir: c.Dir, URL: c.URL.Reveal(),
		Env: secretsOf(c.Env), Headers: secretsOf(c.Headers),
		Tools: c.Tools, Exclude: c.Exclude, Rename: c.Rename, Effects: c.Effects, Allowlist: c.Allowlist, Allowlists: c.Allowlists,
		Elicitation: mcptool.Elicitation(c.Elicitation), Required: c.Required, Pin: mcptool.PinMode(c.Pin),
		StartTimeout: c.StartTimeout, IdleTimeout: c.IdleTimeout, KeepAlive: cmp.Or(c.KeepAlive, -1), CallTimeout: c.CallTimeout,
		MaxLineBytes: c.MaxMessageBytes, MaxTools: c.MaxTools, Concurrency: c.Concurrency,
	}
	if out.Dir != "" {
		out.Dir = besideConfig(cfg, out.Dir)
	}
	if out.URL == "" {
		return out, nil
	}
	client, err := serverClient(out.URL, cfg)
	if err != nil {
		return out, err
	}
	s.clients = append(s.clients, client)
	out.Client = client.HTTP()
	return out, s.withTokens(name, cfg, &out)
}

// serverClient returns a client that can send requests only to the host of one MCP server. It does not limit the time and size of
// responses, which the reader of MCP messages limits.
func serverClient(address string, cfg *config.Config) (*egress.Client, error) {
	return hostClient(address, cfg, &egress.Options{Timeout: -1, HeaderTimeout: -1, MaxBodyBytes: -1, MaxRedirects: -1})
}

// hostClient returns a client that can send requests only to the host and port of a URL.
func hostClient(address string, cfg *config.Config, opts *egress.Options) (*egress.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	port := map[string]int{"http": 80, "https": 443}[u.Scheme]
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return nil, err
		}
	}
	return egress.New(
		&egress.Rules{Hosts: []string{u.Hostname()}, Schemes: []string{u.Scheme}, Ports: []int{port}, Private: cfg.Tools.Egress.Private}, opts)
}

// checkServers reports URLs of MCP servers to which no connection is allowed.
func checkServers(cfg *config.Config) (out []config.Problem) {
	for name, c := range text.ByName(cfg.Tools.MCP) {
		address := c.URL.Reveal()
		if address == "" {
			continue
		}
		client, err := serverClient(address, cfg)
		if err == nil {
			err = client.Check(address)
		}
		if egress.CodeOf(err) == egress.CodeAddress {
			err = errors.New("its host is not public: name it in tools.egress.private if it may be reached")
		}
		if err != nil {
			out = append(out, problem("tools.mcp."+name+".url", "%s", strings.TrimPrefix(err.Error(), "egress: ")))
			continue
		}
		if conf := oauthConfig(name, address, &c.OAuth); !c.OAuth.IsZero() {
			err := conf.Check()
			if HasAuthorization(c.Headers) {
				err = errors.New("headers bring Authorization: a server has one of both")
			}
			if err != nil {
				out = append(out, problem("tools.mcp."+name+".oauth", "%s", err))
			}
		}
	}
	return out
}

// hostOf returns the host of a URL, or "" if the text is not a URL.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Status returns the state of each server, sorted by name.
func (s *Servers) Status() []mcptool.Status {
	if s.group == nil {
		return nil
	}
	return s.group.Status()
}

// Accept does what [mcptool.Group.Accept] does.
func (s *Servers) Accept(name string) ([]mcptool.ToolStatus, error) { return s.group.Accept(name) }

// AcceptShown does what [mcptool.Group.AcceptShown] does.
func (s *Servers) AcceptShown(name, digest string) ([]mcptool.ToolStatus, error) {
	if s.group == nil {
		return nil, errNoServer
	}
	return s.group.AcceptShown(name, digest)
}

// Reconnect does what [mcptool.Group.Reconnect] does.
func (s *Servers) Reconnect(name string) error {
	if s.group == nil {
		return errNoServer
	}
	return s.group.Reconnect(name)
}

var errNoServer = lathe.CodeNotFound.Wrap(Op, lathe.ErrNotFound)

// Warnings returns one line for each server that is not ready, for tools whose definitions are not accepted, and for configured tool names
// that the server does not have. Lines may contain text of the servers, which must be escaped for a terminal.
func (s *Servers) Warnings() []string {
	var out []string
	for _, st := range s.Status() {
		if st.State != mcptool.StateReady {
			next := "; `lathe tools doctor` says more"
			if st.Problem == mcptool.ProblemLogin {
				next = "; next: " + LoginCommand(st.Server)
			}
			out = append(out, "the MCP server "+st.Server+" is not ready: "+text.FirstLine(st.LastError)+next)
			continue
		}
		var blocked, missing []string
		for _, t := range st.Tools {
			switch t.State {
			case mcptool.ToolBlocked:
				blocked = append(blocked, t.Name+" ("+text.FirstLine(t.Reason)+")")
			case mcptool.ToolMissing:
				missing = append(missing, t.Name+": "+text.FirstLine(t.Reason))
			case mcptool.ToolReady, mcptool.ToolRefused, mcptool.ToolExcluded:
			}
		}
		if len(blocked) > 0 {
			out = append(out, "not offered, because the definition is not accepted: "+strings.Join(blocked, ", ")+"; see `lathe tools doctor`")
		}
		if len(missing) > 0 {
			out = append(out, "tools.mcp."+st.Server+" has names that are no tools of the server: "+strings.Join(missing, "; ")+"; correct or remove them")
		}
	}
	return out
}

// Close stops the servers and waits until they have ended.
func (s *Servers) Close() {
	if s.group != nil {
		_ = s.group.Close() // it returns no useful error
	}
	for _, c := range s.clients {
		c.Close()
	}
}
