package server

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/wire"
)

// The state of one answer is in layers of types, each of which embeds the one below: members, request, exchange (with the plan
// and the job), content (which encodes the answer) and chat (its stream).

// A request is one request for a model's answer, on any wire, and what its client supports.
type request struct {
	handler        *planner
	caller         *caller
	members                      // the members of the request, and how each of them was handled
	from           *http.Request // the HTTP request, or the one that opened the WebSocket; nil if the answer is read from the store
	session        string
	lastTurnOnly   bool                     // the response contains the text of the last turn only, because the client requires JSON
	showsCalls     bool                     // the response contains calls of this server
	showsApprovals bool                     // the response contains requests for approvals; some clients accept those only if they declared the tool
	requiresNew    bool                     // the client requires a new run, even if an equal request has one
	withoutLathe   bool                     // the request has no object `lathe`, so the client expects none in the answer
	hasReferences  bool                     // item references in the messages were replaced by messages of stored responses
	parsed         []lathe.Message          // the messages of the request, before the server added, removed or changed any
	placed         func(path string) string // the function that place uses; nil before the first call of place
	equal          requestSum               // digest of the request; zero until digest is called
	socket         *socket                  // the WebSocket on which the request came as a message; nil: it came over HTTP
	preparesOnly   bool                     // the message only prepares a conversation (generate: false): no model is called
}

// An exchange is a request and its plan: the run that answers the request, which is new, resumed or attached to. planChat sets
// its fields. A run that is found or continued later ([earlierRuns.answerRepeated], spliceResumed) changes job, base and continues.
type exchange struct {
	request
	plan      // plan.in is the input of job
	job       job
	base      int        // number of messages of the run's history before the run
	sum       splice.Sum // digest of the conversation that the client sent
	lastKey   splice.Key // key of the last hidden turn that was spliced into the conversation
	lost      int        // number of hidden turns that could not be spliced into the conversation
	keepsText bool       // if the answer is text, it is stored together with the hidden turns before it
	continues string     // the id of the run that this run continues
	stored    bool       // the answer is read from a stored run and is not recorded again
	unlock    func()     // unlocks the run that the request resumes; it may be called twice
}

// readChat reads a request for an answer, and sets its plan and its job: a new run, or an existing run to resume or attach
// to.
func (h *planner) readChat(r *http.Request, c *caller, pr *protocol) (_ *chat, p *problem) {
	body, preparesOnly, socket := c.body, false, socketOf(r.Context())
	if socket != nil {
		if body, preparesOnly, p = createBody(c.body); p != nil {
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
	a := h.newChat(c, pr, req)
	a.ignored, a.socket, a.preparesOnly, a.from = withheld, socket, preparesOnly, r
	if a.requiresNew, p = asksAnew(r); p != nil {
		return nil, p
	}
	asked := a.asked()
	a.withoutLathe = asked == nil && !req.Obfuscate && !(pr.array && req.Stream)
	a.lastTurnOnly = wantsJSON(req.Sampling.ResponseFormat)
	options, p := parseOptions(asked)
	if p != nil {
		return nil, p
	}
	if p := h.planChat(r.Context(), a, options); p != nil {
		return nil, p // the run is not locked: see resumeRun
	}
	if runinput.Of(&a.in).Relay != nil {
		return a, nil
	}
	if p := h.earlier.spliceResumed(r.Context(), a); p != nil {
		return nil, p
	}
	h.trackChat(a)
	return a, nil
}

// newChat returns the chat that answers a request of c on the wire of pr.
func (h *planner) newChat(c *caller, pr *protocol, req *wire.ClientRequest) *chat {
	a := &chat{}
	a.enc = a
	if !req.Stream {
		a.enc = &wholeAnswer{chat: a}
	}
	a.request = request{handler: h, caller: c, members: members{protocol: pr, req: req}, parsed: req.Messages}
	a.unlock, a.head = func() {}, wire.AnswerHead{Model: req.Model, Created: h.opts.Now().Unix(), Request: req}
	return a
}

func wantsJSON(format []byte) bool {
	kind := rawjson.At(format, "type")
	return kind != nil && rawjson.Text(kind) != "text"
}

// misread converts an error about a request that could not be read to a problem.
func misread(err error) *problem {
	var bad *wire.APIError
	if !errors.As(err, &bad) {
		return badRequest("", "The request could not be read.")
	}
	return problems.New(bad.Status, cmp.Or(bad.Code, "invalid_request"), "%s", bad.Message).WithParam(bad.Param)
}
