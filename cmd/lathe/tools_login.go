package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// toolsLoginCommand returns the command that logs in to a source of tools. forServers makes it a command of `lathe mcp` for MCP servers
// only.
func toolsLoginCommand() *cobra.Command {
	var f struct {
		Open  bool          `flag:"open" usage:"open the address in the browser of this machine"`
		Again bool          `flag:"again" usage:"log in whether or not the server asks for it"`
		Wait  time.Duration `flag:"wait" default:"5m" usage:"how long to wait for you"`
	}
	return withFlags(&cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an MCP server or HTTP API by OAuth",
		Long: `Logs in by OAuth to a configured MCP server, HTTP tool or OpenAPI document, by its name. Prints the address at which
you log in, waits until the browser returns to this machine, and stores the tokens in the file tools.tokens. They are
sent to that server only, and renewed without you as long as the authorization server permits. Tools of one origin with
equal oauth settings share their tokens.

If two have one name, write mcp:NAME, http:NAME or openapi:NAME. If a server later requires further rights,
` + "`lathe tools doctor`" + ` reports it, and the next login requests them.`,
		Example: `  lathe tools login search
  lathe tools login openapi:search --open --wait 2m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, l, err := loginTo(cmd, args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), f.Wait)
			defer cancel()
			if !f.Again {
				if needs, err := loginNeeded(ctx, cmd, cfg, l); err != nil || !needs {
					return err
				}
			}
			got, err := l.Obtain(ctx, func(address string) error {
				cmd.PrintErrf("log in to %s at this address within %s\n", l.Name, f.Wait)
				cmd.Println(address)
				if f.Open {
					return openBrowser(ctx, address)
				}
				return nil
			})
			if err != nil {
				return exit(exitUpstream, "%s: %s", l.Name, printable(err.Error()))
			}
			cmd.PrintErrln(granted(l.Name, got))
			return nil
		},
	}, &f)
}

func toolsLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Remove the stored tokens of an MCP server or HTTP API",
		Long: `Removes the tokens of an MCP server, an HTTP tool or an OpenAPI document, and Lathe's registration with its
authorization server, from the file tools.tokens. The authorization server accepts them until they expire or are
revoked there.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, l, err := loginTo(cmd, args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			if err := l.Forget(); err != nil {
				return err
			}
			cmd.PrintErrf("the tokens of %s are forgotten\n", l.Name)
			return nil
		},
	}
}

// forServers converts a command of `lathe tools` into a hidden command of `lathe mcp`, its earlier name.
func forServers(cmd *cobra.Command) *cobra.Command {
	verb, _, _ := strings.Cut(cmd.Use, " ")
	cmd.Use, cmd.Hidden, cmd.Example = verb+" SERVER", true, ""
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, []string{"mcp:" + args[0]}) }
	return cmd
}

// loginTo opens the login of a source of tools. The caller must close it.
func loginTo(cmd *cobra.Command, name string) (*config.Config, *app.Login, error) {
	cfg, err := configOf(cmd)
	if err != nil {
		return nil, nil, err
	}
	l, err := app.OpenLogin(cfg, name)
	return cfg, l, err
}

// notLoggedIn is the state of a tool whose server requires a login.
const notLoggedIn = "not logged in"

// loginState returns why a tool requires a login, and the next step; "" if it does not. l may be nil.
func loginState(l *app.Login) (state, next string) {
	if l == nil {
		return "", ""
	}
	switch ready, err := l.Ready(); {
	case err != nil:
		return notLoggedIn, err.Error()
	case !ready:
		return notLoggedIn, app.LoginCommand(l.Name)
	}
	return "", ""
}

// addLogins adds the missing logins to the problems of the row.
func (r *sourceRow) addLogins(logins []*app.Login) {
	for _, l := range logins {
		ready, err := l.Ready()
		wanted := false
		if err == nil {
			wanted, err = l.RightsWanted()
		}
		what := ""
		switch {
		case err != nil:
			what = err.Error()
		case !ready:
			what = "no login was made"
		case wanted:
			what = "the server has asked for further rights"
		default:
			continue
		}
		if r.OK && !ready {
			r.State = notLoggedIn
		}
		r.OK = false
		r.wrong(l.Kind+":"+l.Name+": "+what, app.LoginCommand(l.Name))
	}
}

// loginNeeded reports whether a login would obtain further rights or tokens.
func loginNeeded(ctx context.Context, cmd *cobra.Command, cfg *config.Config, l *app.Login) (bool, error) {
	if wanted, err := l.RightsWanted(); wanted || err != nil {
		return wanted, err
	}
	if l.Kind == "mcp" {
		return serverWantsLogin(ctx, cmd, cfg, l.Name)
	}
	ready, err := l.Ready()
	if ready {
		cmd.PrintErrf("%s needs no login; --again logs in all the same\n", l.Name)
	}
	return !ready, err
}

// serverWantsLogin starts an MCP server and reports whether it requires a login.
func serverWantsLogin(ctx context.Context, cmd *cobra.Command, cfg *config.Config, name string) (bool, error) {
	set, err := app.NewToolSet(cfg)
	if err != nil {
		return false, err
	}
	cfg.Tools.MCP[name].Required = false // a server that is not ready must not be an error here
	only := []string{name}
	starting := startingServers(cmd.ErrOrStderr(), cfg, only, showProgress)
	running, err := app.StartServers(ctx, cfg, set, &app.ServerOptions{Only: only})
	starting.Stop()
	if err != nil {
		return false, err
	}
	defer running.Close()
	st := running.Status()[0]
	switch {
	case st.Problem == mcptool.ProblemLogin:
		return true, nil
	case st.State == mcptool.StateReady:
		cmd.PrintErrf("%s asks for no login: it is ready, with %s; --again logs in all the same\n", name, count(len(st.Tools), "tool"))
		return false, nil
	}
	return false, exit(exitUpstream, "%s is not ready: %s; next: %s", name, printable(text.FirstLine(st.LastError)), nextStep(&st))
}

// granted describes the result of a login.
func granted(server string, g *app.Grant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "logged in to %s by %s", server, printable(g.Issuer))
	if len(g.Scopes) > 0 {
		fmt.Fprintf(&b, ", scopes %s", printable(strings.Join(g.Scopes, " ")))
	}
	switch {
	case g.Renews:
		b.WriteString(", renewed by itself")
	case !g.Expires.IsZero():
		fmt.Fprintf(&b, ", until %s", timeText(g.Expires))
	}
	return b.String()
}

// openBrowser opens a URL that the caller has checked. No shell is involved.
func openBrowser(ctx context.Context, address string) error {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if err := exec.CommandContext(ctx, program[0], append(program[1:], address)...).Run(); err != nil {
		return fmt.Errorf("the browser cannot be opened: leave --open out, and open the address yourself: %w", err)
	}
	return nil
}
