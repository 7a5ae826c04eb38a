package daemon

import "github.com/spf13/pflag"

// AddressFlags adds --addr and --metrics-addr.
func (o *Options) AddressFlags(fl *pflag.FlagSet) {
	fl.StringVar(&o.Addr, "addr", "", "`address` to listen on (default serve.addr: 127.0.0.1:8700); port 0 picks a free one")
	fl.StringVar(&o.MetricsAddr, "metrics-addr", "", "`address` that serves only /metrics, /livez and /readyz (default serve.metrics_addr)")
}

// StoreFlag adds --store.
func (o *Options) StoreFlag(fl *pflag.FlagSet) {
	fl.StringVar(&o.Store, "store", "", "keep runs in a `store`: memory, sqlite:PATH, postgres://USER@HOST/DATABASE, or none (default $"+StoreVariable+", else serve.store,\nelse memory)")
}

// LogFlags adds --log and --log-format.
func (o *Options) LogFlags(fl *pflag.FlagSet) {
	fl.StringVar(&o.LogLevel, "log", "info", "log to stderr from this `level` up: debug, info, warn, error")
	fl.StringVar(&o.LogFormat, "log-format", "text", "`format` of log lines: text or json")
}
