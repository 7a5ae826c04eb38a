package mcptool

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/secret"
)

// A State is the state of a server.
type State string

// The states of a server. After the first attempt, a server is in StateStarting again for each further one.
const (
	StateStarting State = "starting" // connecting
	StateReady    State = "ready"    // its tools are offered
	StateBackoff  State = "backoff"  // it ended or could not be reached; the next attempt is at NextTry
	StateFailed   State = "failed"   // as StateBackoff, after 5 consecutive failures
	StateClosed   State = "closed"   // the group is closed
)

// failedAfter is the number of consecutive failed attempts after which a server counts as failed. The group continues to start it.
const failedAfter = 5

// A Problem classifies the last failure of a server, so that a user interface can show the next step. "" means no problem.
type Problem string

// The problems of a server.
const (
	ProblemProgram     Problem = "program"     // the program could not be started
	ProblemTimeout     Problem = "timeout"     // the server did not answer in time
	ProblemCredentials Problem = "credentials" // HTTP 401 or 403
	ProblemLogin       Problem = "login"       // an operator must log in (OAuth)
	ProblemRedirect    Problem = "redirect"    // the URL redirects to another one, which is in LastError
	ProblemHTTP        Problem = "http"        // any other HTTP status, or an answer that is not an MCP message
	ProblemUnreachable Problem = "unreachable" // the connection could not be made
	ProblemEnded       Problem = "ended"       // the process ended, or the connection was closed
	ProblemTools       Problem = "tools"       // Options.OnChange returned an error
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

// A Status is the state of the server with the name Server at one moment. Since and NextTry are times of the clock Options.Now.
type Status struct {
	Server    string
	State     State
	Since     time.Time // when State was entered
	Required  bool
	Transport string // "stdio" or "http"
	Target    string // program and arguments, or URL
	Protocol  string // MCP version in use; "" before the first connection
	Software  string // name and version that the server reports, at most 100 bytes
	// Capabilities are what the server declares, sorted: completions, logging, prompts, resources, tools, and the names of its extensions.
	// The group uses tools only. At most 32 names.
	Capabilities []string
	// Instructions is the server's description of its use, at most 4 KiB; untrusted, and not sent to models.
	Instructions string
	PID          int       // process id of a child; 0: none
	Starts       int       // number of connections that became ready
	Failures     int       // number of consecutive failed attempts
	NextTry      time.Time // time of the next attempt; zero unless State is StateBackoff or StateFailed
	LastError    string    // error of the last failed attempt or connection, without secrets
	Problem      Problem
	// Stderr is the end of a child's standard error: control characters are escaped, and configured secrets are removed. The text is
	// untrusted.
	Stderr string
	// BadMessages is the number of invalid messages from the server. Refused is the number of requests from the server that were refused.
	BadMessages, Refused int
	Tools                []ToolStatus // sorted by name
}

// capabilitiesOf returns the names of the capabilities that a server declares.
func capabilitiesOf(c *mcp.ServerCapabilities, secrets []secret.Secret) []string {
	if c == nil {
		return nil
	}
	var out []string
	for name, declared := range map[string]bool{"completions": c.Completions != nil, "prompts": c.Prompts != nil, "resources": c.Resources != nil,
		"tools": c.Tools != nil, "logging": c.Logging != nil} { //nolint:staticcheck // deprecated, and what older servers declare
		if declared {
			out = append(out, name)
		}
	}
	for name := range c.Extensions {
		out = append(out, text.Clip(plain(name, secrets), 100))
	}
	slices.Sort(out)
	return out[:min(len(out), 32)]
}

// A ToolState says whether a tool of a server is offered, and if not, why.
type ToolState string

// The states of a tool.
const (
	ToolReady    ToolState = "ready"    // it is offered
	ToolBlocked  ToolState = "blocked"  // an operator must accept its definition: it is new or has changed
	ToolRefused  ToolState = "refused"  // its definition is not valid
	ToolExcluded ToolState = "excluded" // the configuration excludes it
	ToolMissing  ToolState = "missing"  // the configuration names it, but the server does not have it
)

// A ToolStatus is the state of one tool of a server.
type ToolStatus struct {
	Name        string // offered name
	Remote      string // name that the server uses
	State       ToolState
	Reason      string   // why it is not offered; "" if it is
	Changed     []string // parts of the definition that differ from the accepted one
	Digest      string   // hash of the current definition, for [Group.AcceptShown]
	Hidden      int      // number of invisible characters that were removed from its texts
	Description string   // description for the model
	// Definition is the definition that the server sends now, and Accepted the one that was accepted at AcceptedAt, both in RFC 8785 form;
	// nil: not known. AcceptedAt is zero if no definition was accepted. The texts are untrusted.
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
