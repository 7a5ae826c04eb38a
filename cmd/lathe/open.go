package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
)

func openCommand() *cobra.Command {
	var f struct {
		Server  string `flag:"server" usage:"*URL* of the gateway (default $LATHE_SERVER, else http://127.0.0.1:8700)"`
		Store   string `flag:"store" usage:"find the gateway that uses this *store*: sqlite:PATH"`
		KeyFile string `flag:"key-file" usage:"*file* that holds a key of the gateway"`
		KeyEnv  string `flag:"key-env" usage:"*variable* of the environment that holds a key of the gateway (default LATHE_SERVER_KEY)"`
		Print   bool   `flag:"print" usage:"print the address, and open nothing"`
	}
	return withFlags(&cobra.Command{
		Use:   "open [flags]",
		Short: "Open the console of a running gateway in the browser",
		Long: `Opens the console of a running ` + "`lathe serve`" + ` in the browser: its chat, tools, runs and approvals. Without a display, and with
--print, it only prints the address. The gateway is that of --server or $` + serverVariable + `, the one that has the store of --store
open, or the one at ` + defaultServer + `.

With --key-file, --key-env or $` + serverKeyVariable + ` the address is a link that signs the browser in once, with the rights of the key; the
key is not in it. Otherwise the console asks for a key, if the gateway has keys.`,
		Example:           "  lathe open\n  lathe open --print --server http://10.0.3.7:8700",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server := serverFlags{serverFlag{f.Server}, f.KeyFile, f.KeyEnv}
			c, err := server.running(f.Store)
			if err != nil {
				return err
			}
			if err := c.ready(cmd.Context()); err != nil {
				return err
			}
			page, err := c.signInPage(cmd.Context())
			if err != nil {
				return err
			}
			if !f.Print && hasDisplay() && openBrowser(cmd.Context(), page) == nil {
				cmd.PrintErrf("note: opened %s/\n", c.base) // without the token of the link
				return nil
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), page)
			return err
		},
	}, &f)
}

// signInPage returns the URL of the console: a link that signs in once, if the client has a key and the gateway has keys.
func (c *daemonClient) signInPage(ctx context.Context) (string, error) {
	page := c.base + "/"
	if c.key == "" {
		return page, nil
	}
	var link struct {
		Fragment string `json:"fragment"`
	}
	err := c.call(ctx, http.MethodPost, "/api/session/links", nil, &link)
	var p *daemonProblem
	if errors.As(err, &p) && p.Code == "no_keys" {
		return page, nil
	}
	if err != nil {
		return "", err
	}
	return page + "#" + link.Fragment, nil
}

// running returns a client for the gateway that the flags name, or for the one at the default address.
func (f *serverFlags) running(store string) (*daemonClient, error) {
	c, err := f.clientIfNamed(store)
	if c != nil || err != nil {
		return c, err
	}
	if store == "" {
		return f.client(defaultServer)
	}
	kind, path, err := app.ParseStoreName(store, "--store")
	if err != nil {
		return nil, err
	}
	if kind != "sqlite" {
		return nil, usageError("--store %s: a gateway is found by the file of an SQLite store; give --server URL", kind)
	}
	if c, err = f.noted(path); errors.Is(err, fs.ErrNotExist) {
		return nil, failure("no running gateway has %s open; start `lathe serve --store %s`, or give --server URL", path, store)
	} else if err != nil {
		return nil, failure("no running gateway has %s open; start `lathe serve --store %s`, or give --server URL: %w", path, store, err)
	}
	return c, nil
}

// ready returns an error unless GET /livez answers 200. It sends no key.
func (c *daemonClient) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/livez", http.NoBody)
	if err != nil {
		return usageError("--server: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreached(ctx, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxReadyAnswer)) // only the status matters
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return failure("%s answered with the status %d: it is no running lathe serve; check --server", c.base, resp.StatusCode)
	}
	return nil
}

// hasDisplay reports whether a browser can probably show a page.
func hasDisplay() bool {
	return runtime.GOOS == "windows" || runtime.GOOS == "darwin" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}
