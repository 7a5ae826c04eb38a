package mcptool

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/secret"
)

// A State is the state of a server.
type State string

// The states of a server.
const (
	StateStarting State = "starting" // the first attempt, or one after a pause, is in progress
	StateReady    State = "ready"
	StateBackoff  State = "backoff" // it ended or could not be reached, and will be started again
	StateFailed   State = "failed"  // as StateBackoff, after failedAfter consecutive attempts
	StateClosed   State = "closed"
)

// failedAfter is the number of consecutive failed attempts after which a server counts as failed. The group continues to start it.
const failedAfter = 5

// A Problem is the kind of a server's last failure, from which a user interface may derive the next step.
type Problem string

// The problems of a server.
const (
	ProblemProgram     Problem = "program"     // the program could not be started
	ProblemTimeout     Problem = "timeout"     // the server did not answer in time
	ProblemCredentials Problem = "credentials" // HTTP 401 or 403
	ProblemLogin       Problem = "login"       // an operator must log in
	ProblemRedirect    Problem = "redirect"    // the URL redirects to another one, which LastError contains
	ProblemHTTP        Problem = "http"        // any other HTTP status, or an answer that is not an MCP message
	ProblemUnreachable Problem = "unreachable" // no connection could be made
	ProblemEnded       Problem = "ended"       // the server ended, or closed the connection
	ProblemTools       Problem = "tools"       // OnChange refused its tools
)

func problemOf(err error) Problem {
	var start *errStart
	var status *errHTTP
	var login *oauth.LoginError
	var token *oauth.Error
	switch {
	case errors.As(err, &login):
		return ProblemLogin
	case errors.As(err, &token):
		return ProblemCredentials
	case errors.As(err, &start):
		return ProblemProgram
	case errors.Is(err, errLate), errors.Is(err, context.DeadlineExceeded):
		return ProblemTimeout
	case errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusForbidden):
		return ProblemCredentials
	case errors.As(err, &status) && status.redirect != "":
		return ProblemRedirect
	case errors.As(err, &status):
		return ProblemHTTP
	case neverSent(err):
		return ProblemUnreachable
	default:
		return ProblemEnded
	}
}

// A Status describes a server at one moment.
type Status struct {
	Server    string
	State     State
	Since     time.Time
	Required  bool
	Transport string // "stdio" or "http"
	Target    string // program and arguments, or URL
	Protocol  string // version in use; "" before the first connection
	Software  string // name and version that the server reports
	PID       int    // process id of a child; 0: none
	Starts    int    // number of connections
	Failures  int    // number of consecutive failed attempts
	NextTry   time.Time
	LastError string // error of the last failed attempt or connection, without secrets
	Problem   Problem
	// Stderr is the end of a child's standard error, with visible escapes for control characters and without configured secrets. It is
	// untrusted text.
	Stderr string
	// BadMessages is the number of invalid messages, Refused that of the server's requests to its client that were refused.
	BadMessages, Refused int
	Tools                []ToolStatus // sorted by name
}

// A ToolState determines whether a tool of a server is offered, and if not, why.
type ToolState string

// The states of a tool.
const (
	ToolReady    ToolState = "ready"
	ToolBlocked  ToolState = "blocked"  // an operator must accept its definition
	ToolRefused  ToolState = "refused"  // its definition is not valid
	ToolExcluded ToolState = "excluded" // the configuration excludes it
	ToolMissing  ToolState = "missing"  // the configuration names it, but the server does not have it
)

// A ToolStatus describes a tool of a server at one moment.
type ToolStatus struct {
	Name        string // offered name
	Remote      string // the server's name
	State       ToolState
	Reason      string
	Changed     []string // the parts of its definition that differ from the accepted one
	Digest      string   // hash of the definition
	Hidden      int      // number of hidden characters that were removed from its texts
	Description string   // description for the model
	// Definition is the server's current definition, and Accepted the accepted one, both in RFC 8785 form; nil: not known. AcceptedAt is
	// zero if no definition was accepted. The texts are untrusted.
	Definition, Accepted []byte
	AcceptedAt           time.Time
}

// plain returns text that may be displayed: without secrets, and with escapes for characters that control a terminal.
func plain(s string, known []secret.Secret) string {
	s = secret.Scrub(strings.ToValidUTF8(s, "\uFFFD"), known...)
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r':
		case isHidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
