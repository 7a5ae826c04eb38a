package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/internal/regular"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

// httpTools returns the tools that make HTTP requests (those of tools.http and of OpenAPI documents), the problems of entries, and warnings
// about documents.
func httpTools(cfg *config.Config, docs documents) (tools []lathe.Tool, problems, warnings []config.Problem) {
	b := newHTTPTools(cfg)
	b.documents = docs
	if problems = b.checkEgress(); len(problems) > 0 {
		return nil, problems, nil
	}
	b.addAll()
	b.checkNames()
	return b.tools, b.problems, b.warnings()
}

// HTTPTools are the tools of tools.http and tools.openapi, with their clients and logins. The caller must call Close.
type HTTPTools struct {
	cfg      *config.Config
	egress   *config.Egress
	clients  map[string]*egress.Client // by scheme and host
	tools    []lathe.Tool
	keys     []string // key in the configuration of each tool
	problems []config.Problem
	notes    map[string]*DocumentNotes // by name of the document
	documents
	httpLogins
}

// DocumentNotes are notes about an OpenAPI document, for operators: one line for each operation, sorted.
type DocumentNotes struct {
	LeftOut  []string // operations that a pattern or a tag selects and that cannot be tools
	Warnings []string // tools whose schema matches hardly any call
}

// Notes returns the notes by name of the document. Documents without notes are absent.
func (b *HTTPTools) Notes() map[string]*DocumentNotes { return b.notes }

// notesOf returns the notes of a document and creates them if necessary.
func (b *HTTPTools) notesOf(document string) *DocumentNotes {
	if b.notes[document] == nil {
		b.notes[document] = &DocumentNotes{}
	}
	return b.notes[document]
}

// warnings returns one line for each document and kind of note.
func (b *HTTPTools) warnings() (out []config.Problem) {
	for name, notes := range text.ByName(b.notes) {
		key, selected := "tools.openapi."+name, ".operations"
		if len(b.cfg.Tools.OpenAPI[name].Operations) == 0 {
			selected = ".tags"
		}
		if n := len(notes.LeftOut); n > 0 {
			out = append(out, problem(key+selected, "%s left out, of which no tool can be made: `lathe tools doctor` says why", text.Plural(n, "operation")))
		}
		if n := len(notes.Warnings); n > 0 {
			out = append(out, problem(key+".file", "%s with a oneOf that accepts no call: %s", text.Plural(n, "tool"), notes.Warnings[0]))
		}
	}
	return out
}

func newHTTPTools(cfg *config.Config) *HTTPTools {
	return &HTTPTools{cfg: cfg, egress: &cfg.Tools.Egress, clients: map[string]*egress.Client{}, notes: map[string]*DocumentNotes{},
		httpLogins: httpLogins{logins: map[string]*oauth.Client{}, byTool: map[string]string{}, shared: map[string]*oauth.Client{}}}
}

// OpenHTTPTools returns the HTTP tools of a configuration. Tools that are not valid are left out.
func OpenHTTPTools(cfg *config.Config) *HTTPTools {
	b := newHTTPTools(cfg)
	b.addAll()
	return b
}

// addAll adds the tools of tools.http and tools.openapi.
func (b *HTTPTools) addAll() {
	for name, entry := range text.ByName(b.cfg.Tools.HTTP) {
		b.addHTTP(name, entry)
	}
	for name, entry := range text.ByName(b.cfg.Tools.OpenAPI) {
		b.addDocument(name, entry)
	}
}

// An Origin is a server to which HTTP tools send requests.
type Origin struct {
	URL    string         // scheme and host
	Key    string         // configuration key of the first tool that uses it
	Tools  int            // number of tools with this origin
	Client *egress.Client // client for the server and the hosts to which it may redirect
	Logins []*Login       // logins of the tools
}

// Origins returns the servers, sorted by URL.
func (b *HTTPTools) Origins() []Origin {
	var out []Origin
	for address, client := range text.ByName(b.clients) {
		o := Origin{URL: address, Client: client}
		_, host, _ := strings.Cut(address, "://")
		sources := map[string]bool{}
		for i, t := range b.tools {
			if t.Spec().Backend != host {
				continue
			}
			o.Tools++
			o.Key = cmp.Or(o.Key, b.keys[i])
			if source := b.byTool[t.Spec().Name]; source != "" {
				sources[source] = true
			}
		}
		for source := range text.ByName(sources) {
			o.Logins = append(o.Logins, b.login(source))
		}
		out = append(out, o)
	}
	return out
}

// Close closes idle connections.
func (b *HTTPTools) Close() {
	for _, c := range b.clients {
		c.Close()
	}
	b.httpLogins.close()
}

// report adds a problem at a configuration key.
func (b *HTTPTools) report(key string, err error) {
	b.problems = append(b.problems, problem(key, "%s", err))
}

// checkEgress checks each of the egress rules that all tools share.
func (b *HTTPTools) checkEgress() (problems []config.Problem) {
	check := func(key string, rule *egress.Rules) {
		if _, err := egress.New(rule, nil); err != nil {
			problems = append(problems, problem(key, "%s", strings.TrimPrefix(err.Error(), "egress: ")))
		}
	}
	for _, s := range b.egress.Private {
		check("tools.egress.private", &egress.Rules{Private: []string{s}})
	}
	for _, s := range b.egress.RedirectHosts {
		check("tools.egress.redirect_hosts", &egress.Rules{Hosts: []string{s}})
	}
	return problems
}

// bracesEscaped escapes the placeholders of a URL, which net/url does not accept in a host.
var bracesEscaped = strings.NewReplacer("{", "%7B", "}", "%7D")

// client returns the client that may send requests to the server of a URL, and to the hosts to which it may redirect.
func (b *HTTPTools) client(address string) (*egress.Client, error) {
	u, err := url.Parse(bracesEscaped.Replace(address))
	if err != nil || u.Host == "" {
		return nil, errors.New("an address begins with https:// or http:// and a host")
	}
	origin := u.Scheme + "://" + u.Host
	if c := b.clients[origin]; c != nil {
		return c, nil
	}
	rules := &egress.Rules{Hosts: append([]string{u.Hostname()}, b.egress.RedirectHosts...), Schemes: []string{"https"}, Ports: []int{443}, Private: b.egress.Private}
	if u.Scheme == "http" {
		rules.Schemes = append(rules.Schemes, "http")
		rules.Ports = append(rules.Ports, 80)
	}
	if p, err := strconv.Atoi(u.Port()); err == nil {
		rules.Ports = append(rules.Ports, p)
	}
	c, err := egress.New(rules, &egress.Options{Timeout: -1, MaxBodyBytes: int64(b.egress.MaxResponseBytes), MaxRedirects: cmp.Or(b.egress.MaxRedirects, -1)})
	if err == nil {
		err = c.Check(origin)
	}
	if egress.CodeOf(err) == egress.CodeAddress {
		return nil, fmt.Errorf("the address of %s is not public: name it in tools.egress.private if it may be reached", u.Hostname())
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "egress: "))
	}
	b.clients[origin] = c
	return c, nil
}

// bodies maps the values of tools.http.NAME.body to media types.
var bodies = map[string]string{"json": "application/json", "form": "application/x-www-form-urlencoded", "multipart": "multipart/form-data", "text": "text/plain"}

// addHTTP adds an entry of tools.http.
func (b *HTTPTools) addHTTP(name string, c *config.HTTPTool) {
	key := "tools.http." + name
	def := &httptool.Definition{Name: name, Description: c.Description, Method: c.Method, URL: c.URL.Reveal(), Body: bodies[c.Body], Effect: c.Effect,
		Allowlist: c.Call.Allowlist, Credentials: credentials(&c.Call), Origin: "http:" + name, OAuth: c.Call.OAuth.IsSet()}
	for arg, p := range text.ByName(c.Parameters) {
		def.Parameters = append(def.Parameters, httptool.Parameter{Name: arg, As: p.As, In: httptool.Place(p.In), Description: p.Description, Required: p.Required,
			Style: p.Style, Explode: p.Explode, AllowReserved: p.AllowReserved, Whole: p.In == "body" && c.Body == "text", Schema: p.Schema})
	}
	if c.URL.IsZero() {
		b.report(key+".url", errors.New("is missing: the address of the request"))
		return
	}
	if b.addLogin("http", name, def.URL, &c.Call, nil) {
		b.add(key, key+".url", def, &c.Call)
	}
}

// add makes a tool and adds it, or reports why that is not possible. key is the configuration key of the tool, and address that of its URL.
func (b *HTTPTools) add(key, address string, def *httptool.Definition, c *config.HTTPCall) {
	client, err := b.client(def.URL)
	if err != nil {
		b.report(address, err)
		return
	}
	fixed, _, _ := strings.Cut(def.URL, "{") // the part before the first placeholder
	if u, err := url.Parse(fixed); err == nil {
		def.Backend = u.Host
	}
	opts := &httptool.Options{MaxAttempts: c.MaxAttempts}
	if def.OAuth {
		source, _, _ := strings.Cut(def.Origin, "#")
		_, name, _ := strings.Cut(source, ":")
		tokens := b.logins[source]
		client, opts.Tokens, opts.LoginCommand = client.With(tokens.Transport), tokens.Secrets, LoginCommand(name)
		b.byTool[def.Name] = source
	}
	def.Timeout, def.CacheTTL, def.Concurrency, def.Rate = c.Timeout, c.CacheTTL, c.Concurrency, c.Rate
	t, err := httptool.New(def, client, opts)
	if err == nil {
		_, err = tool.NewSet(t)
	}
	var field *httptool.FieldError
	switch {
	case errors.As(err, &field):
		b.report(key+"."+field.Field, field.Err)
	case err != nil:
		b.report(key, Cause(err))
	default:
		b.tools, b.keys = append(b.tools, t), append(b.keys, key)
	}
}

// addDocument adds the operations that an entry of tools.openapi selects.
func (b *HTTPTools) addDocument(name string, c *config.OpenAPI) {
	key := "tools.openapi." + name
	doc, part, err := documentOf(c)
	if err != nil {
		b.report(key+part, err)
		return
	}
	defs, err := b.operations(name, c, doc)
	switch {
	case err != nil && c.Server.IsZero():
		b.report(key+".server", err)
		return
	case err != nil:
		b.reportImport(key, err)
		return
	}
	var scopes []string
	for _, def := range defs {
		scopes = append(scopes, def.Scopes...)
	}
	if !b.addLogin("openapi", name, c.Server.Reveal(), &c.Call, scopes) {
		return
	}
	for _, def := range defs {
		for _, what := range def.Warnings() {
			b.notesOf(name).Warnings = append(b.notesOf(name).Warnings, def.Name+": "+what)
		}
		before := len(b.problems)
		b.add(key, key+".server", def, &c.Call)
		added := b.problems[before:]
		for i := range added { // the key is that of the document: the message names the tool
			added[i].Message = def.Name + ": " + added[i].Message
		}
	}
}

// documentOf reads the document of an entry of tools.openapi. With an error it returns the part of the entry that must be corrected.
func documentOf(c *config.OpenAPI) (doc []byte, part string, err error) {
	if c.File == "" {
		return nil, ".file", errors.New("is missing: the OpenAPI document")
	}
	if len(c.Call.Allowlist) == 0 && len(c.Allowlists) == 0 {
		return nil, ".allowlist", errors.New(`is missing: name the fields of the answers that the model may see (["*"] for all)`)
	}
	if doc, err = ReadDocument(c.Path); err != nil {
		return nil, ".file", err
	}
	if sum := DocumentSum(doc); c.SHA256 != "" && c.SHA256 != sum {
		return nil, ".sha256", fmt.Errorf("the document is another one: %s; look at what has changed, then write this in", sum)
	}
	return doc, "", nil
}

// operations returns the operations of a document that its entry selects.
func (b *HTTPTools) operations(name string, c *config.OpenAPI, doc []byte) ([]*httptool.Definition, error) {
	read, err := b.documents.read(doc)
	if err != nil {
		return nil, err
	}
	return read.Import(&httptool.ImportOptions{Source: name, Server: c.Server.Reveal(), Operations: c.Operations, Tags: c.Tags, Exclude: c.Exclude, Prefix: c.Prefix, Rename: c.Rename, Allowlist: c.Call.Allowlist,
		Allowlists: c.Allowlists, Effects: c.Effects, Security: secretsOf(c.Security), Credentials: credentials(&c.Call), OAuth: c.Call.OAuth.IsSet(),
		OnLeftOut: func(e *httptool.OperationError) {
			b.notesOf(name).LeftOut = append(b.notesOf(name).LeftOut, e.Error())
		}})
}

// DocumentSum returns the SHA-256 of an OpenAPI document in hexadecimal, as tools.openapi.NAME.sha256 has it.
func DocumentSum(doc []byte) string {
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// reportImport reports each error of a document with the key at which it can be corrected.
func (b *HTTPTools) reportImport(key string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			b.reportImport(key, one)
		}
		return
	}
	part := ".file"
	if op := (*httptool.OperationError)(nil); errors.As(err, &op) {
		part = ".operations"
	}
	b.report(key+part, err)
}

// ReadDocument reads the file of an OpenAPI document, which must have at most [httptool.MaxDocumentBytes].
func ReadDocument(path string) ([]byte, error) {
	b, err := regular.Read(path, httptool.MaxDocumentBytes)
	if err == nil && len(b) > httptool.MaxDocumentBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, httptool.MaxDocumentBytes)
	}
	return b, err
}

// checkNames reports names that several tools have.
func (b *HTTPTools) checkNames() {
	if len(b.tools) == 0 {
		return
	}
	names, byName, err := builtinTools(b.cfg)
	if err != nil {
		b.report("tools.builtin", err)
		return
	}
	taken := map[string]string{}
	for _, n := range names {
		if t := byName[n]; t != nil {
			taken[n] = t.Spec().Origin
		}
	}
	for i, t := range b.tools {
		sp := t.Spec()
		if server, _, ok := b.cfg.Tools.MCPTool(sp.Name); ok {
			b.report(b.keys[i], fmt.Errorf("the name %s is one for tools of mcp:%s: the other tool is from %s", sp.Name, server, sp.Origin))
			continue
		}
		if first, ok := taken[sp.Name]; ok {
			b.report(b.keys[i], fmt.Errorf("the name %s is taken: one tool is from %s, the other from %s", sp.Name, first, sp.Origin))
			continue
		}
		taken[sp.Name] = sp.Origin
	}
}

// credentials returns the headers, query parameters and cookies that a tool adds to the arguments of a model.
func credentials(c *config.HTTPCall) httptool.Credentials {
	out := httptool.Credentials{Headers: secretsOf(c.Headers), Query: secretsOf(c.Query), Cookies: secretsOf(c.Cookies)}
	if !c.Bearer.IsZero() {
		out.Headers["Authorization"] = httptool.Bearer(c.Bearer.Secret())
	}
	if !c.Basic.IsZero() {
		out.Headers["Authorization"] = httptool.Basic(c.Basic.Secret())
	}
	return out
}

func secretsOf(refs map[string]config.Ref) map[string]secret.Secret {
	out := map[string]secret.Secret{}
	for name, r := range refs {
		out[name] = r.Secret()
	}
	return out
}
