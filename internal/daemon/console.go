package daemon

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/httpname"
)

// listenConsole listens on serve.console.listen.
func (d *daemon) listenConsole(ctx context.Context, cfg *config.Config) (net.Listener, error) {
	if err := app.CheckAddr(cfg, cfg.Serve.Console.Listen); err != nil {
		return nil, misconfigured(err)
	}
	return Listen(ctx, cfg.Serve.Console.Listen, "serve.console.listen")
}

// announceConsole prints the address of the console. On a terminal of the machine that serves the console, it also prints a link that signs
// in as the first admin key. The link is not written to a log. host has the port, too.
func (d *daemon) announceConsole(cfg *config.Config, scheme, host string) {
	w, url := d.stderr, scheme+"://"+host
	fmt.Fprintf(w, "the console is %s/\n", url)
	if !d.opts.Terminal || !httpname.IsLoopback(host) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Keys)) {
		if !cfg.Keys[name].Admin {
			continue
		}
		if fragment, expires, err := d.app.SignInLink(name); err == nil {
			fmt.Fprintf(w, "sign in as %s, once, until %s: %s/#%s\n", name, expires.Local().Format("15:04"), url, fragment)
		}
		return
	}
}
