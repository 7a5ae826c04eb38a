package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/startgc"
)

type serveFlags struct {
	// upstreamFlags select a model without lathe.yaml.
	upstreamFlags
	simFlags

	daemon daemon.Options
	engine string
	ready  bool // only check whether a gateway is ready
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the gateway: the APIs of OpenAI, Anthropic and Google, with tools",
		Long: `Starts the gateway: this process serves the configured models to clients of the APIs of OpenAI, Anthropic and
Google. It executes the tools of lathe.yaml within the request and returns calls to the client's own tools to the
client. Chat pages use /api/chat. / is the console: models, tools, a chat, runs and approvals.

Next: ` + "`lathe open`" + ` opens the console, ` + "`lathe connect`" + ` sets up a coding agent.

Without keys in lathe.yaml the gateway listens on loopback addresses only, and every program on this machine may use
it. Without a configured model the simulated one answers. Tools that only read are allowed, and calls to other tools
wait for an approval; policy.tools in lathe.yaml decides by name. Runs are kept in memory, unless a store is named.

SIGHUP, or POST /api/reload with an admin key, reads the configuration again: runs in progress keep the old one, and
a bad file changes nothing.
SIGTERM stops it after serve.drain_timeout, in which requests may finish.`,
		Example: `  lathe serve
  curl -s http://127.0.0.1:8700/v1/chat/completions -d '{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}'
  lathe serve --base-url http://127.0.0.1:11434/v1 --model qwen3
  lathe serve --store sqlite:runs.db --metrics-addr 127.0.0.1:9090
  lathe serve --ready --addr 127.0.0.1:8700`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.engine != "" {
				return usageError("--engine: this program executes runs itself; %s", app.InTemporal) // the URL may contain a password
			}
			if f.ready {
				return f.askReady(cmd)
			}
			return f.serve(cmd)
		},
	}
	fl := cmd.Flags()
	f.daemon.AddressFlags(fl)
	fl.BoolVar(&f.ready, "ready", false, "start nothing: print ready if /readyz at --addr reports it, else exit with 1")
	withFlags(cmd, &f)
	f.daemon.StoreFlag(fl)
	fl.StringVar(&f.engine, "engine", "", "`URL` of an engine that executes detached runs: temporal://HOST:PORT/NAMESPACE; only the program lathe-temporal accepts it")
	f.daemon.LogFlags(fl)
	return cmd
}

// serve runs the gateway until the command is interrupted.
func (f *serveFlags) serve(cmd *cobra.Command) error {
	v := currentVersion()
	path := configPath(cmd) // after the first load: the file that was read
	opts := f.daemon
	opts.Stderr, opts.Terminal = cmd.ErrOrStderr(), isTerminal(cmd.ErrOrStderr())
	opts.Find = func() (string, error) { return findConfig(path) }
	opts.Load = func(file string) (*config.Config, error) {
		cfg, err := f.loadConfig(cmd, file)
		if err == nil {
			path = file // a reload fails if this file has been removed
		}
		return cfg, err
	}
	opts.Starting = func(w io.Writer, cfg *config.Config) func() {
		line := startingServers(w, cfg, nil, showProgress)
		if line == nil {
			line = startProgress(w, showProgress)
			line.Say("starting the gateway")
		}
		return line.Stop
	}
	opts.Listening = startgc.Resume
	opts.App = app.Options{Version: v.Version, Revision: v.Revision, Aliases: f.aliases(), Script: f.Sim.Script, Replay: f.Sim.Replay}
	return daemon.Run(cmd.Context(), &opts)
}
