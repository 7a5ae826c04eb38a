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

// A State is what a server is doing.
type State string

// The states of a server.
const (
	StateStarting State = "starting" // the first attempt, or one after a pause, is under way
	StateReady    State = "ready"
	StateBackoff  State = "backoff" // it ended or could not be reached, and will be started again
	StateFailed   State = "failed"  // the same, after several attempts in a row
	StateClosed   State = "closed"
)

// failedAfter is the number of attempts in a row after which a server counts as failed. It is
// started again all the same.
const failedAfter = 5

// A Problem is the kind of a server's last failure. A user interface may derive the next step from it.
type Problem string

// The problems of a server.
const (
	ProblemProgram     Problem = "program"     // it could not be started
	ProblemTimeout     Problem = "timeout"     // it did not answer in time
	ProblemCredentials Problem = "credentials" // HTTP 401 or 403
	ProblemLogin       Problem = "login"       // an operator must log in
	ProblemRedirect    Problem = "redirect"    // the URL leads elsewhere, which LastError names
	ProblemHTTP        Problem = "http"        // any other HTTP status, or an answer that is no MCP message
	ProblemUnreachable Problem = "unreachable" // no connection could be made
	ProblemEnded       Problem = "ended"       // it ended, or broke the connection
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
	Target    string // the program and its arguments, or the URL
	Protocol  string // version in use; "" before the first connection
	Software  string // name and version, as the server says
	PID       int    // of a child; 0: none
	Starts    int    // connections that were made
	Failures  int    // attempts in a row that failed
	NextTry   time.Time
	LastError string // of the last attempt or connection that failed; no secret
	Problem   Problem
	// Stderr is the end of what a child wrote to its standard error, with control characters made
	// visible and configured secrets left out. It is untrusted text.
	Stderr string
	// BadMessages counts messages that could not be used, Refused the server's requests to its client.
	BadMessages, Refused int
	Tools                []ToolStatus // by name
}

// A ToolState says whether a tool of a server is offered, and if not, why.
type ToolState string

// The states of a tool.
const (
	ToolReady    ToolState = "ready"
	ToolBlocked  ToolState = "blocked"  // until an operator accepts its definition
	ToolRefused  ToolState = "refused"  // its definition is not valid here
	ToolExcluded ToolState = "excluded" // the configuration leaves it out
	ToolMissing  ToolState = "missing"  // the configuration names it and the server does not have it
)

// A ToolStatus describes a tool of a server at one moment.
type ToolStatus struct {
	Name        string // as it is offered
	Remote      string // as the server calls it
	State       ToolState
	Reason      string
	Changed     []string // the parts of its definition that differ from the accepted one
	Digest      string   // hash of the definition
	Hidden      int      // characters left out of its texts, because a person would not see them
	Description string   // as the model gets it
	// Definition is what the server says of the tool now, and Accepted what was accepted, both in the RFC 8785 form; nil:
	// it is not known. AcceptedAt is zero if no definition was accepted. The texts are untrusted.
	Definition, Accepted []byte
	AcceptedAt           time.Time
}

// plain returns text that may be shown: without secrets and without characters that steer a
// terminal.
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
