package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/observe"
)

// openTraces returns the sink that sends spans to the collector which the configuration names, else
// the variables of OpenTelemetry; nil where none is named.
func openTraces(cfg *config.Config, log *slog.Logger) (*observe.Traces, error) {
	from, endpoint := "telemetry.otlp_endpoint", cfg.Telemetry.OTLPEndpoint.Reveal()
	switch {
	case os.Getenv("OTEL_SDK_DISABLED") == "true", os.Getenv("OTEL_TRACES_EXPORTER") == "none":
		return nil, nil
	case endpoint != "":
		endpoint = tracesPath(endpoint)
	case os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "":
		from = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
		endpoint = os.Getenv(from)
	case os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "":
		from = "OTEL_EXPORTER_OTLP_ENDPOINT"
		endpoint = tracesPath(os.Getenv(from))
	default:
		return nil, nil
	}
	headers, err := otlpHeaders(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"))
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	t, err := observe.NewTraces(&observe.TracesOptions{Endpoint: endpoint, Headers: headers, Service: os.Getenv("OTEL_SERVICE_NAME"),
		Version: currentVersion().Version, Content: cfg.Telemetry.Content, Log: log})
	if err != nil {
		return nil, &exitError{exitConfig, fmt.Errorf("%s: want the URL of a collector, such as http://127.0.0.1:4318", from)}
	}
	return t, nil
}

// tracesPath returns where a collector takes spans.
func tracesPath(base string) string { return strings.TrimSuffix(base, "/") + "/v1/traces" }

// otlpHeaders reads "name=value,name=value"; later texts win.
func otlpHeaders(texts ...string) (map[string]string, error) {
	headers := map[string]string{}
	for _, text := range texts {
		for _, pair := range strings.Split(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.TrimSpace(pair) == "" {
				continue
			}
			v, err := url.PathUnescape(strings.TrimSpace(value))
			if !ok || err != nil {
				return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: want name=value pairs, separated by commas")
			}
			headers[strings.TrimSpace(name)] = v
		}
	}
	return headers, nil
}

// tracesGrace is how long the end of a command waits for the collector.
const tracesGrace = 5 * time.Second

// closeTraces sends the spans that are left.
func closeTraces(ctx context.Context, t *observe.Traces, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesGrace)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the last spans were not sent", "error", err)
	}
}
