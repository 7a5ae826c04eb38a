package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
)

// This file defines the lines of a log, which are JSON objects such as
//
//	{"n":7,"time":"…","prev":"9f86d0…","kind":"event","principal":"ann","content_hash":"sha256:…","event":{"event_id":3,"type":"RunFinished",…}}

// MaxLine is the largest size of a line in bytes. The text of an event that would exceed it is left out.
const MaxLine = 64 << 20

// A Kind is the subject of a line.
type Kind string

// Kinds of lines.
const (
	Begin     Kind = "begin"     // first line of a log
	Rotated   Kind = "rotated"   // first line of a file that continues another file
	Recovered Kind = "recovered" // a process ended while it wrote: what it had begun to write was removed
	OfEvent   Kind = "event"
	OfCall    Kind = "call"    // a tool is about to be called
	OfRemoval Kind = "removed" // a run is about to be removed from the store
	OfChange  Kind = "changed" // an operator is about to change the state of the server
)

// A Line is one line of a log. Fields are added, never renamed.
type Line struct {
	N         int64     `json:"n"` // number of the line, from 1 without gaps
	Time      time.Time `json:"time"`
	Prev      string    `json:"prev"` // hex SHA-256 of the previous line without its line end; zeros in the first line
	Kind      Kind      `json:"kind"`
	Principal string    `json:"principal,omitempty"` // user or client for which the run is executed
	// ContentHash is the hash of the text that the event leaves out: the messages at the start of a run, the message of a model, the
	// arguments as the model wrote them, the result, or the answer.
	ContentHash string          `json:"content_hash,omitempty"`
	Event       json.RawMessage `json:"event,omitempty"`
	Call        *Call           `json:"call,omitempty"`
	Removed     *Removed        `json:"removed,omitempty"`
	Changed     *Changed        `json:"changed,omitempty"`
	Torn        *Torn           `json:"torn,omitempty"`
}

// A Removed describes the removal of a run from the store.
type Removed struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id,omitempty"`
	By        string `json:"by,omitempty"` // name of the key that requested the removal
}

// A Changed describes a change that an operator makes to the state of the server.
type Changed struct {
	Change string `json:"change"`         // tool_disabled, tool_enabled, config_reload and the like
	Tool   string `json:"tool,omitempty"` // tool that is changed; "": none
	By     string `json:"by,omitempty"`   // name of the key that requested the change
}

// A Call describes a tool call that is about to be made, and its policy verdict.
type Call struct {
	RunID      string          `json:"run_id"`
	RequestID  string          `json:"request_id"`
	SessionID  string          `json:"session_id,omitempty"`
	Turn       int             `json:"turn"`
	Seq        int             `json:"seq"`
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Origin     string          `json:"origin,omitempty"`
	Effect     string          `json:"effect"`
	ToolHash   string          `json:"tool_hash"`   // hash of the definition of the tool
	ArgsDigest string          `json:"args_digest"` // equals the digest in ApprovalRequested if the arguments are the same
	ArgsBytes  int             `json:"args_bytes"`
	Decision   string          `json:"decision"`
	Rule       string          `json:"rule,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"` // only with Options.Content
}

// A Torn describes the incomplete bytes that were removed from the end of a file.
type Torn struct {
	Bytes int64  `json:"bytes"`
	Hash  string `json:"hash"` // hex SHA-256
}

// A Head identifies a line by its number and hash. [Verify] checks with it whether a log still contains the line.
type Head struct {
	N    int64
	Hash string // hex SHA-256
}

// String returns "12:" followed by the hash. [ParseHead] parses it.
func (h Head) String() string { return strconv.FormatInt(h.N, 10) + ":" + h.Hash }

// ParseHead parses the result of [Head.String].
func ParseHead(s string) (Head, error) {
	n, hash, _ := strings.Cut(s, ":")
	h := Head{Hash: strings.ToLower(hash)}
	var err error
	h.N, err = strconv.ParseInt(n, 10, 64)
	if raw, herr := hex.DecodeString(h.Hash); err != nil || herr != nil || h.N < 1 || len(raw) != sha256.Size {
		return Head{}, fmt.Errorf("%.100q is no head: it is a line's number, a colon and 64 hex digits", s)
	}
	return h, nil
}

// none is the Prev of the first line.
var none = strings.Repeat("0", 2*sha256.Size)

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// follows returns the head of line, which follows the line of h.
func (h Head) follows(line []byte) Head { return Head{N: h.N + 1, Hash: sumOf(line)} }

// eventLine returns the line for an event, with its content if Options.Content is set and the line does not become too long.
func (o *Options) eventLine(principal string, e *event.Event) (*Line, error) {
	l := &Line{Kind: OfEvent, Principal: principal, ContentHash: o.hash(textOf(e.Data))}
	var err error
	if o.Content {
		l.Event, err = e.AppendWithContent(nil)
	}
	if !o.Content || err == nil && len(l.Event) > MaxLine/2 { // half of MaxLine: JSON escapes can make the line longer
		l.Event, err = e.AppendWithoutContent(nil)
	}
	return l, err
}

// textOf returns the content of an event, of which the line contains the hash; nil: the event has no content.
func textOf(d event.Data) []byte {
	var v any
	switch d := d.(type) {
	case *event.RunStarted:
		v = d.Messages
	case *event.ModelCallFinished:
		if d.Message == nil {
			return nil
		}
		v = d.Message
	case *event.ToolCallProposed:
		return []byte(d.RawArgs)
	case *event.ToolCallResult:
		return []byte(d.Result)
	case *event.ApprovalResolved:
		return d.Arguments
	case *event.RunFinished:
		return []byte(d.Answer)
	default: // the event has no content, or only content that another event has too
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil // it cannot be encoded: storing the event fails, too
	}
	return text
}

// hash returns the hash of a text, prefixed by the name of the algorithm; "" for an empty text.
func (o *Options) hash(text []byte) string {
	switch {
	case len(text) == 0:
		return ""
	case len(o.HashKey) > 0:
		m := hmac.New(sha256.New, o.HashKey)
		m.Write(text)
		return "hmac-sha256:" + hex.EncodeToString(m.Sum(nil))
	}
	return "sha256:" + sumOf(text)
}

// callLine returns the line for a call that is about to be made.
func (o *Options) callLine(c *lathe.CallInfo, v lathe.Verdict) *Line {
	out := &Call{RunID: c.Run.RunID, RequestID: c.Run.RequestID, SessionID: c.Run.SessionID, Turn: c.Turn, Seq: c.Seq, ToolCallID: c.Call.ID,
		Tool: c.Tool.Name, Origin: c.Tool.Origin, Effect: c.Tool.Effect.String(), ToolHash: digest.Tools([]*lathe.ToolSpec{c.Tool}),
		ArgsDigest: digest.ArgsDigest(c.Run.RunID, c.Call.ID, c.Tool.Name, c.Tool.Schema, c.Args), ArgsBytes: len(c.Args),
		Decision: v.Decision.String(), Rule: v.Rule}
	if o.Content {
		out.Arguments = c.Args
	}
	return &Line{Kind: OfCall, Principal: c.Run.Principal, Call: out}
}
