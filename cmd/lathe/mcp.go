package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// servers are the MCP servers that run beside a command.
type servers struct {
	group   *mcptool.Group // nil: there are none
	clients []*egress.Client
	tokens  map[string]*oauth.Client // of servers that tokens can be got for
}

// startServers starts the configured MCP servers and puts their tools into the set, now and whenever
// they change. only, where it is not nil, names the servers to start. close must be called.
func startServers(ctx context.Context, cfg *config.Config, path string, set *tool.Set, log *slog.Logger, only []string) (*servers, error) {
	return openServers(ctx, cfg, path, only, &mcptool.Options{OnChange: set.Replace, Log: log})
}

// inspectServers is startServers for commands that report how the servers are: it does not fail if a required server is
// not ready, or if tools of a server cannot be put into the set.
func inspectServers(ctx context.Context, cfg *config.Config, path string, set *tool.Set) (*servers, error) {
	return openServers(ctx, cfg, path, nil, &mcptool.Options{OnChange: set.Replace, Inspect: true})
}

func openServers(ctx context.Context, cfg *config.Config, path string, only []string, opts *mcptool.Options) (*servers, error) {
	s := &servers{tokens: map[string]*oauth.Client{}}
	base := filepath.Dir(configFile(path))
	var list []mcptool.Server
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.MCP)) {
		if only != nil && !slices.Contains(only, name) {
			continue
		}
		one, err := s.server(name, cfg, base)
		if err != nil {
			s.close()
			return nil, &exitError{exitConfig, fmt.Errorf("tools.mcp.%s: %w", name, err)}
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return s, nil
	}
	pins := cfg.Tools.Pins
	if !filepath.IsAbs(pins) {
		pins = filepath.Join(base, pins)
	}
	opts.Pins, opts.Environ, opts.LoginHint = mcptool.NewPins(pins), os.Environ(), loginHint
	group, err := mcptool.Start(ctx, list, opts)
	if err != nil {
		s.close()
		code := exitConfig
		if lathe.CodeOf(err) == lathe.CodeUnavailable {
			code = exitUpstream
		}
		return nil, &exitError{code, err}
	}
	s.group = group
	return s, nil
}

// serversOf names the servers whose tools are among those that a run may use; nil: all.
func serversOf(tools []string) []string {
	if tools == nil {
		return nil
	}
	only := []string{}
	for _, name := range tools {
		server, _, _ := strings.Cut(name, "__")
		only = append(only, server)
	}
	return only
}

// configFile returns the file that is read where --config says path.
func configFile(path string) string {
	if path == "" {
		return defaultConfigFile
	}
	return path
}

func (s *servers) server(name string, cfg *config.Config, base string) (mcptool.Server, error) {
	c := cfg.Tools.MCP[name]
	out := mcptool.Server{
		Name: name, Command: c.Command, Args: c.Args, Dir: c.Dir, URL: c.URL.Reveal(),
		Env: secrets(c.Env), Headers: secrets(c.Headers),
		Tools: c.Tools, Effects: c.Effects, Allowlist: c.Allowlist, Allowlists: c.Allowlists,
		Elicitation: mcptool.Elicitation(c.Elicitation), Required: c.Required, Pin: mcptool.PinMode(c.Pin),
		StartTimeout: c.StartTimeout, IdleTimeout: c.IdleTimeout, CallTimeout: c.CallTimeout,
		MaxLineBytes: c.MaxMessageBytes, MaxTools: c.MaxTools, Concurrency: c.Concurrency,
	}
	if out.KeepAlive = c.KeepAlive; out.KeepAlive == 0 {
		out.KeepAlive = -1
	}
	if out.Dir != "" && !filepath.IsAbs(out.Dir) {
		out.Dir = filepath.Join(base, out.Dir)
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

// serverClient reaches the host of one server and no other. How long an answer takes and how large
// it is are bounded where its messages are read.
func serverClient(address string, cfg *config.Config) (*egress.Client, error) {
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
		&egress.Rules{Hosts: []string{u.Hostname()}, Schemes: []string{u.Scheme}, Ports: []int{port}, Private: cfg.Tools.Egress.Private},
		&egress.Options{Timeout: -1, HeaderTimeout: -1, MaxBodyBytes: -1, MaxRedirects: -1})
}

// checkServers refuses addresses of servers that no connection would be made to.
func checkServers(cfg *config.Config) (out []config.Problem) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools.MCP)) {
		address := cfg.Tools.MCP[name].URL.Reveal()
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
			out = append(out, config.Problem{Key: "tools.mcp." + name + ".url", Message: strings.TrimPrefix(err.Error(), "egress: ")})
			continue
		}
		c := cfg.Tools.MCP[name]
		if conf := oauthConfig(name, address, &c.OAuth); !c.OAuth.IsZero() {
			err := conf.Check()
			if bringsCredentials(c.Headers) {
				err = errors.New("headers bring Authorization: a server has one of both")
			}
			if err != nil {
				out = append(out, config.Problem{Key: "tools.mcp." + name + ".oauth", Message: err.Error()})
			}
		}
	}
	return out
}

// hostOf returns the host of an address, "" of what is none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func secrets(refs map[string]config.Ref) map[string]mcptool.Secret {
	out := make(map[string]mcptool.Secret, len(refs))
	for name, ref := range refs {
		out[name] = ref.Secret()
	}
	return out
}

// status says how the servers are, in the order of their names.
func (s *servers) status() []mcptool.Status {
	if s.group == nil {
		return nil
	}
	return s.group.Status()
}

// complaints are what a run should know of servers that are not ready and tools that wait.
func (s *servers) complaints() []string {
	var out []string
	for _, st := range s.status() {
		if st.State != mcptool.StateReady {
			next := "; `lathe tools doctor` says more"
			if st.Problem == mcptool.ProblemLogin {
				next = "; next: " + loginHint(st.Server)
			}
			out = append(out, "the MCP server "+st.Server+" is not ready: "+printable(firstLine(st.LastError))+next)
			continue
		}
		var blocked []string
		for _, t := range st.Tools {
			if t.State == mcptool.ToolBlocked {
				blocked = append(blocked, t.Name+" ("+printable(firstLine(t.Reason))+")")
			}
		}
		if len(blocked) > 0 {
			out = append(out, "not offered, because the definition is not accepted: "+strings.Join(blocked, ", ")+"; see `lathe tools doctor`")
		}
	}
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// close stops the servers and waits until they are gone.
func (s *servers) close() {
	if s.group != nil {
		_ = s.group.Close() // it reports nothing
	}
	for _, c := range s.clients {
		c.Close()
	}
}

// stateOf says how a tool of the set is: ready, or as its server is.
func (s *servers) stateOf(sp *lathe.ToolSpec) string {
	for _, st := range s.status() {
		if sp.Origin == "mcp:"+st.Server && st.State != mcptool.StateReady {
			return string(st.State)
		}
	}
	return string(mcptool.ToolReady)
}

// listOthers lists the tools of servers that are not offered, and the servers that have none.
func (s *servers) listOthers(w io.Writer, enc *json.Encoder, asJSON bool) error {
	for _, st := range s.status() {
		rows := []mcptool.ToolStatus{}
		for _, t := range st.Tools {
			if t.State != mcptool.ToolReady {
				rows = append(rows, t)
			}
		}
		if len(st.Tools) == 0 {
			rows = append(rows, mcptool.ToolStatus{Name: st.Server + "__*", State: mcptool.ToolState(st.State), Reason: firstLine(st.LastError)})
		}
		for _, t := range rows {
			reason := printable(t.Reason)
			if len(t.Changed) > 0 {
				reason += " (" + strings.Join(t.Changed, ", ") + ")"
			}
			if asJSON {
				if err := enc.Encode(toolRow{Name: t.Name, Description: t.Description, Origin: "mcp:" + st.Server, State: string(t.State), Reason: reason}); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, "%s\t-\t-\tmcp:%s\t%s\t%s\n", t.Name, st.Server, t.State, reason)
		}
	}
	return nil
}
