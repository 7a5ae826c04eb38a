package server

import (
	"cmp"
	"net/http"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A request is one request for a model's answer, on any wire, and what its client takes.
type request struct {
	handler  *planner
	caller   *caller
	members                // with the request
	from     *http.Request // or the one that opened the socket; nil: the answer is read from the store
	session  string
	alone    bool                     // the answer is one JSON text, so that the response has the text of the last turn only
	shows    bool                     // the response contains calls of this server
	asks     bool                     // the response contains requests for approvals, which some clients accept only if they declared the tool
	fresh    bool                     // the client requests a new run, even if an equal request has one
	plain    bool                     // the request has no object `lathe`, so that none is expected in the answer
	referred bool                     // item references in the messages were replaced by messages of stored responses
	parsed   []lathe.Message          // the messages that were read from the request, before the server added, removed or changed any
	placed   func(path string) string // set once place is called
	equal    requestSum               // digest of the request; zero until digest is called
	socket   *socket                  // the request came as a message; nil: over HTTP
	warm     bool                     // the message asks for no answer of the model
}

// An exchange is a request and its plan: the run that answers it, or that it resumes or attaches to.
type exchange struct {
	request
	plan      // its input is that of job
	job       job
	base      int        // number of messages of the run's history before the run
	sum       splice.Sum // of the conversation that the client sent
	after     splice.Key // of the last hidden turn that was spliced into the conversation
	lost      int        // number of hidden turns that could not be spliced into the conversation
	keepsText bool       // an answer that consists of text is kept with the turns behind it
	continues string     // the run that the run continues
	stored    bool       // the answer is that of a stored run and is not recorded again
	unlock    func()     // unlocks the run that the request resumes; it may be called twice
}

// readChat reads the request and makes the run of it.
func (h *planner) readChat(r *http.Request, c *caller, pr *protocol) (_ *chat, p *problem) {
	body, warm, socket := c.body, false, socketOf(r.Context())
	if socket != nil {
		if body, warm, p = createBody(c.body); p != nil {
			return nil, p
		}
	}
	req, withheld, p := h.read(c, pr, r, body)
	if p != nil {
		return nil, p
	}
	if p := h.checkSize(r.Context(), c, req.Messages); p != nil {
		return nil, p
	}
	a := &chat{}
	if a.enc = a; !req.Stream {
		a.enc = &wholeAnswer{chat: a}
	}
	a.request = request{handler: h, caller: c, members: members{protocol: pr, req: req, ignored: withheld}, socket: socket, warm: warm, parsed: req.Messages, from: r}
	a.unlock, a.head = func() {}, wire.AnswerHead{Model: req.Model, Created: h.opts.Now().Unix(), Request: req}
	if a.fresh, p = asksAnew(r); p != nil {
		return nil, p
	}
	asked := a.asked()
	a.plain = asked == nil && !req.Obfuscate && !(pr.array && req.Stream)
	a.alone = wantsJSON(req.Sampling.ResponseFormat)
	options, p := parseOptions(asked)
	if p != nil {
		return nil, p
	}
	if p := h.planChat(r.Context(), a, options); p != nil || a.in.Relay != nil {
		return a, p
	}
	if p := h.earlier.spliceResumed(r.Context(), a); p != nil {
		return a, p
	}
	h.trackChat(a)
	return a, nil
}

// wantsJSON reports whether a response_format asks for anything but plain text.
func wantsJSON(format []byte) bool {
	kind, ok := rawjson.Get(format, "type")
	return ok && !rawjson.EqualKey(kind, "text")
}

// misread is the answer to a request with a mistake.
func misread(bad *wire.APIError) *problem {
	return problems.New(bad.Status, cmp.Or(bad.Code, "invalid_request"), "%s", bad.Message).WithParam(bad.Param)
}
