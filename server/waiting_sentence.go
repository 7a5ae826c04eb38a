package server

import (
	"net"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A completion whose run waits for an approval ends with a sentence that says so. When the client sends the conversation
// again, the server recognizes the sentence by its form and removes it, so that the model does not get it.

// waitingFor returns the sentence for a run that waits for an approval. It returns "" if the run also waits for results of
// the client, whose next request resumes it, or if the client gets the approval as an item.
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

// defaultAddr is the address at which the command line looks for a gateway if it has no flag.
const defaultAddr = "127.0.0.1:8700"

// serverFlag returns the flag with which the command line reaches the address to which the request came. It returns "" if
// that is defaultAddr, and if r is nil.
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
