package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// discoveryPath is the path of the discovery document below the issuer.
const discoveryPath = "/.well-known/openid-configuration"

// Metadata has the members of a discovery document that are used.
type Metadata struct {
	KeysURL      string
	AuthorizeURL string
	TokenURL     string
}

// Discover fetches the discovery document of the issuer. It checks the URLs in the document like that of the issuer; each may be missing.
func (p *Provider) Discover(ctx context.Context) (*Metadata, error) {
	var doc map[string]json.RawMessage
	if err := p.get(ctx, strings.TrimSuffix(p.opts.Issuer, "/")+discoveryPath, &doc); err != nil {
		return nil, err
	}
	if rawjson.Text(doc["issuer"]) != p.opts.Issuer {
		return nil, errors.New("the discovery document is that of another issuer")
	}
	m := &Metadata{KeysURL: rawjson.Text(doc["jwks_uri"]), AuthorizeURL: rawjson.Text(doc["authorization_endpoint"]), TokenURL: rawjson.Text(doc["token_endpoint"])}
	for name, s := range map[string]string{"jwks_uri": m.KeysURL, "authorization_endpoint": m.AuthorizeURL, "token_endpoint": m.TokenURL} {
		if s == "" {
			continue
		}
		u, err := checkURL(s)
		if err != nil {
			return nil, fmt.Errorf("%s of the discovery document %w", name, err)
		}
		if issuer, _ := url.Parse(p.opts.Issuer); httpname.IsLoopback(u.Hostname()) && !httpname.IsLoopback(issuer.Hostname()) {
			return nil, fmt.Errorf("%s of the discovery document is on this machine, and the issuer is not", name)
		}
	}
	return m, nil
}

// fetch returns the published keys of the issuer that fit the accepted algorithms.
func (p *Provider) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	address := p.opts.KeysURL
	if address == "" {
		m, err := p.Discover(ctx)
		if err != nil {
			return nil, err
		}
		if address = m.KeysURL; address == "" {
			return nil, errors.New("the discovery document has no jwks_uri")
		}
	}
	var doc map[string]json.RawMessage
	if err := p.get(ctx, address, &doc); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(doc["keys"], &all); err != nil {
		return nil, errors.New("the issuer's keys are not a JWKS")
	}
	if len(all) > maxKeys {
		return nil, fmt.Errorf("the issuer has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range all {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) == nil && k.Valid() && slices.ContainsFunc(p.algorithms, func(a jose.SignatureAlgorithm) bool { return fits(&k, a) }) {
			keys = append(keys, k) // other keys cannot verify accepted tokens
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the issuer publishes no key for %s", strings.Join(p.opts.Algorithms, ", "))
	}
	return keys, nil
}

// get fetches a JSON document and decodes it into v. Its errors contain nothing of the document.
func (p *Provider) get(ctx context.Context, address string, v any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	return p.do(r, v)
}

// do sends a request and decodes the JSON document in the response into v, as get does.
func (p *Provider) do(r *http.Request, v any) error {
	address := r.URL.String()
	res, err := p.opts.Client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &statusError{address, res.StatusCode}
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", address, err)
	case len(b) > maxDocument:
		return fmt.Errorf("%s is larger than %d bytes", address, maxDocument)
	case checkJSON(b, v) != nil:
		return fmt.Errorf("%s is not a JSON object", address)
	}
	return nil
}
