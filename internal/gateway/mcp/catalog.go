package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// A tenantCatalog is the resources and prompts that one tenant may see.
type tenantCatalog struct {
	*tenant
	// readables are the resources and prompts that the caller may see (*resource and *prompt), by the names that policies use. The lock of
	// the tenant guards them.
	readables map[string]any
}

// catalogCall returns a runnerCall for a resource or a prompt. The caller must call its run or its end.
func (t *tenantCatalog) catalogCall(session *mcp.ServerSession, protocol, name string, args []byte) *runnerCall {
	rc := newCall(t.tenant, session, protocol, name, args)
	set := t.s.offer.Load().set
	if set == nil || rc.settings.ToolUseMode == lathe.ModeDisabled {
		rc.refuse = lathe.CodeUnknownTool
	}
	rc.runner = rc.runner.Over(set)
	rc.settings.OversizeOutput = lathe.OversizeError
	return rc
}

// read reads a resource with the runner. It returns the protocol error for a resource that does not exist or that the caller may not see.
func (t *tenantCatalog) read(ctx context.Context, session *mcp.ServerSession, protocol string, token any, uri string) (*mcp.ResourceContents, error) {
	r, parts := t.s.offer.Load().find(uri)
	if r == nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	in := map[string]any{"uri": uri}
	if parts != nil {
		in["parts"] = parts
	}
	args, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	rc := t.catalogCall(session, protocol, r.spec.Name, args)
	rc.output = 6*r.MaxBytes + 4<<10 // as JSON, in which a byte may become six
	rc.client.set(ctx, session, token)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(rc.session.ctx, cancel)() // the end of the session ends its calls
	got := rc.run(ctx, transportOf(ctx))
	switch {
	case got.Code == lathe.CodeUnknownTool, got.Code == lathe.CodeInvalidArguments:
		return nil, mcp.ResourceNotFoundError(uri)
	case got.IsError:
		return nil, failed(&got)
	}
	var was reading
	if err := json.Unmarshal([]byte(got.Content), &was); err != nil {
		return nil, err
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: was.MediaType}
	switch {
	case was.Text != nil:
		c.Text = *was.Text
	case len(got.Blobs) > 0:
		c.Blob = got.Blobs[0].Data
	default: // the content was removed because it contains a secret
		return nil, notNow("the content may not be shown")
	}
	return c, nil
}

// readResource handles resources/read.
func (t *tenantCatalog) readResource(ctx context.Context, req mcp.Request) (mcp.Result, error) {
	r, ok := req.(*mcp.ReadResourceRequest)
	if !ok || r.Params == nil || r.Params.URI == "" {
		return nil, invalidParams("the request names no resource")
	}
	protocol := protocolOf(r.ProtocolVersion(), r.Params.Meta)
	c, err := t.read(ctx, r.Session, protocol, r.Params.GetProgressToken(), r.Params.URI)
	if err != nil {
		return nil, err
	}
	res := &mcp.ReadResourceResult{}
	if modernVersion(protocol) {
		if err := json.Unmarshal([]byte(`{"contents":[],"resultType":"complete"}`), res); err != nil { // resultType can only be decoded
			return nil, err
		}
	}
	res.Contents = []*mcp.ResourceContents{c}
	res.CacheScope = "private"
	return res, nil
}

// failed returns the JSON-RPC error of a runnerCall that failed. Its data is the error object of the runner.
func failed(r *lathe.ToolResult) error {
	e := &jsonrpc.Error{Code: codeBusy, Message: "the request was not carried out: " + string(r.Code)}
	switch r.Code {
	case lathe.CodeUnknownTool:
		return invalidParams("there is nothing of that name")
	case lathe.CodeInvalidArguments, lathe.CodeInvalidJSON, lathe.CodeArgumentsTooLarge:
		e.Code = jsonrpc.CodeInvalidParams
	}
	if rawjson.IsObject([]byte(r.Content), rawjson.Limits{}) {
		e.Data = json.RawMessage(r.Content)
	}
	return e
}

// readable returns the names of the catalog entries that the policy allows the caller now.
func (t *tenantCatalog) readable(runner *tool.Runner) map[string]bool {
	o := t.s.offer.Load()
	if o.empty() || runner.Settings().ToolUseMode == lathe.ModeDisabled {
		return nil
	}
	out := map[string]bool{}
	for _, spec := range specsOf(t.tenant, runner.Over(o.set)) {
		out[spec.Name] = true
	}
	return out
}

// syncCatalog updates readables, and the registrations in the SDK, to what the policy allows the caller now. The lock is held.
func (t *tenantCatalog) syncCatalog(runner *tool.Runner) {
	o, may := t.s.offer.Load(), t.readable(runner)
	next := map[string]any{}
	for name := range may {
		next[name] = o.byTool[name]
	}
	if maps.Equal(next, t.readables) {
		return
	}
	for name, item := range t.readables {
		if next[name] == item {
			continue
		}
		switch item := item.(type) {
		case *prompt:
			t.server.RemovePrompts(item.Name)
		case *resource:
			t.server.RemoveResources(item.URI)
			t.server.RemoveResourceTemplates(item.URI, item.URI+"{+path}")
		}
	}
	for name, item := range next {
		if t.readables[name] == item {
			continue
		}
		switch item := item.(type) {
		case *prompt:
			t.server.AddPrompt(item.definition(), t.getPrompt)
		case *resource:
			t.offerResource(item)
		}
	}
	t.readables = next
}

// offerResource registers a resource with the SDK, which notifies clients when it is added or removed. The handler of the registration is
// never called: requests that list or read resources are handled before they reach it.
func (t *tenantCatalog) offerResource(r *resource) {
	none := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	template := &mcp.ResourceTemplate{Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MediaType, URITemplate: r.URI}
	switch {
	case r.Files != nil:
		template.URITemplate += "{+path}"
		t.server.AddResourceTemplate(template, none)
	case r.fits != nil:
		t.server.AddResourceTemplate(template, none)
	default:
		t.server.AddResource(r.definition(), none)
	}
}

// definition returns the description of a single resource that clients receive.
func (r *resource) definition() *mcp.Resource {
	d := &mcp.Resource{Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MediaType, URI: r.URI}
	switch {
	case r.Data != nil:
		d.Size, d.MIMEType = int64(len(r.Data)), cmp.Or(r.MediaType, sniff(r.Data))
	case r.Read == nil:
		d.Size, d.MIMEType = int64(len(r.Text)), cmp.Or(r.MediaType, "text/plain")
	}
	return d
}

// offered returns the resources that the caller may see, ordered by URI.
func (t *tenantCatalog) offered() (out []*resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, item := range t.readables {
		if r, ok := item.(*resource); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *resource) int { return strings.Compare(a.URI, b.URI) })
	return out
}

// listResources handles resources/list: it lists single resources and the files of folders, one page at a time, ordered by URI.
func (t *tenantCatalog) listResources(p *mcp.ListResourcesParams) (mcp.Result, error) {
	var all []*mcp.Resource
	for _, r := range t.offered() {
		switch {
		case r.Files != nil:
			all = append(all, r.list()...)
		case r.fits == nil:
			all = append(all, r.definition())
		}
	}
	slices.SortStableFunc(all, func(a, b *mcp.Resource) int { return strings.Compare(a.URI, b.URI) })
	start := 0
	if p != nil && p.Cursor != "" {
		after, err := base64.RawURLEncoding.DecodeString(p.Cursor)
		if err != nil || len(p.Cursor) > 2*maxURI {
			return nil, invalidParams("no such cursor")
		}
		for start < len(all) && all[start].URI <= string(after) {
			start++
		}
	}
	res := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	res.CacheScope = "private" // what one caller may see must not be cached for others
	end := min(start+t.s.opts.PageSize, len(all))
	res.Resources = append(res.Resources, all[start:end]...)
	if end < len(all) {
		res.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(all[end-1].URI))
	}
	return res, nil
}
