package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/gateway/admission"
	"github.com/lathe-run/lathe/internal/gateway/splice"
)

// A RouteRow is a row of the table of routes, for tests that make a request of each.
type RouteRow struct {
	Name, Method, Path                        string // Path has values in place of its wildcards
	Key, Worker, Cluster, Anyone              bool   // whose credential it requires
	Body, Message, StartsRun, Machines, Probe bool
	Pooled, Watcher                           bool
	Socket                                    bool // it opens WebSockets, each message of which is a request of its own
}

// Routes returns the table of the server's routes.
func (g *Server) Routes() []RouteRow {
	values := strings.NewReplacer("{id...}", "sim/demo", "{model...}", "sim/demo:generateContent", "{id}", "run_x", "{name}", "calculator", "{call}", "call_1", "{$}", "")
	var out []RouteRow
	for _, pattern := range slices.Sorted(maps.Keys(g.table)) {
		rt := g.table[pattern]
		method, path, ok := strings.Cut(rt.pattern, " ")
		if !ok {
			method, path = http.MethodPost, "/nothing/here"
		}
		out = append(out, RouteRow{Name: rt.name(), Method: method, Path: values.Replace(path),
			Key: rt.credential == apiKey, Worker: rt.credential == workerToken, Cluster: rt.credential == clusterKey, Anyone: rt.credential == noCredential,
			Body: rt.body == wholeBody, Message: rt.body == messageBody, StartsRun: rt.startsRun, Machines: rt.machinesOnly, Probe: rt.probe,
			Pooled: rt.credential != noCredential && rt.pool != admission.Unbounded, Watcher: rt.pool == admission.Watchers || rt.pool == admission.Sockets, Socket: rt.pool == admission.Sockets})
	}
	return out
}

// FillSessions has the server hold as many sessions and unused links as it may; those that it adds are of other keys.
func (g *Server) FillSessions() {
	s := g.browsers.sessions
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range []map[idHash]*session{s.of, s.links} {
		for len(of) < maxSessions {
			other := strconv.Itoa(len(of))
			of[hashOf(other)] = &session{principal: other, began: now, expires: now.Add(s.life)}
		}
	}
}

// OptionsOfNone returns what requests without an object lathe share.
func OptionsOfNone() any { return noOptions }

// NewOptionsOfNone returns what they shared at first.
func NewOptionsOfNone() any { return requestOptions{at: "lathe"} }

// CallID returns the id under which a client without a key gets the call of a turn; "" if the keys of ids cannot be read.
func (g *Server) CallID(ctx context.Context, run string, turn int, id string) string {
	ring, err := g.seals.Get(ctx)
	if err != nil {
		return ""
	}
	return splice.NewCallIDs(ring, anyone.Name, run).Of(turn, id)
}
