package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/sse"
)

// The commands of `lathe runs` use a store, or the API of a gateway that has the store open.

// Environment variables that name a gateway and its key if no flag does.
const (
	serverVariable    = "LATHE_SERVER"
	serverKeyVariable = "LATHE_SERVER_KEY"
)

// defaultServer is used if neither a store nor a gateway is named.
const defaultServer = "http://127.0.0.1:8700"

// Limits of responses and events of a gateway.
const (
	maxDaemonAnswer = 64 << 20
	maxDaemonEvent  = 16 << 20
	daemonTimeout   = 30 * time.Second // timeout of one request, except streams
)

// A serverFlag has the flag that names a gateway.
type serverFlag struct {
	URL string `flag:"server" usage:"ask the gateway at this *URL* in place of a store (default $LATHE_SERVER; without a store\nhttp://127.0.0.1:8700)"`
}

// serverFlags have the flags that name a gateway and its key.
type serverFlags struct {
	serverFlag
	KeyFile string `flag:"key-file" usage:"*file* that holds the key of the gateway"`
	KeyEnv  string `flag:"key-env" usage:"*variable* of the environment that holds the key of the gateway (default LATHE_SERVER_KEY)"`
}

// beside adds --server to a command whose flags --key-file and --key-env also apply to the gateway.
func (f *serverFlags) beside(cmd *cobra.Command) *cobra.Command {
	fl := withFlags(cmd, &f.serverFlag).Flags()
	fl.Lookup("key-file").Usage += ", or of the gateway"
	fl.Lookup("key-env").Usage += ", or of the gateway (default of that: " + serverKeyVariable + ")"
	return cmd
}

// key returns the key of the gateway, or "" if none is given.
func (f *serverFlags) key() (string, error) {
	switch {
	case f.KeyFile != "" && f.KeyEnv != "":
		return "", usageError("give one of --key-file and --key-env")
	case f.KeyFile != "":
		b, err := os.ReadFile(f.KeyFile)
		if err != nil {
			return "", usageError("--key-file: %w", err)
		}
		return strings.TrimSpace(string(b)), nil
	case f.KeyEnv != "":
		key := os.Getenv(f.KeyEnv)
		if key == "" {
			return "", usageError("--key-env: the variable %s is not set", f.KeyEnv)
		}
		return key, nil
	}
	return os.Getenv(serverKeyVariable), nil
}

// A daemonClient is a client of the API of a gateway.
type daemonClient struct {
	base string // without final slash
	flag string // flag that names the gateway on a command line, " --server URL"; "": not needed
	key  string
	// instead is the advice if no gateway responds and the user has named none; "": the user has named one.
	instead string
	http    *http.Client
}

func (f *serverFlags) client(base string) (*daemonClient, error) {
	if !isGatewayURL(base) {
		return nil, usageError("--server %q: want the address of a gateway, such as %s", base, defaultServer)
	}
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	base = withoutVersion(base)
	c := &daemonClient{base: base, key: key, http: directClient()}
	if base != defaultServer {
		c.flag = " --server " + base
	}
	return c, nil
}

// isGatewayURL reports whether the address can be that of a gateway: a URL of http or https without user and query.
func isGatewayURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// withoutVersion returns the address of a gateway without a final slash and without /v1.
func withoutVersion(address string) string {
	return strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/v1")
}

// A modelList is the answer of a server to GET /models.
type modelList struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
}

func (l *modelList) names() (names []string) {
	for _, m := range l.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names
}

// directClient returns a client that follows no redirects, so that a key is not sent to another address.
func directClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// jsonRequest returns a request with a key, unless key is "", and with a JSON body, unless body is nil.
func jsonRequest(ctx context.Context, method, address, key string, body any) (*http.Request, error) {
	var r io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// withoutAddress returns the cause of a request error without the URL, because the caller names it.
func withoutAddress(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// A daemonProblem is an error response of the API.
type daemonProblem struct {
	Status    int       `json:"status"`
	Code      string    `json:"code"`
	Detail    string    `json:"detail"`
	Decision  string    `json:"decision"`
	By        string    `json:"by"`
	DecidedAt time.Time `json:"decided_at"`
}

// Error implements error.
func (p *daemonProblem) Error() string {
	detail := strings.TrimSuffix(printable(p.Detail), ".")
	if detail == "" {
		return fmt.Sprintf("the gateway answered HTTP %d", p.Status)
	}
	_, first := utf8.DecodeRuneInString(detail)
	return strings.ToLower(detail[:first]) + detail[first:]
}

// do makes a request and returns the response. The caller must close its body.
func (c *daemonClient) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := jsonRequest(ctx, method, c.base+path, c.key, body)
	if err != nil {
		return nil, usageError("--server: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	p := &daemonProblem{}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // a missing part is not shown
	if json.Unmarshal(b, p) != nil || p.Code == "" {
		p = &daemonProblem{Status: resp.StatusCode}
	}
	return nil, c.refused(resp.StatusCode, path, p)
}

// refused returns an error with advice for an error response to a request for path.
func (c *daemonClient) refused(status int, path string, p *daemonProblem) error {
	notFound := status == http.StatusNotFound
	switch {
	case status == http.StatusUnauthorized && c.key == "":
		return usageError("the gateway at %s wants a key: give --key-env NAME or --key-file PATH, or set %s", c.base, serverKeyVariable)
	case status == http.StatusUnauthorized:
		return usageError("the gateway at %s does not know the key: check --key-env, --key-file or %s", c.base, serverKeyVariable)
	case notFound && p.Code == "run_not_found":
		return failure("%w; `lathe runs list%s` shows them", p, c.flag)
	case notFound && p.Code != "no_store" && p.Code != "call_not_found": // the path is unknown
		return c.foreign(p)
	case p.Code == "" && strings.HasPrefix(path, "/api/"): // errors under /v1 have another form
		return c.foreign(p)
	}
	return &exitError{exitFailed, p}
}

// foreign returns an error with advice for a response of another program or another version of the gateway.
func (c *daemonClient) foreign(err error) error {
	err = fmt.Errorf("%s does not answer like this version of lathe serve: %w", c.base, err)
	if c.instead != "" {
		return usageError("%s; %w", c.instead, err)
	}
	return failure("%w; --server (or %s) must be the address that `lathe serve` says at its start, and its version that of `lathe version`", err, serverVariable)
}

// unreached returns an error with advice if no gateway responds.
func (c *daemonClient) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	err = withoutAddress(err)
	if c.instead != "" {
		return usageError("%s; no gateway answers at %s: %w", c.instead, c.base, err)
	}
	advice := "; is `lathe serve` running there?"
	if !errors.Is(err, syscall.ECONNREFUSED) {
		advice = ""
	}
	return failure("the gateway at %s cannot be reached: %w%s", c.base, err, advice)
}

// call makes a request and decodes the JSON response into out. If out is nil, the response is ignored.
func (c *daemonClient) call(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxDaemonAnswer+1))
	if err == nil && len(b) > maxDaemonAnswer {
		err = fmt.Errorf("the answer is larger than %d bytes", maxDaemonAnswer)
	}
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		return c.foreign(err)
	}
	return nil
}

// Values of the parameter follow of the events of a run.
const (
	followNot   = "false" // the events that are stored
	followPause = "pause" // also further events, until the run is suspended or has ended
)

// events calls f for the events of a run with ids above after.
func (c *daemonClient) events(ctx context.Context, runID string, after int64, follow string, f func(e *event.Event) error) error {
	resp, err := c.do(ctx, http.MethodGet, fmt.Sprintf("/api/runs/%s/events?follow=%s&after=%d", url.PathEscape(runID), follow, after), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if t := resp.Header.Get("Content-Type"); !strings.HasPrefix(t, "text/event-stream") {
		return c.foreign(fmt.Errorf("it answered with %.80q in place of events", t))
	}
	r := sse.NewReader(resp.Body, &sse.Options{MaxLine: maxDaemonEvent, MaxEvent: maxDaemonEvent})
	for {
		frame, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return errInterrupted
		case err != nil:
			return failure("the events of the gateway at %s cannot be read: %w", c.base, err)
		}
		if frame.Type == "server_draining" { // the gateway stops and ends the stream
			continue
		}
		var e event.Event
		if err := json.Unmarshal(frame.Data, &e); err != nil {
			return failure("an event of the gateway at %s cannot be read: %w", c.base, err)
		}
		if err := f(&e); err != nil {
			return err
		}
	}
}
