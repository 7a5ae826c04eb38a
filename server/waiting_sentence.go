package server

import (
	"net"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A completion whose run waits for a person ends with a sentence that says so. When the client sends the
// conversation again the sentence is recognised by its form: the model does not see it.

// waitingFor returns the sentence for a run that waits for a person; "" where it waits for the client, too, which
// comes back by itself.
func (a *chat) waitingFor(res *event.Result) string {
	if res.Reason != lathe.ReasonAwaitingApproval || len(a.theirs(res.Pending)) > 0 || asksByItem(a.req.Hosted) {
		return ""
	}
	var tools []string
	for _, call := range res.Pending {
		tools = append(tools, call.Name)
	}
	command := "lathe runs approve "
	if len(res.Pending) != 1 {
		command = "lathe runs show "
	}
	return a.caller.setup.waiting.Render(a.caller.runID, tools, command+a.caller.runID+serverFlag(a.from))
}

// defaultAddr is where the command line looks for a daemon by itself.
const defaultAddr = "127.0.0.1:8700"

// serverFlag returns the flag by which the command line reaches the address that the request came to; "" where it
// looks there by itself, and if r is nil.
func serverFlag(r *http.Request) string {
	if r == nil {
		return ""
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || local.String() == defaultAddr {
		return ""
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return " --server " + scheme + local.String()
}
