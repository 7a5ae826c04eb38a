package main

import (
	"net/http"
	"net/textproto"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/egress"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// tokensFor returns the client that gets the tokens of an MCP server, and what it reaches others
// by; nil where none can be got: for a program, for a server whose configuration brings its
// credentials, and for one that is neither https nor on this machine.
func tokensFor(name string, cfg *config.Config) (*oauth.Client, *egress.Client, error) {
	c := cfg.Tools.MCP[name]
	conf := oauthConfig(name, c.URL.Reveal(), &c.OAuth)
	if c.URL.IsZero() || bringsCredentials(c.Headers) {
		return nil, nil, nil
	}
	if err := conf.Check(); err != nil && c.OAuth.IsZero() {
		return nil, nil, nil //nolint:nilerr // nobody asked for tokens, and what is sent to such an address is seen
	} else if err != nil {
		return nil, nil, err
	}
	return tokenClient(&conf, cfg)
}

// bringsCredentials reports whether the headers of a server say who asks.
func bringsCredentials(headers map[string]config.Ref) bool {
	for name := range headers {
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

// withTokens has requests of a server carry tokens.
func (s *servers) withTokens(name string, cfg *config.Config, to *mcptool.Server) error {
	tokens, client, err := tokensFor(name, cfg)
	if err != nil || tokens == nil {
		return err
	}
	s.clients, s.tokens[name] = append(s.clients, client), tokens
	to.Client, to.Tokens = &http.Client{Transport: tokens.Transport(to.Client.Transport)}, tokens.Secrets
	return nil
}

// wantsMore reports whether a server that is ready has asked for rights that no login brought yet.
func (s *servers) wantsMore(st *mcptool.Status) bool {
	tokens := s.tokens[st.Server]
	if tokens == nil || st.State != mcptool.StateReady {
		return false
	}
	wanted, err := tokens.Wanted()
	return wanted && err == nil
}
