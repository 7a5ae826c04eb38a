package server

import (
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
)

// A request is one request for a model's answer, on any wire, and what its client takes.
type request struct {
	handler   *planner
	caller    *caller
	members                 // with the request
	requested http.Header   // of the request
	from      *http.Request // or the one that opened the socket; nil: the answer is read from the store
	session   string
	alone     bool                     // the answer is one JSON text, so that the response has the text of the last turn only
	shows     bool                     // the response contains calls of this server
	asks      bool                     // the response contains requests for approvals, which some clients accept only if they declared the tool
	fresh     bool                     // the client requests a new run, even if an equal request has one
	plain     bool                     // the request has no object `lathe`, so that none is expected in the answer
	referred  bool                     // item references in the messages were replaced by messages of stored responses
	parsed    []lathe.Message          // the messages that were read from the request, before the server added, removed or changed any
	placed    func(path string) string // set once place is called
	equal     requestSum               // digest of the request; zero until digest is called
	socket    *socket                  // the request came as a message; nil: over HTTP
	warm      bool                     // the message asks for no answer of the model
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
