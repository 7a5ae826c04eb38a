package oidc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lathe-run/lathe/internal/oidc"
	"github.com/lathe-run/lathe/internal/oidc/oidctest"
)

// A slowIssuer is an issuer without a network, whose answers can be held.
type slowIssuer struct {
	t       *testing.T
	id      string
	private *ecdsa.PrivateKey
	hangs   bool
	fetches atomic.Int64
}

func newSlowIssuer(t *testing.T) (*slowIssuer, *oidc.Provider) {
	t.Helper()
	i := &slowIssuer{t: t}
	i.rotate("first")
	p, err := oidc.New(&oidc.Options{Issuer: "https://id.example", Audience: []string{"lathe"}, KeysURL: "https://id.example/keys", Client: &http.Client{Transport: i}})
	if err != nil {
		t.Fatal(err)
	}
	return i, p
}

func (i *slowIssuer) rotate(id string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.id, i.private = id, private
}

// RoundTrip implements [http.RoundTripper].
func (i *slowIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.fetches.Add(1)
	if i.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	b, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.private.Public(), KeyID: i.id, Algorithm: string(jose.ES256), Use: "sig"}}})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(b))), Request: r}, nil
}

func (i *slowIssuer) token() string {
	return oidctest.SignWith(i.t, jose.ES256, i.private, i.id, map[string]any{"iss": "https://id.example", "aud": "lathe", "sub": "ann", "exp": time.Now().Add(48 * time.Hour).Unix()})
}

// Old keys are fetched again in the background: while the issuer hangs, no caller waits.
func TestOldKeysAreFetchedInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i, p := newSlowIssuer(t)
		defer p.Close()
		verify := func(when, token string, want oidc.Kind) {
			t.Helper()
			at := time.Now()
			if _, err := p.Verify(t.Context(), token); oidc.KindOf(err) != want || time.Since(at) != 0 {
				t.Errorf("%s: %v after %s, want %q at once", when, err, time.Since(at), want)
			}
		}
		first := i.token()
		verify("at first", first, "")
		time.Sleep(time.Hour)
		i.hangs = true
		for range 50 {
			verify("while the issuer hangs", first, "")
		}
		synctest.Wait()
		if n := i.fetches.Load(); n != 2 {
			t.Errorf("the keys were fetched %d times, want 2", n)
		}
		time.Sleep(11 * time.Second) // the fetch has failed
		verify("after a fetch that failed", first, "")
		synctest.Wait()
		if n := i.fetches.Load(); n != 2 {
			t.Errorf("within a minute the keys were fetched %d times, want 2", n)
		}
		i.hangs = false
		i.rotate("second")
		time.Sleep(time.Minute)
		verify("before the fetch", first, "")
		synctest.Wait()
		verify("a key that was removed", first, oidc.UnknownKey)
		verify("its successor", i.token(), "")
		if n := i.fetches.Load(); n != 3 {
			t.Errorf("the keys were fetched %d times, want 3", n)
		}
	})
}

// The requests that wait for keys are bounded, and each ends with its own context. Close ends the fetch.
func TestWaitersForKeysAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i, p := newSlowIssuer(t)
		i.hangs = true
		token := i.token()
		var all sync.WaitGroup
		var atOnce, late, gone atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		for n := range 300 {
			one := t.Context()
			if n%2 == 0 {
				one = ctx
			}
			all.Go(func() {
				_, err := p.Verify(one, token)
				switch {
				case oidc.KindOf(err) != oidc.Unavailable:
					t.Error(err)
				case errors.Is(err, context.Canceled):
					gone.Add(1)
				case time.Since(begun) == 0:
					atOnce.Add(1)
				default:
					late.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := atOnce.Load(); n != 300-256 {
			t.Errorf("%d were refused at once, want %d", n, 300-256)
		}
		cancel()
		synctest.Wait()
		if n := gone.Load(); n == 0 || time.Since(begun) != 0 {
			t.Errorf("%d ended with their context after %s", n, time.Since(begun))
		}
		all.Wait()
		if n := late.Load(); n != 256-gone.Load() || time.Since(begun) > 20*time.Second {
			t.Errorf("%d waited, for %s", n, time.Since(begun))
		}
		if n := i.fetches.Load(); n > 2 {
			t.Errorf("the keys were fetched %d times", n)
		}
		time.Sleep(time.Minute)
		at := time.Now()
		all.Go(func() {
			if _, err := p.Verify(t.Context(), token); oidc.KindOf(err) != oidc.Unavailable {
				t.Error(err)
			}
		})
		synctest.Wait()
		p.Close()
		all.Wait()
		if d := time.Since(at); d != 0 {
			t.Errorf("Close took %s", d)
		}
		before := i.fetches.Load()
		if _, err := p.Verify(t.Context(), token); oidc.KindOf(err) != oidc.Unavailable || i.fetches.Load() != before {
			t.Errorf("after Close: %v, %d fetches", err, i.fetches.Load()-before)
		}
	})
}

// A browser that leaves while the discovery document is fetched does not make the sign-ins of others fail.
func TestSignInOutlivesTheBrowserThatAskedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := &discoveryIssuer{}
		p := i.provider(t)
		defer p.Close()
		ctx, leave := context.WithCancel(t.Context())
		go p.AuthorizeURL(ctx, &oidc.Client{ID: "console"}, &oidc.Login{})
		synctest.Wait()
		leave()
		if _, err := p.AuthorizeURL(t.Context(), &oidc.Client{ID: "console"}, &oidc.Login{}); err != nil || i.fetches.Load() != 1 {
			t.Errorf("%v after %d fetches", err, i.fetches.Load())
		}
	})
}

// While the issuer hangs, one sign-in waits for it at a time, and the next 10 s of them get its error at once.
func TestSignInsDoNotWaitInARowForAHangingIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := &discoveryIssuer{hangs: true}
		p := i.provider(t)
		defer p.Close()
		began := time.Now()
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := p.AuthorizeURL(t.Context(), &oidc.Client{ID: "console"}, &oidc.Login{}); oidc.KindOf(err) != oidc.Unavailable {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != 10*time.Second || i.fetches.Load() != 1 {
			t.Errorf("it took %s and %d fetches", took, i.fetches.Load())
		}
	})
}

// A discoveryIssuer is an issuer without a network that answers with its discovery document after a second, or never.
type discoveryIssuer struct {
	hangs   bool
	fetches atomic.Int64
}

func (i *discoveryIssuer) provider(t *testing.T) *oidc.Provider {
	t.Helper()
	p, err := oidc.New(&oidc.Options{Issuer: "https://id.example", Audience: []string{"lathe"}, Client: &http.Client{Transport: i}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// RoundTrip implements [http.RoundTripper].
func (i *discoveryIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.fetches.Add(1)
	wait := time.Second
	if i.hangs {
		wait = time.Hour
	}
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	const document = `{"issuer":"https://id.example","authorization_endpoint":"https://id.example/authorize","token_endpoint":"https://id.example/token"}`
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(document)), Request: r}, nil
}
