package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine/temporal"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// The environment variables with the credentials of this program for Temporal, named as in the programs of Temporal. Their values are never
// printed.
const (
	apiKeyVariable = "TEMPORAL_API_KEY"
	certVariable   = "TEMPORAL_TLS_CLIENT_CERT_PATH"
	keyVariable    = "TEMPORAL_TLS_CLIENT_KEY_PATH"
)

const (
	defaultQueue = temporal.TaskQueue
	dialTimeout  = 10 * time.Second
	engineForm   = "temporal://HOST:PORT/NAMESPACE"
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)

// A target is the parsed value of --engine: the address of the Temporal server, the namespace and the task queue.
type target struct {
	address, namespace, queue string
	tls                       bool
}

// parseEngine parses the value of --engine.
func parseEngine(text string) (*target, error) {
	if text == "" {
		return nil, usage("--engine is required: %s", engineForm)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "temporal" || u.User != nil || u.Fragment != "" {
		return nil, usage("--engine: want %s, without a user; a key is read from $%s", engineForm, apiKeyVariable)
	}
	t := &target{address: u.Host, namespace: strings.TrimPrefix(u.Path, "/"), queue: defaultQueue}
	if host, port, err := net.SplitHostPort(u.Host); err != nil || host == "" || port == "" {
		return nil, usage("--engine: %q is no host and port: want %s", u.Host, engineForm)
	}
	if !namePattern.MatchString(t.namespace) {
		return nil, usage("--engine: %q is no name of a namespace: want %s", t.namespace, engineForm)
	}
	query, err := url.ParseQuery(u.RawQuery) // u.Query ignores parameters that are not valid, such as "queue=a;tls=true"
	if err != nil {
		return nil, usage("--engine: the parameters cannot be read: want queue=NAME and tls=true, with & between them")
	}
	for name, values := range query {
		switch value := values[len(values)-1]; {
		case len(values) > 1:
			return nil, usage("--engine: %s is given twice", name)
		case name == "queue" && namePattern.MatchString(value):
			t.queue = value
		case name == "tls" && (value == "true" || value == "false"):
			t.tls = value == "true"
		case name == "queue", name == "tls":
			return nil, usage("--engine: %s=%q: want queue=NAME, and tls=true or false", name, value)
		default:
			return nil, usage("--engine: unknown parameter %q: there are queue and tls", name)
		}
	}
	return t, nil
}

// options returns the options of the Temporal client, with the credentials of the environment.
func (t *target) options(log *slog.Logger) (client.Options, error) {
	o := client.Options{HostPort: t.address, Namespace: t.namespace, Logger: sdklog.NewStructuredLogger(log)}
	cert, key := os.Getenv(certVariable), os.Getenv(keyVariable)
	if apiKey := os.Getenv(apiKeyVariable); apiKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(apiKey)
		t.tls = true
	}
	if (cert == "") != (key == "") {
		return o, usage("$%s and $%s go together", certVariable, keyVariable)
	}
	if !t.tls && cert == "" {
		return o, nil
	}
	o.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return o, lathe.CodeInvalidConfig.Errorf(app.Op, "$%s: %w", certVariable, err)
		}
		o.ConnectionOptions.TLS.Certificates = []tls.Certificate{pair}
	}
	return o, nil
}

// prepare connects to Temporal, and configures the application to execute detached runs there.
func (t *target) prepare(log *slog.Logger, opts *app.Options) (closeClient func(), err error) {
	o, err := t.options(log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, t.unreached(err)
	}
	opts.Executor = func(p *app.ExecutorParts) (app.Executor, error) {
		flow, err := temporal.NewWorkflow(nil, &temporal.Options{Engine: p.Engine, Store: p.Store, Approvals: p.Approvals, HoldLoop: p.Loop})
		if err != nil {
			return nil, err
		}
		return temporal.NewExecutor(c, flow, &temporal.ExecutorOptions{TaskQueue: t.queue, Log: p.Log})
	}
	opts.TemporalTool = t.newTool
	return c.Close, nil
}

// newTool returns a tool of the configuration section tools.temporal.
func (t *target) newTool(spec *lathe.ToolSpec, c *config.TemporalTool) (lathe.Tool, error) {
	if c.Queue == t.queue {
		return nil, lathe.CodeInvalidConfig.Errorf(app.Op, "the task queue %s is that of the runs, whose workers do not have the activity: name the one of its workers", c.Queue)
	}
	return temporal.NewQueueTool(spec, &temporal.QueueOptions{TaskQueue: c.Queue, Activity: c.Activity, Heartbeat: c.Heartbeat, Attempts: int32(c.MaxAttempts)})
}

// unreached returns the error for a server that cannot be reached.
func (t *target) unreached(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", dialTimeout)
	}
	return lathe.CodeUnavailable.Errorf(app.Op, "the Temporal server at %s: %w; check --engine, and that the server runs", t.address, err)
}
