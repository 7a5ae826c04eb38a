package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A terminalApprover asks the user at the terminal. It shows the data of Lathe itself first, and marks the text that the model wrote. Any
// input other than an approval, edited arguments or a result denies the call.
type terminalApprover struct {
	screen *screen
	in     *bufio.Reader
	now    func() time.Time
	grants approval.Grants

	mu      sync.Mutex      // locked during a question: only one at a time
	line    chan string     // a line that was read
	reading bool            // readLine has started a read whose line it has not received yet
	denied  map[string]bool // calls denied in this run, which are denied again without a question
}

func newTerminalApprover(in io.Reader, s *screen) *terminalApprover {
	return &terminalApprover{screen: s, in: bufio.NewReader(in), now: time.Now, line: make(chan string, 1), denied: map[string]bool{}}
}

// Approve asks the user and reads one line, and a second one for edited arguments or a result. A denied call that the model repeats with
// the same arguments is denied without a question; a call within a granted scope is approved without a question.
func (a *terminalApprover) Approve(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if by, ok := a.grants.Allows(req); ok {
		return lathe.Approval{Approved: true, By: by, ReasonCode: approval.ReasonGranted}, nil
	}
	call := sameCall(req)
	if a.denied[call] {
		return lathe.Approval{By: byTerminal, ReasonCode: "same_call_denied"}, nil
	}
	a.screen.ask(a.question(req))
	word, err := a.readLine(ctx)
	if err != nil {
		a.screen.ask("\n")
		return lathe.Approval{}, err
	}
	answer, err := a.answer(ctx, req, strings.ToLower(strings.TrimSpace(word)))
	if err == nil && !answer.Approved {
		a.denied[call] = true
	}
	return answer, err
}

// answer returns the approval for a word of the user. It reads edited arguments and results, and adds grants.
func (a *terminalApprover) answer(ctx context.Context, req *lathe.ApprovalRequest, word string) (lathe.Approval, error) {
	deny := lathe.Approval{By: byTerminal, ReasonCode: "denied_by_user"}
	approve := lathe.Approval{Approved: true, By: byTerminal, ReasonCode: "approved_by_user"}
	var scope approval.Scope
	switch word {
	case "y", "yes":
		return approve, nil
	case "e", "edit":
		text, err := a.edited(ctx, req.Tool)
		if err != nil || text == "" {
			return deny, err
		}
		approve.ReasonCode, approve.Arguments = "edited_by_user", json.RawMessage(text)
		return approve, nil
	case "r", "result":
		text, err := a.readFurtherLine(ctx, "the result, JSON or text on one line: ")
		if err != nil || text == "" {
			return deny, err
		}
		approve.ReasonCode, approve.Result = reasonAnswered, asResult(text)
		return approve, nil
	case "a", "again":
		scope = approval.ScopeCall
	case "t", "tool":
		scope = approval.ScopeRun
	case "s", "session":
		scope = approval.ScopeSession
	default:
		return deny, nil
	}
	if a.grants.Add(req, scope, byTerminal) == nil {
		return approve, nil
	}
	return deny, nil
}

// forget is called before the next run: calls that were denied in the previous run are asked about again.
func (a *terminalApprover) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.denied)
}

const byTerminal = "terminal"

// readFurtherLine reads a further line after a question. An empty line denies the call.
func (a *terminalApprover) readFurtherLine(ctx context.Context, question string) (string, error) {
	a.screen.ask(question)
	line, err := a.readLine(ctx)
	return strings.TrimSpace(line), err
}

// edited asks for other arguments until they are valid. It returns "" for an empty line, which denies the call.
func (a *terminalApprover) edited(ctx context.Context, spec *lathe.ToolSpec) (string, error) {
	for {
		text, err := a.readFurtherLine(ctx, "arguments, a JSON object on one line: ")
		if err != nil || text == "" {
			return "", err
		}
		bad := checkEdited(spec, []byte(text))
		if bad == nil {
			return text, nil
		}
		a.screen.ask("  " + bad.Error() + "\n")
	}
}

// asResult returns s unchanged if it is JSON, else s as a text result.
func asResult(s string) json.RawMessage {
	if rawjson.Check([]byte(s), rawjson.Limits{}) == nil {
		return json.RawMessage(s)
	}
	return approval.Text(s)
}

func (a *terminalApprover) question(req *lathe.ApprovalRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", a.screen.paint("bold", "approve "+req.Tool.Name+"?"))
	heading := "  the model wrote these arguments:\n"
	for _, f := range approval.Details(req, a.now()) {
		if f.Model {
			fmt.Fprintf(&b, "%s  | %s = %s\n", heading, f.Name, f.Value)
			heading = ""
			continue
		}
		fmt.Fprintf(&b, "  %-11s %s\n", f.Name, f.Value)
	}
	session := ""
	if req.Run != nil && req.Run.SessionID != "" {
		session = "   [s] this tool in this session"
	}
	fmt.Fprintf(&b, "[y] yes, once   [a] this same call again, too   [t] this tool in this run%s\n", session)
	fmt.Fprint(&b, "[e] edit the arguments   [r] answer in place of the tool   [n] no (default): ")
	return b.String()
}

// readLine returns the next line that is typed from now on, or an empty line at the end of input. A read from a terminal cannot be
// cancelled: if the caller of readLine has returned, the read serves the next question or ends with the process.
func (a *terminalApprover) readLine(ctx context.Context) (string, error) {
	select {
	case <-a.line: // the line was typed for an earlier question
		a.reading = false
	default:
	}
	if !a.reading {
		a.reading = true
		go func() {
			s, _ := a.in.ReadString('\n') // the end of input counts as no
			a.line <- s
		}()
	}
	select {
	case s := <-a.line:
		a.reading = false
		return s, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// sameCall returns a key for a call: its tool and the canonical form of its arguments.
func sameCall(req *lathe.ApprovalRequest) string {
	key, err := rawjson.AppendCanonical([]byte(req.Tool.Name+"\x00"), req.Args)
	if err != nil {
		return req.Digest // a unique key
	}
	return string(key)
}

const maxShownArgs = 2000 // bytes of argument text on the terminal

func clipArgs(s string) string {
	return text.Excerpt(s, maxShownArgs)
}

// A yesApprover approves all calls that need an approval, for the flag --yes.
type yesApprover struct{}

// Approve always approves.
func (yesApprover) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{Approved: true, By: "command line", ReasonCode: "yes_flag"}, nil
}
