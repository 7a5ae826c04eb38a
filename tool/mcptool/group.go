package mcptool

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/text"
)

// A Group connects to MCP servers, offers their tools, and reconnects to servers that have ended. A call of a tool waits at most 5 s for a
// server that is being started. It ends with the code unavailable if the server cannot be reached, and with timeout if the server sends no
// progress for IdleTimeout. It ends with interrupted if the connection was lost, the tool writes, and the server may have executed the
// call. The methods of a Group may be called from several goroutines at once.
type Group struct {
	opts    Options
	servers []*supervisor // in the order of Start
	stop    context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	publishing sync.Mutex // locked while OnChange is called
	mu         sync.Mutex
	refused    map[string]string // by server: the error of OnChange for its tools
}

// Start connects to all servers concurrently. It returns when each server is ready or its first attempts have failed. The group then
// retries the failed servers in the background; the caller must call Close. ctx limits only the start.
//
// Start returns an error, and leaves no process running, if the configuration of a server is not valid, two servers have the same name,
// OnChange returns an error, a required server is not ready, or ctx is done first. With [Options].Inspect, an error of OnChange and a
// required server that is not ready are not errors of Start: [Group.Status] reports them. opts may be nil.
func Start(ctx context.Context, servers []Server, opts *Options) (*Group, error) {
	g := &Group{refused: map[string]string{}}
	if opts != nil {
		g.opts = *opts
	}
	if g.opts.Now == nil {
		g.opts.Now = time.Now
	}
	setDefault(&g.opts.StopGrace, time.Second)
	if g.opts.wait == nil {
		g.opts.wait = reconnect.Wait
	}
	seen := map[string]bool{}
	for i := range servers {
		conf := servers[i].withDefaults()
		err := conf.Check()
		if err == nil && seen[conf.Name] {
			err = errors.New("the name is taken by another server")
		}
		if err != nil {
			return nil, lathe.CodeInvalidConfig.Wrap("mcp: server "+conf.Name, err)
		}
		seen[conf.Name] = true
		g.servers = append(g.servers, newSupervisor(conf, &g.opts, g.changed))
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	for _, s := range g.servers {
		g.running.Go(func() { s.run(life) })
	}
	if err := g.started(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// started waits for the first attempts of all servers.
func (g *Group) started(ctx context.Context) error {
	for _, s := range g.servers {
		select {
		case <-s.first:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if g.opts.Inspect {
		return nil
	}
	var errs []error
	refused := 0
	for _, st := range g.Status() {
		if why := g.against(st.Server); why != "" {
			errs = append(errs, lathe.CodeInvalidConfig.Wrap("mcp: server "+st.Server, errors.New(why)))
			refused++
		} else if st.Required && st.State != StateReady {
			errs = append(errs, lathe.CodeUnavailable.Errorf("mcp: server "+st.Server, "it is required and is not ready: %s", st.LastError))
		}
	}
	if refused > 0 {
		errs = append(errs, errors.New("the servers have "+g.counts()+"; tools.mcp.NAME.tools names those that a server offers"))
	}
	return errors.Join(errs...)
}

// counts returns a text with the number of tools per server: "173 tools: browser 25, notes 9".
func (g *Group) counts() string {
	total, each := 0, make([]string, len(g.servers))
	for i, s := range g.servers {
		n := len(s.tools())
		total += n
		each[i] = fmt.Sprintf("%s %d", s.conf.Name, n)
	}
	return fmt.Sprintf("%d tools: %s", total, strings.Join(each, ", "))
}

// changed calls OnChange with the tools of a server.
func (g *Group) changed(s *supervisor) {
	if g.opts.OnChange == nil {
		return
	}
	g.publishing.Lock()
	defer g.publishing.Unlock()
	tools := []lathe.Tool{}
	for _, t := range text.ByName(s.tools()) {
		tools = append(tools, t)
	}
	err := g.opts.OnChange(s.conf.origin(), tools)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.refused, s.conf.Name)
	if err != nil {
		g.refused[s.conf.Name] = err.Error()
	}
}

func (g *Group) against(server string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused[server]
}

// Tools yields the tools that are offered now: the servers in the order of [Start], the tools of each sorted by name. It does not connect and
// does not block. It yields no errors; [Group.Status] reports the state of the servers.
func (g *Group) Tools(context.Context) iter.Seq2[lathe.Tool, error] {
	return func(yield func(lathe.Tool, error) bool) {
		for _, s := range g.servers {
			for _, t := range text.ByName(s.tools()) {
				if !yield(t, nil) {
					return
				}
			}
		}
	}
}

// Status returns the status of each server at this moment, in the order of [Start].
func (g *Group) Status() []Status {
	out := make([]Status, len(g.servers))
	for i, s := range g.servers {
		out[i] = s.Status()
		if why := g.against(s.conf.Name); why != "" {
			out[i].LastError, out[i].Problem = why, ProblemTools
		}
	}
	return out
}

// Reconnect requests a new connection to the server with this name, at once even if the group is pausing between two attempts. It does not
// wait for the connection. Calls in progress fail. The error has the code not_found if there is no such server.
func (g *Group) Reconnect(name string) error {
	for _, s := range g.servers {
		if s.conf.Name == name {
			select {
			case s.again <- struct{}{}:
			default: // a reconnection is already requested
			}
			return nil
		}
	}
	return lathe.CodeNotFound.Errorf("mcp: reconnect", "there is no server of that name")
}

// Close stops all servers and blocks until their processes have ended. Calls in progress fail. It may be called more than once and returns
// nil.
func (g *Group) Close() error {
	g.closing.Do(g.stop)
	g.running.Wait()
	return nil
}
