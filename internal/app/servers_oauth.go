package app

import (
	"net/http"
	"net/textproto"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// tokensFor returns the OAuth client for an MCP server, and the HTTP client that it uses. Both are nil for a server that is started as a
// program, whose headers contain Authorization, or whose URL is neither https nor on this machine.
func tokensFor(name string, cfg *config.Config) (*oauth.Client, *egress.Client, error) {
	c := cfg.Tools.MCP[name]
	conf := oauthConfig(name, c.URL.Reveal(), &c.OAuth)
	if c.URL.IsZero() || HasAuthorization(c.Headers) {
		return nil, nil, nil
	}
	if err := conf.Check(); err != nil {
		if c.OAuth.IsZero() {
			err = nil // no tokens are configured, and others could read them on the way to such an address
		}
		return nil, nil, err
	}
	return tokenClient(&conf, cfg)
}

// HasAuthorization reports whether headers contain Authorization, in any case. A source with this header needs no login.
func HasAuthorization(headers map[string]config.Ref) bool {
	for name := range headers {
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

// withTokens adds OAuth tokens to the requests to an MCP server, if tokens can be obtained for it.
func (s *Servers) withTokens(name string, cfg *config.Config, to *mcptool.Server) error {
	tokens, client, err := tokensFor(name, cfg)
	if err != nil || tokens == nil {
		return err
	}
	s.clients, s.tokens[name] = append(s.clients, client), tokens
	to.Client, to.Tokens = &http.Client{Transport: tokens.Transport(to.Client.Transport)}, tokens.Secrets
	return nil
}

// WantsRights reports whether a server that is ready has requested rights that no login has obtained yet.
func (s *Servers) WantsRights(st *mcptool.Status) bool {
	tokens := s.tokens[st.Server]
	if tokens == nil || st.State != mcptool.StateReady {
		return false
	}
	wanted, err := tokens.Wanted()
	return wanted && err == nil
}
