package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/observe"
)

// TracesOptions are the options of [OpenTraces]. The zero value is usable.
type TracesOptions struct {
	Environ []string     // source of the OTEL_ variables, in the form of os.Environ; nil: the environment of the process
	Version string       // version in spans
	Log     *slog.Logger // nil: discards
	Lost    func(n int)  // see [observe.TracesOptions]
}

// OpenTraces returns a sink that sends spans to the collector in telemetry.otlp_endpoint, else to the collector in the OTEL_ variables. It
// returns nil if neither is set. The caller must call [CloseTraces].
func OpenTraces(cfg *config.Config, opts *TracesOptions) (*observe.Traces, error) {
	if opts == nil {
		opts = &TracesOptions{}
	}
	getenv := lookup(environOf(opts.Environ))
	from, endpoint := "telemetry.otlp_endpoint", cfg.Telemetry.OTLPEndpoint.Reveal()
	switch {
	case getenv("OTEL_SDK_DISABLED") == "true", getenv("OTEL_TRACES_EXPORTER") == "none":
		return nil, nil
	case endpoint != "":
		endpoint = tracesPath(endpoint)
	case getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "":
		from = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
		endpoint = getenv(from)
	case getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "":
		from = "OTEL_EXPORTER_OTLP_ENDPOINT"
		endpoint = tracesPath(getenv(from))
	default:
		return nil, nil
	}
	headers, err := otlpHeaders(getenv("OTEL_EXPORTER_OTLP_HEADERS"), getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"))
	if err != nil {
		return nil, configError(err)
	}
	queue, err := strconv.Atoi(cmp.Or(getenv("OTEL_BSP_MAX_QUEUE_SIZE"), "0"))
	if err != nil || queue < 0 {
		return nil, invalidConfig("OTEL_BSP_MAX_QUEUE_SIZE: want the number of spans that may wait, such as 2048")
	}
	baggage := observe.Baggage(cfg.Telemetry.Baggage)
	if baggage == "none" {
		baggage = ""
	}
	t, err := observe.NewTraces(&observe.TracesOptions{Endpoint: endpoint, Headers: headers, Service: getenv("OTEL_SERVICE_NAME"),
		Version: opts.Version, Content: cfg.Telemetry.Content, Queue: queue, Baggage: baggage, ContentURL: strings.TrimSuffix(cfg.Telemetry.ContentURL.Reveal(), "/"), Latest: conventions(getenv) != "", Lost: opts.Lost, Log: opts.Log})
	if err != nil {
		return nil, invalidConfig("%s: want the URL of a collector, such as http://127.0.0.1:4318", from)
	}
	return t, nil
}

// conventions returns the semantic conventions that OTEL_SEMCONV_STABILITY_OPT_IN selects. The variable is a list; members about other
// conventions are ignored.
func conventions(getenv func(string) string) (version observe.Conventions) {
	for member := range strings.SplitSeq(getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), ",") {
		switch strings.TrimSpace(member) {
		case "gen_ai_latest_experimental":
			version = observe.ConventionsLatest
		case "gen_ai_latest_experimental/dup":
			return observe.ConventionsBoth
		}
	}
	return version
}

// tracesPath returns the URL at which a collector receives spans.
func tracesPath(base string) string { return strings.TrimSuffix(base, "/") + "/v1/traces" }

// otlpHeaders parses texts of the form "name=value,name=value"; later texts have precedence.
func otlpHeaders(texts ...string) (map[string]string, error) {
	headers := map[string]string{}
	for _, text := range texts {
		for pair := range strings.SplitSeq(text, ",") {
			pair = strings.TrimSpace(pair)
			if pair == "" {
				continue
			}
			name, value, ok := strings.Cut(pair, "=")
			v, err := url.PathUnescape(strings.TrimSpace(value))
			if !ok || err != nil {
				return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: want name=value pairs, separated by commas")
			}
			headers[strings.TrimSpace(name)] = v
		}
	}
	return headers, nil
}

// tracesGrace limits how long CloseTraces waits for the collector.
const tracesGrace = 5 * time.Second

// CloseTraces closes t, and waits at most 5 s for its remaining spans to be sent.
func CloseTraces(ctx context.Context, t *observe.Traces, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesGrace)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the last spans were not sent", "error", err)
	}
}

// lookup returns a function that looks up names in an environment in the form of os.Environ.
func lookup(environ []string) func(name string) string {
	return func(name string) string {
		for _, pair := range slices.Backward(environ) {
			if key, value, ok := strings.Cut(pair, "="); ok && key == name {
				return value
			}
		}
		return ""
	}
}
