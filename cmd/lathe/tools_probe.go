package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

const (
	probeTimeout = 10 * time.Second
	maxProbes    = 8 // concurrent probes
	// expiresSoon is the remaining validity of a certificate below which it is reported.
	expiresSoon = 14 * 24 * time.Hour
)

// httpSources returns a row for each server of HTTP tools and documents, with its state. It sends HEAD / without credentials, and calls no
// tool.
func httpSources(ctx context.Context, b *app.HTTPTools) []sourceRow {
	origins := b.Origins()
	rows := make([]sourceRow, len(origins))
	places := make(chan struct{}, maxProbes)
	var wg sync.WaitGroup
	for i, o := range origins {
		rows[i] = sourceRow{Source: o.URL, Tools: o.Tools}
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			rows[i].probe(ctx, o.URL, o.Client, o.Key)
		})
	}
	wg.Wait()
	for i, o := range origins {
		rows[i].addLogins(o.Logins)
	}
	return rows
}

// probe sends HEAD / to a server and sets the state of its row.
func (r *sourceRow) probe(ctx context.Context, origin string, c *egress.Client, key string) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r.State = "unreachable"
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, origin+"/", nil)
	if err != nil {
		r.wrong("the address is not one", "look at "+key+".url")
		return
	}
	req.Header.Set("User-Agent", "lathe-doctor")
	resp, err := c.Do(req)
	if err != nil {
		switch code := egress.CodeOf(err); code {
		case egress.CodeRedirectLimit, egress.CodeRedirectRefused, egress.CodeHost:
			r.State, r.OK = "ready", true // the server has responded, with a redirect
		default:
			r.wrong(strings.TrimPrefix(err.Error(), "egress: "+string(code)+": "), probeNext(code, origin, key))
		}
		return
	}
	defer resp.Body.Close()
	r.State, r.Transport = "ready", fmt.Sprintf("HTTP %d", resp.StatusCode)
	if resp.TLS != nil {
		r.Protocol = "over " + tls.VersionName(resp.TLS.Version)
		if certs := resp.TLS.PeerCertificates; len(certs) > 0 {
			if left := time.Until(certs[0].NotAfter); left < expiresSoon {
				r.wrong(fmt.Sprintf("its certificate ends on %s", certs[0].NotAfter.UTC().Format(time.DateOnly)), "the operator of the server has to renew it")
			}
		}
	}
	if resp.StatusCode >= 500 {
		r.wrong(fmt.Sprintf("it answers %d", resp.StatusCode), "look whether the service behind it is up")
	}
	r.OK = len(r.Problems) == 0
}

func probeNext(code egress.Code, origin, key string) string {
	host := origin
	if u, err := url.Parse(origin); err == nil {
		host = u.Hostname()
	}
	switch code {
	case egress.CodeAddress:
		return "name it in tools.egress.private if it may be reached"
	case egress.CodeResolve:
		return "look at the host in " + key + ".url, and at the name server of this machine"
	case egress.CodeTLS:
		return "look with `openssl s_client -connect " + host + ":443`: the certificate has to be one that this machine trusts"
	case egress.CodeConnect, egress.CodeTimeout:
		return "see whether the server is up and this machine may reach it; proxies of the environment are not used"
	default:
		return "look at " + key + ".url"
	}
}

// documentSources returns a row for each OpenAPI document, with the operations that are offered and those that are not.
func documentSources(cfg *config.Config, set *tool.Set, notes map[string]*app.DocumentNotes) (rows []sourceRow) {
	for name, doc := range text.ByName(cfg.Tools.OpenAPI) {
		row := sourceRow{Source: "openapi:" + name, State: "ready", OK: true, Target: doc.File}
		for _, sp := range set.Specs() {
			if strings.HasPrefix(sp.Origin, "openapi:"+name+"#") {
				row.Tools++
			}
		}
		if doc, err := app.ReadDocument(doc.Path); err == nil {
			row.Software = "sha256 " + app.DocumentSum(doc)
		}
		if n := notes[name]; n != nil {
			row.LeftOut, row.Warnings = n.LeftOut, n.Warnings
		}
		rows = append(rows, row)
	}
	return rows
}

// moduleSources returns a row for each WebAssembly module, with its state.
func moduleSources(ctx context.Context, cfg *config.Config) (rows []sourceRow) {
	if cfg.Tools.WASM.Dir == "" {
		return nil
	}
	folder, err := app.OpenModules(cfg)
	if err != nil {
		row := sourceRow{Source: "wasm", State: "refused", Target: cfg.Tools.WASM.Dir}
		for _, one := range flatten(app.Cause(err)) {
			row.wrong(printable(text.FirstLine(one.Error())), "mend the manifest or the module, or take both out of "+cfg.Tools.WASM.Dir)
		}
		return []sourceRow{row}
	}
	defer func() { _ = folder.Close() }() // no call is in progress
	for _, t := range folder.List() {
		row := sourceRow{Source: "wasm:" + t.Spec().Name, State: "ready", OK: true, Tools: 1}
		if state, reason := moduleState(ctx, t); state != "ready" {
			row.State, row.OK, row.Tools = state, false, 0
			row.wrong(reason, "build the module again; docs/tools-wasm.md says what it has to export")
		}
		rows = append(rows, row)
	}
	return rows
}

// moduleState blocks until a module is compiled, and returns its state and, if it cannot be called, the reason.
func moduleState(ctx context.Context, t lathe.Tool) (state, reason string) {
	m, ok := t.(*wasmtool.Tool)
	if !ok {
		return "ready", ""
	}
	if err := m.Ready(ctx); err != nil {
		return "broken", printable(text.FirstLine(err.Error()))
	}
	return "ready", ""
}

// flatten returns the joined errors of err, at any depth.
func flatten(err error) []error {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return []error{err}
	}
	var out []error
	for _, one := range many.Unwrap() {
		out = append(out, flatten(one)...)
	}
	return out
}
