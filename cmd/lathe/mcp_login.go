package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/tool/mcptool"
)

func mcpLoginCommand() *cobra.Command {
	var open, again bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in to an MCP server that wants it",
		Long: `Logs in to an MCP server of the configuration by OAuth: prints the address at which you log in, waits until the
browser comes back to this machine, and keeps the tokens in the file tools.tokens. They are sent to that server
alone, and renewed without you for as long as the authorization server lets them be.

A server that asks for further rights later says so in ` + "`lathe tools doctor`" + `; the next login asks for them.`,
		Example: `  lathe mcp login search
  lathe mcp login search --open --wait 2m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tokens, cfg, closeAll, err := tokensOf(cmd, args[0])
			if err != nil {
				return err
			}
			defer closeAll()
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			if !again {
				if needs, err := needsLogin(ctx, cmd, tokens, cfg, args[0]); err != nil || !needs {
					return err
				}
			}
			got, err := tokens.Login(ctx, func(address string) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "log in to %s at this address; it is waited for %s\n", args[0], wait)
				fmt.Fprintln(cmd.OutOrStdout(), address)
				if open {
					return openBrowser(ctx, address)
				}
				return nil
			})
			if err != nil {
				return &exitError{exitUpstream, fmt.Errorf("%s: %s", args[0], printable(err.Error()))}
			}
			fmt.Fprintln(cmd.ErrOrStderr(), granted(args[0], got))
			return nil
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the address in the browser of this machine")
	cmd.Flags().BoolVar(&again, "again", false, "log in whether or not the server asks for it")
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "how long to wait for you")
	return cmd
}

func mcpLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout SERVER",
		Short: "Forget the tokens of an MCP server",
		Long: `Takes the tokens of an MCP server, and Lathe's registration with its authorization server, out of the file tools.tokens.
At the authorization server they stay good until they expire, or are revoked there.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tokens, _, closeAll, err := tokensOf(cmd, args[0])
			if err != nil {
				return err
			}
			defer closeAll()
			if err := tokens.Logout(); err != nil {
				return &exitError{exitFailed, err}
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the tokens of %s are forgotten\n", args[0])
			return nil
		},
	}
}

// tokensOf returns what gets the tokens of a server; closeAll must be called.
func tokensOf(cmd *cobra.Command, server string) (tokens *oauth.Client, cfg *config.Config, closeAll func(), err error) {
	if cfg, err = loadConfig(configPath(cmd), nil); err != nil {
		return nil, nil, nil, err
	}
	c := cfg.Tools.MCP[server]
	switch {
	case c == nil:
		return nil, nil, nil, usageError("no MCP server %q: `lathe tools doctor` names those of the configuration", server)
	case c.URL.IsZero():
		return nil, nil, nil, usageError("%s is a program: only servers with a url are logged in to", server)
	case bringsCredentials(c):
		return nil, nil, nil, usageError("%s has its credentials in tools.mcp.%s.headers: take Authorization out of them to log in", server, server)
	}
	tokens, client, err := tokensFor(server, cfg, filepath.Dir(configFile(configPath(cmd))))
	if err == nil && tokens == nil {
		err = errors.New("its url is neither https nor on this machine: tokens would be seen on their way")
	}
	if err != nil {
		return nil, nil, nil, &exitError{exitConfig, fmt.Errorf("%s: %w", server, err)}
	}
	return tokens, cfg, client.Close, nil
}

// needsLogin asks the server, unless it has asked for a login already.
func needsLogin(ctx context.Context, cmd *cobra.Command, tokens *oauth.Client, cfg *config.Config, server string) (bool, error) {
	if wanted, err := tokens.Wanted(); wanted || err != nil {
		return wanted, err
	}
	set, err := buildTools(cfg)
	if err != nil {
		return false, err
	}
	cfg.Tools.MCP[server].Required = false // that it is not ready is what is asked about
	running, err := startServers(ctx, cfg, configPath(cmd), set, nil, []string{server})
	if err != nil {
		return false, err
	}
	defer running.close()
	st := running.status()[0]
	switch {
	case st.Problem == mcptool.ProblemLogin:
		return true, nil
	case st.State == mcptool.StateReady:
		fmt.Fprintf(cmd.ErrOrStderr(), "%s asks for no login: it is ready, with %s; --again logs in all the same\n", server, count(len(st.Tools), "tool"))
		return false, nil
	}
	return false, &exitError{exitUpstream, fmt.Errorf("%s is not ready: %s; next: %s", server, printable(firstLine(st.LastError)), nextStep(&st))}
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
