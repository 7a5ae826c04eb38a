package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// An MCPServer is an MCP server whose tools runs may use. It has either a Command or a URL.
type MCPServer struct {
	Command string
	Args    []string
	Dir     string // as the file writes it
	Env     map[string]Ref
	URL     Ref
	Headers map[string]Ref
	OAuth   OAuth

	Tools      []string // by the server's names; nil: all; empty: none
	Effects    map[string]lathe.Effect
	Allowlist  []string
	Allowlists map[string][]string

	Elicitation                            string // refuse, defaults, ask, ask-urls
	Required                               bool
	Pin                                    string // trust-first-use, require
	StartTimeout, IdleTimeout, CallTimeout time.Duration
	KeepAlive                              time.Duration // 0: none
	MaxMessageBytes                        int
	MaxTools                               int
	Concurrency                            int // 0: no limit
}

// keys returns the rows of one server, bound to s.
func (s *MCPServer) keys() []key {
	rows := []key{
		{"command", "", program(&s.Command), "Program of a stdio server, without its arguments; no shell is used.", "cmd exec"},
		{"args", "", texts(&s.Args), "Its arguments, a list.", "arguments argv"},
		{"dir", "", text(&s.Dir), "Its working directory; a relative path starts at the configuration file. Default: that of lathe.", "cwd workdir"},
		{"env", "", table(&s.Env, "variable", "text, may be a reference", isEnvName, newHeader), "Its environment, besides PATH, HOME and LANG: it inherits nothing else.", "environment"},
		{"url", "", reference(&s.URL, isURL), "Endpoint of an HTTP server, in place of `command`. May be a reference. What is private needs `tools.egress.private`.", "endpoint address"},
		{"headers", "", table(&s.Headers, "header name", "text, may be a reference", isHeaderName, newHeader), "Further headers, sent to the origin of `url` alone. With `Authorization` among them, `oauth` is not used.", "extra_headers"},
	}
	rows = append(rows, s.OAuth.serverKeys()...)
	return append(rows, []key{
		{"tools", "", grant(&s.Tools, isName), "The tools to offer, by the server's names. Default: `[\"*\"]`, all. An empty list: none.", "include allow_tools"},
		{"effects", "", table(&s.Effects, "the server's name of a tool", "`read_only`, `idempotent` or `writes`", isName, newEffect), "What tools do. What is not listed writes, whatever the server says of it.", "effect"},
		{"allowlist", "", names(&s.Allowlist), "Fields of the output that the model may see, as dotted paths; `[\"*\"]` for all. Required, unless `allowlists` has every tool.", "allow fields show"},
		{"allowlists", "", table(&s.Allowlists, "the server's name of a tool", "list of paths", isName, newPaths), "Allowlists of single tools; they come before `allowlist`.", ""},
		{"elicitation", "refuse", words(&s.Elicitation, "refuse=off,deny", "defaults=accept", "ask=prompt", "ask-urls=urls"), "What becomes of a form that the server wants filled in during a call: none can be asked; its defaults are accepted, where they are enough; whoever is behind the call is asked, at the terminal for instance, and with `ask-urls` also to visit addresses.", "input"},
		{"required", "false", boolean(&s.Required), "Whether nothing starts without it.", "mandatory"},
		{"pin", "trust-first-use", words(&s.Pin, "trust-first-use=tofu,first-use", "require=required,strict"), "Whether the tools that a server has when it is first seen are accepted, or wait for `lathe tools accept`. A definition that changes later always waits.", "pins trust"},
		{"start_timeout", "30s", duration(&s.StartTimeout, 1), "Time to connect and to list the tools.", "connect_timeout"},
		{"idle_timeout", "30s", duration(&s.IdleTimeout, 1), "Time of one call without a sign of progress.", "timeout"},
		{"call_timeout", "10m", duration(&s.CallTimeout, 1), "Time of one call with all its progress.", "max_timeout total_timeout"},
		{"keep_alive", "1m", duration(&s.KeepAlive, 0), "Time between signs of life that are asked for; after three that are missing the server is started again. `0`: none are asked for.", "ping heartbeat"},
		{"max_message_bytes", "8MiB", size(&s.MaxMessageBytes, 1, maxSize), "One message of the server.", "max_line_bytes"},
		{"max_tools", "256", count(&s.MaxTools, 1, 10_000), "Tools that the server may have.", ""},
		{"concurrency", "0", count(&s.Concurrency, 0, maxCount), "Calls of one tool at once; `0`: no limit.", ""},
	}...)
}

// checkServers looks at what the keys of an MCP server say together.
func (l *loader) checkServers() {
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Tools.MCP)) {
		s, base := l.cfg.Tools.MCP[name], "tools.mcp."+name
		if slices.ContainsFunc(l.problems, func(p Problem) bool { return strings.HasPrefix(p.Key, base+".") }) {
			continue // the rest would only follow from it
		}
		switch {
		case s.Command == "" && s.URL.IsZero():
			l.at(base+".command", "a server has a command or a url")
		case s.Command != "" && !s.URL.IsZero():
			l.at(base+".url", "a server has a command or a url, not both")
		case s.Command == "" && (len(s.Args) > 0 || s.Dir != "" || len(s.Env) > 0):
			l.at(base+".url", "args, dir and env go with command")
		case s.Command != "" && len(s.Headers) > 0:
			l.at(base+".command", "headers go with url")
		case s.Command != "" && !s.OAuth.IsZero():
			l.at(base+".command", "oauth goes with url")
		}
		if len(s.Allowlist) == 0 && !l.everyToolListed(s) {
			l.at(base+".allowlist", `no allowlist: name the fields of the output that the model may see, or ["*"] for all`)
		}
		for _, table := range []struct {
			key   string
			names []string
		}{{"effects", slices.Sorted(maps.Keys(s.Effects))}, {"allowlists", slices.Sorted(maps.Keys(s.Allowlists))}} {
			for _, tool := range table.names {
				if s.Tools != nil && !slices.Contains(s.Tools, tool) {
					l.at(base+"."+table.key, quote(tool)+" is not among the tools of this server")
				}
			}
		}
	}
}

func (l *loader) everyToolListed(s *MCPServer) bool {
	for _, tool := range s.Tools {
		if len(s.Allowlists[tool]) == 0 {
			return false
		}
	}
	return s.Tools != nil
}

// texts is a list of any texts, in their order.
func texts(p *[]string) lister { return textsValue{p} }

type textsValue struct{ p *[]string }

func (v textsValue) kind() string   { return "list of texts" }
func (v textsValue) text() string   { return strings.Join(*v.p, ",") }
func (v textsValue) list() []string { return *v.p }

func (v textsValue) set(s string) error {
	if s != "" {
		return errors.New("wants a list: one entry for each argument")
	}
	*v.p = nil
	return nil
}

func (v textsValue) setList(items []string) error {
	for _, item := range items {
		if strings.ContainsRune(item, 0) {
			return errors.New("a text has a NUL in it")
		}
		if strings.Contains(item, "${") {
			return errors.New("references ${…} are not read in arguments, which others can see: pass a secret in env")
		}
	}
	*v.p = slices.Clone(items)
	return nil
}

// program is the path or name of a program, without arguments.
func program(p *string) value {
	v := text(p).(*fn)
	v.what = "path or name"
	v.setFn = func(s string) error {
		if strings.ContainsAny(s, "\t\r\n\x00") || strings.Contains(s, " -") {
			return errors.New("is the program alone: its arguments go into args, one entry each")
		}
		*p = s
		return nil
	}
	return v
}

func isEnvName(s string) error {
	if !isVariable(s) {
		return errors.New("this is not the name of a variable")
	}
	return nil
}

// isServerName takes the names under which tools of a server are offered: NAME__tool.
func isServerName(s string) error {
	ok := s != "" && len(s) <= 32
	mark := true // what stands before is no letter or digit
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = ok && (letter || (c == '_' || c == '-') && !mark)
		mark = !letter
	}
	if !ok || mark {
		return errors.New("a server's name has 1 to 32 lower-case letters and digits, with single _ or - between them")
	}
	return nil
}
