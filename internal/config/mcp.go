package config

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
)

// An MCPServer configures an MCP server whose tools runs may use. Either Command or URL is set.
type MCPServer struct {
	// Program of a stdio server, without its arguments; no shell is used.
	Command string `key:"command" is:"program" also:"cmd exec"`
	// Its arguments, a list.
	Args []string `key:"args" is:"text" also:"arguments argv"`
	// Its working directory; a relative path starts at the configuration file. Default: that of lathe.
	Dir string `key:"dir" also:"cwd workdir"`
	// Environment variables of the program, besides PATH, HOME and LANG: it inherits no others.
	Env map[string]Ref `key:"env" names:"variable" per:"variable to text, may be a reference" is:"header" also:"environment"`
	// Endpoint of an HTTP server, in place of `command`. What is private needs `tools.egress.private`.
	URL Ref `key:"url" is:"url" also:"endpoint address"`
	// Further headers, sent to the origin of `url` alone. With `Authorization` among them, `oauth` is not used.
	Headers map[string]Ref `key:"headers" names:"header" per:"header name to text, may be a reference" is:"header" also:"extra_headers"`
	OAuth   OAuth          `key:"oauth" default:"grant=authorization_code"`
	// The tools to offer, by the server's names; `*` stands for any characters, `?` for one. Default: `["*"]`, all. An empty list: none.
	Tools []string `key:"tools" unset:"all" also:"include allow_tools"`
	// Tools not offered, even if `tools` names them; patterns as in `tools`.
	Exclude []string `key:"exclude" also:"deny_tools skip_tools hide"`
	// Names under which tools are offered in place of `NAME__tool`. Policy, keys and agents refer to the new names.
	Rename map[string]string `key:"rename" per:"the server's name of a tool" is:"tool name" also:"alias aliases names"`
	// What tools do. What is not listed is undeclared and counts as one that writes, whatever the server says of it; `lathe tools effects`
	// prints a block to review.
	Effects map[string]lathe.Effect `key:"effects" per:"the server's name of a tool" also:"effect"`
	// Fields of the output that the model may see, as dotted paths; `["*"]` for all. Required, unless `allowlists`
	// has every tool.
	Allowlist []string `key:"allowlist" also:"allow fields show"`
	// Allowlists of single tools; they come before `allowlist`.
	Allowlists map[string][]string `key:"allowlists" per:"the server's name of a tool to list of paths"`
	// Forms that the server requests during a call: `refuse` offers none; `defaults` accepts them with their defaults,
	// where these are enough; `ask` asks the client of the call, at the terminal for instance; `ask-urls` also asks to
	// visit addresses.
	Elicitation string `key:"elicitation" default:"refuse" of:"refuse=off,deny defaults=accept ask=prompt ask-urls=urls" also:"input"`
	// Whether a start fails without the server.
	Required bool `key:"required" default:"false" also:"mandatory"`
	// Whether the tools that a server has when it is first seen are accepted, or wait for `lathe tools accept`. A
	// definition that changes later always waits.
	Pin string `key:"pin" default:"trust-first-use" of:"trust-first-use=tofu,first-use require=required,strict" also:"pins trust"`
	// Time for connecting and listing the tools at a start, all attempts together.
	StartTimeout time.Duration `key:"start_timeout" default:"30s" range:"1ns.." also:"connect_timeout"`
	// Time of one call without a sign of progress.
	IdleTimeout time.Duration `key:"idle_timeout" default:"30s" range:"1ns.." also:"timeout"`
	// Time of one call with all its progress.
	CallTimeout time.Duration `key:"call_timeout" default:"10m" range:"1ns.." also:"max_timeout total_timeout"`
	// Time between pings; after three without an answer the server is started again. `0`: no pings.
	KeepAlive time.Duration `key:"keep_alive" default:"1m" range:"0s.." also:"ping heartbeat"`
	// One message of the server.
	MaxMessageBytes int `key:"max_message_bytes" default:"8MiB" is:"size" range:"1.." also:"max_line_bytes"`
	// Tools that the server may have.
	MaxTools int `key:"max_tools" default:"256" range:"1..10000"`
	// Calls of one tool at once; `0`: no limit.
	Concurrency int `key:"concurrency" default:"0" range:"0.."`
}

// checkServers checks the settings of MCP servers that depend on each other.
func (l *loader) checkServers() {
	for name, s := range text.ByName(l.cfg.Tools.MCP) {
		base := "tools.mcp." + name
		if l.wrong(base) {
			continue // the rest would only follow from it
		}
		hasCommand, hasURL := s.Command != "", !s.URL.IsZero()
		switch {
		case !hasCommand && !hasURL:
			l.at(base+".command", "a server has a command or a url")
		case hasCommand && hasURL:
			l.at(base+".url", "a server has a command or a url, not both")
		case hasURL && (len(s.Args) > 0 || s.Dir != "" || len(s.Env) > 0):
			l.at(base+".url", "args, dir and env go with command")
		case hasCommand && len(s.Headers) > 0:
			l.at(base+".command", "headers go with url")
		case hasCommand && !s.OAuth.IsZero():
			l.at(base+".command", "oauth goes with url")
		}
		if len(s.Allowlist) == 0 && !s.hasEveryAllowlist() {
			l.at(base+".allowlist", `no allowlist: name the fields of the output that the model may see, or ["*"] for all`)
		}
		check := func(key string, tools iter.Seq[string]) {
			for _, tool := range slices.Sorted(tools) {
				if !policy.Selected(s.Tools, s.Exclude, tool) {
					l.at(base+"."+key, quote(tool)+" is not among the tools of this server")
				}
			}
		}
		check("effects", maps.Keys(s.Effects))
		check("allowlists", maps.Keys(s.Allowlists))
		check("rename", maps.Keys(s.Rename))
	}
	l.checkRenames()
}

// checkRenames reports new names that two tools would have, or that belong to another server.
func (l *loader) checkRenames() {
	tools, by := &l.cfg.Tools, map[string]string{}
	for name, server := range text.ByName(tools.MCP) {
		for remote, to := range text.ByName(server.Rename) {
			key := "tools.mcp." + name + ".rename." + remote
			if other := by[to]; other != "" {
				l.at(key, other+" is called "+quote(to)+", too")
			}
			by[to] = quote(remote) + " of the server " + name
			if owner, _, ok := strings.Cut(to, "__"); ok && owner != name && isServerName(owner) == nil {
				l.at(key, quote(to)+" is a name for tools of the server "+owner)
			}
		}
	}
}

// MCPTool returns the configured MCP server to which the tool with this offered name belongs, and the server's own name of the tool, as far
// as the configuration shows it. ok is false if the name is not one of an MCP server's tool.
func (t *Tools) MCPTool(name string) (server, remote string, ok bool) {
	for server, s := range text.ByName(t.MCP) {
		for remote, to := range s.Rename {
			if to == name {
				return server, remote, true
			}
		}
	}
	server, remote, _ = strings.Cut(name, "__")
	s := t.MCP[server]
	if s == nil || remote == "" || s.Rename[remote] != "" {
		return "", "", false
	}
	return server, remote, true
}

// hasEveryAllowlist reports whether Tools names every offered tool, without patterns, and Allowlists has each of them.
func (s *MCPServer) hasEveryAllowlist() bool {
	for _, tool := range s.Tools {
		if len(s.Allowlists[tool]) == 0 || strings.ContainsAny(tool, "*?") {
			return false
		}
	}
	return s.Tools != nil
}
