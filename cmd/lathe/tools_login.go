package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// toolsLoginCommand logs in to what tools come from. Under `lathe mcp` it is of MCP servers alone.
func toolsLoginCommand() *cobra.Command {
	var open, again bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to the server of tools that wants it",
		Long: `Logs in by OAuth to what tools of the configuration come from: an MCP server, an HTTP tool or an OpenAPI document, by
its name. Prints the address at which you log in, waits until the browser comes back to this machine, and keeps the
tokens in the file tools.tokens. They are sent to that server alone, and renewed without you for as long as the
authorization server lets them be. Tools of one origin whose oauth says the same share their tokens.

Where two have one name, write mcp:NAME, http:NAME or openapi:NAME. A server that asks for further rights later says so
in ` + "`lathe tools doctor`" + `; the next login asks for them.`,
		Example: `  lathe tools login search
  lathe tools login openapi:search --open --wait 2m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loginTo(cmd, args[0])
			if err != nil {
				return err
			}
			defer l.close()
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			if !again {
				if needs, err := l.needed(ctx, cmd); err != nil || !needs {
					return err
				}
			}
			got, err := l.tokens.Login(ctx, func(address string) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "log in to %s at this address; it is waited for %s\n", l.name, wait)
				fmt.Fprintln(cmd.OutOrStdout(), address)
				if open {
					return openBrowser(ctx, address)
				}
				return nil
			})
			if err != nil {
				return &exitError{exitUpstream, fmt.Errorf("%s: %s", l.name, printable(err.Error()))}
			}
			fmt.Fprintln(cmd.ErrOrStderr(), granted(l.name, got))
			return nil
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the address in the browser of this machine")
	cmd.Flags().BoolVar(&again, "again", false, "log in whether or not the server asks for it")
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "how long to wait for you")
	return cmd
}

func toolsLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the tokens for the server of tools",
		Long: `Takes the tokens of an MCP server, an HTTP tool or an OpenAPI document, and Lathe's registration with its authorization
server, out of the file tools.tokens. At the authorization server they stay good until they expire, or are revoked there.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loginTo(cmd, args[0])
			if err != nil {
				return err
			}
			defer l.close()
			if err := l.tokens.Logout(); err != nil {
				return &exitError{exitFailed, err}
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the tokens of %s are forgotten\n", l.name)
			return nil
		},
	}
}

// forServers makes a command of `lathe tools` one of `lathe mcp`, as which it was known before.
func forServers(cmd *cobra.Command) *cobra.Command {
	verb, _, _ := strings.Cut(cmd.Use, " ")
	cmd.Use, cmd.Hidden, cmd.Example = verb+" SERVER", true, ""
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, []string{"mcp:" + args[0]}) }
	return cmd
}

// A login is what the tokens of one source of tools are got by.
type login struct {
	name   string // of the source
	kind   string // mcp, http, openapi
	cfg    *config.Config
	tokens *oauth.Client
	close  func()
}

// loginTo finds the source of a name. close must be called.
func loginTo(cmd *cobra.Command, name string) (*login, error) {
	cfg, err := loadConfig(configPath(cmd), nil)
	if err != nil {
		return nil, err
	}
	l := &login{cfg: cfg}
	if l.kind, l.name, err = sourceNamed(cfg, name); err != nil {
		return nil, err
	}
	if l.kind != "mcp" {
		b := newHTTPBuilder(cfg)
		b.addAll()
		l.tokens, l.close = b.logins[l.kind+":"+l.name], b.close
		if l.tokens == nil {
			b.close()
			return nil, usageError("tools.%s.%s has no oauth, which says how tokens are got", l.kind, l.name)
		}
		return l, nil
	}
	c := cfg.Tools.MCP[l.name]
	switch {
	case c.URL.IsZero():
		return nil, usageError("%s is a program: only servers with a url are logged in to", l.name)
	case bringsCredentials(c.Headers):
		return nil, usageError("%s has its credentials in tools.mcp.%s.headers: take Authorization out of them to log in", l.name, l.name)
	}
	tokens, client, err := tokensFor(l.name, cfg)
	if err == nil && tokens == nil {
		err = errors.New("its url is neither https nor on this machine: tokens would be seen on their way")
	}
	if err != nil {
		return nil, &exitError{exitConfig, fmt.Errorf("%s: %w", l.name, err)}
	}
	l.tokens, l.close = tokens, client.Close
	return l, nil
}

// sourceNamed finds what tools come from by its name, or by kind and name.
func sourceNamed(cfg *config.Config, name string) (kind, plain string, err error) {
	kind, plain, whole := strings.Cut(name, ":")
	if !whole {
		kind, plain = "", name
	}
	var found []string
	for _, one := range []struct {
		kind  string
		known bool
	}{{"mcp", cfg.Tools.MCP[plain] != nil}, {"http", cfg.Tools.HTTP[plain] != nil}, {"openapi", cfg.Tools.OpenAPI[plain] != nil}} {
		if one.known && (kind == "" || kind == one.kind) {
			found = append(found, one.kind)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], plain, nil
	case len(found) > 1:
		return "", "", usageError("%s is the name of several: write %s:%s", plain, strings.Join(found, ":"+plain+" or "), plain)
	case kind == "mcp":
		return "", "", usageError("no MCP server %q: `lathe tools doctor` names those of the configuration", plain)
	}
	return "", "", usageError("no MCP server, HTTP tool or OpenAPI document %q in the configuration: `lathe tools list` names what there is", plain)
}

// needed asks whether a login would bring something.
func (l *login) needed(ctx context.Context, cmd *cobra.Command) (bool, error) {
	if wanted, err := l.tokens.Wanted(); wanted || err != nil {
		return wanted, err
	}
	if l.kind == "mcp" {
		return l.serverWants(ctx, cmd)
	}
	ready, err := l.tokens.Ready()
	if ready {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s needs no login; --again logs in all the same\n", l.name)
	}
	return !ready, err
}

// serverWants asks an MCP server.
func (l *login) serverWants(ctx context.Context, cmd *cobra.Command) (bool, error) {
	set, err := buildTools(l.cfg)
	if err != nil {
		return false, err
	}
	l.cfg.Tools.MCP[l.name].Required = false // that it is not ready is what is asked about
	running, err := startServers(ctx, l.cfg, configPath(cmd), set, nil, []string{l.name})
	if err != nil {
		return false, err
	}
	defer running.close()
	st := running.status()[0]
	switch {
	case st.Problem == mcptool.ProblemLogin:
		return true, nil
	case st.State == mcptool.StateReady:
		fmt.Fprintf(cmd.ErrOrStderr(), "%s asks for no login: it is ready, with %s; --again logs in all the same\n", l.name, count(len(st.Tools), "tool"))
		return false, nil
	}
	return false, &exitError{exitUpstream, fmt.Errorf("%s is not ready: %s; next: %s", l.name, printable(firstLine(st.LastError)), nextStep(&st))}
}

// granted says what a login has brought.
func granted(server string, g *oauth.Granted) string {
	var b strings.Builder
	fmt.Fprintf(&b, "logged in to %s by %s", server, printable(g.Issuer))
	if len(g.Scopes) > 0 {
		fmt.Fprintf(&b, ", scopes %s", printable(strings.Join(g.Scopes, " ")))
	}
	switch {
	case g.Renews:
		b.WriteString(", renewed by itself")
	case !g.Expires.IsZero():
		fmt.Fprintf(&b, ", until %s", g.Expires.Local().Format(time.DateTime))
	}
	return b.String()
}

// openBrowser opens an address that was checked to be https or on this machine. No shell reads it.
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
