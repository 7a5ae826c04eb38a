package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/sim"
)

func simCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "List or serve the simulated models",
		Long: `The simulated model: no weights, no network, deterministic. Its models are named sim/… everywhere; with
+DIALECT after the name, such as sim/demo+hermes, they write their calls as text.`,
	}
	cmd.AddCommand(simServeCommand(), simListCommand())
	return cmd
}

func simServeCommand() *cobra.Command {
	var f struct {
		Addr string `flag:"addr" default:"127.0.0.1:8123" usage:"*address* to listen on; port 0 picks a free one"`
		scriptFlags
	}
	return withFlags(&cobra.Command{
		Use:   "serve",
		Short: "Serve the simulated model on four wires",
		Long: `Serves the simulated model with chat completions and responses of OpenAI, messages of Anthropic and generateContent of
Google, streamed or not. The base URL is http://ADDRESS/v1, http://ADDRESS for clients of Anthropic, and
http://ADDRESS/v1beta for clients of Google. No key is checked.`,
		Example: `  lathe sim serve --addr 127.0.0.1:8123
  lathe run --base-url http://127.0.0.1:8123/v1 --model sim/demo "What is 7 + 35?"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := app.SimOptions(config.Default(), f.Script, f.Replay)
			if err != nil {
				return err
			}
			opts.Now = time.Now
			return serveUntilDone(cmd, f.Addr, "the simulated model listens on http://%s/v1 (stop with Ctrl-C)\n",
				&http.Server{Handler: sim.New(opts).Handler(), ReadHeaderTimeout: 10 * time.Second}, func() {})
		},
	}, &f)
}

// simFlags have scriptFlags as a group of flags.
type simFlags struct {
	Sim scriptFlags `group:"Simulated model:"`
}

// scriptFlags select what the model sim/script plays.
type scriptFlags struct {
	Script string `flag:"script" usage:"*file* of turns that the model sim/script plays"`
	Replay string `flag:"replay" usage:"*file* of a run recorded with --json that the model sim/script plays again"`
}

// serveUntilDone serves at the address of --addr until the command is interrupted, then calls stop and waits up to 2 s for requests to finish.
// It prints message, a format with a verb for the address, when it listens, and "stopped" at the end.
func serveUntilDone(cmd *cobra.Command, addr, message string, srv *http.Server, stop func()) error {
	ctx := cmd.Context()
	ln, err := daemon.Listen(ctx, addr, "--addr")
	if err != nil {
		return err
	}
	cmd.PrintErrf(message, ln.Addr())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // interrupts requests that have not finished in time
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	cmd.PrintErrln("stopped")
	return nil
}

func simListCommand() *cobra.Command {
	var f struct {
		JSON bool `flag:"json" usage:"one JSON line for each model"`
	}
	return withFlags(&cobra.Command{
		Use:   "list",
		Short: "List the simulated models",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows := simModels()
			if f.JSON {
				return writeLines(cmd, rows...)
			}
			var t report.Table
			for _, r := range rows {
				does := r.Does
				if len(r.Wires) > 0 {
					does += " (" + strings.Join(r.Wires, ", ") + ")"
				}
				t.Row(r.Model, does)
			}
			return t.Write(cmd.OutOrStdout())
		},
	}, &f)
}

// A simRow is one line of `sim list --json`.
type simRow struct {
	Model string   `json:"model"`
	Does  string   `json:"does"`
	Wires []string `json:"wires,omitempty"` // in the form of models.NAME.wire; nil: all
}

// wireNames lists the protocols as named in the configuration.
const wireNames = "openai, responses, anthropic, gemini"

// wireWords maps protocols to their names in the configuration.
var wireWords = map[lathe.Wire]string{lathe.WireOpenAIChat: "openai", lathe.WireResponses: "responses", lathe.WireMessages: "anthropic", lathe.WireGemini: "gemini"}

func simModels() []simRow {
	rows := []simRow{
		{sim.DemoModel, "picks tools, fills their arguments from the prompt, answers from the results", nil},
		{"sim/slow", "the same with a pause between tokens", nil},
		{"sim/script", "plays the turns of --script or the recorded run of --replay", nil},
		{sim.ThinkingModel, "thinks before it answers, and signs its reasoning where the wire has signatures", nil},
		{sim.EvalModel, "does what the prompts of evaluations ask for", nil},
	}
	for _, m := range sim.Misbehaviours() {
		rows = append(rows, simRow{Model: sim.EvalModel + "-" + m.Name, Does: m.Does})
	}
	rows = append(rows, simRow{sim.ObedientModel, "does whatever any text tells it, a tool's result and description too", nil},
		simRow{sim.CarefulModel, "does what its users tell it, and takes all other text for data", nil})
	for _, f := range sim.Faults() {
		row := simRow{Model: "sim/fault-" + f.Name, Does: f.Does}
		for _, w := range f.Wires {
			row.Wires = append(row.Wires, wireWords[w])
		}
		rows = append(rows, row)
	}
	return rows
}

func isSimulated(model string) bool { return strings.HasPrefix(model, "sim/") }
