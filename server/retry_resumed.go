package server

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/store"
)

// Some clients resume an interrupted stream: they send the request again with two more messages, the text that they have
// received as a message of the assistant, and a message that requests the rest. They have not seen the calls of the
// interrupted run, so the model would make them again. Before the request is run, the server therefore replaces that text
// by the calls, results and texts of the interrupted run. That run has failed, or it has completed and its answer was not
// delivered.

// resumeText returns the index of the message that may be the text of an interrupted stream: the last message of the
// assistant, if it has only text and all messages after it are of the user. It returns 0 if none exists. A message of the user
// must follow, unless clients of the protocol send the text alone, as Codex does.
func (pr *protocol) resumeText(messages []lathe.Message) int {
	at := len(messages) - 1
	for at > 0 && messages[at].Role == lathe.RoleUser {
		at--
	}
	if at <= 0 || at == len(messages)-1 && !pr.resent {
		return 0
	}
	m := &messages[at]
	if m.Role != lathe.RoleAssistant || len(m.Calls()) > 0 || m.Text() == "" {
		return 0
	}
	return at
}

// firstElements returns a JSON array of the first n elements of array, which has no white space between its elements.
func firstElements(array []byte, n int) []byte {
	all := slices.Collect(rawjson.Elements(array))
	return slices.Concat([]byte{'['}, bytes.Join(all[:min(n, len(all))], []byte{','}), []byte{']'})
}

// spliceResumed splices what an earlier run executed into the conversation of a request that resumes the stream of that
// run. If the run is still active, spliceResumed waits for its end. It changes a.in, the input of the new run,
// and a.base; a.req remains as the client sent it. Before, both have the same number of messages (see mayResume), so the index
// at is valid for both.
func (er *earlierRuns) spliceResumed(ctx context.Context, a *chat) *problem {
	at := a.protocol.resumeText(a.req.Messages)
	if at == 0 || !er.mayResume(a) {
		return nil
	}
	text := a.req.Messages[at].Text()
	if _, _, waits := a.caller.setup.waiting.Split(text); waits {
		return nil // the text ends with the sentence of a suspended run, so the answer was complete
	}
	earlier, p := er.interruptedRun(ctx, a, at)
	if earlier == nil {
		return p
	}
	if earlier.completed() {
		if all, _ := a.seen(afterMessages(earlier.res.History, earlier.base)); !strings.HasPrefix(all, text) {
			return nil // the client's text is not the beginning of that answer
		}
	}
	taken := earlier.takenOver()
	if len(taken) == 0 {
		return nil
	}
	spliced := slices.Concat(a.in.Messages[:at], taken)
	// seen is the text of taken. The client may have received only a beginning of it: then nothing remains. Or it has received
	// all of it, and further text, which is not in the log: then rest is that text. Else rest is the whole text.
	seen, _ := a.seen(taken)
	rest := strings.TrimPrefix(strings.TrimPrefix(text, seen), between)
	if rest != "" && !strings.HasPrefix(seen, text) {
		spliced = append(spliced, lathe.Assistant(rest))
	}
	a.in.Messages = append(spliced, a.in.Messages[at+1:]...)
	a.base = len(a.in.Messages) // the answer begins after all of them
	return nil
}

// mayResume reports whether the request begins a run whose conversation the client has sent, and that an earlier run may have
// begun with calls that write.
func (er *earlierRuns) mayResume(a *chat) bool {
	if a.requiresNew || a.continuesResponse() || a.job.resume.id != "" || a.job.follow.id != "" || len(a.in.Messages) != len(a.req.Messages) {
		return false
	}
	return er.opts.Limits.RetryWindow >= 0 && a.caller.offersWrites(&a.settings, a.in.Allow)
}

// interruptedRun returns the run whose stream ended with the text at the index, after its end: the run of the request up to
// that text. It returns nil if no such run is stored or can be read, if its answer was delivered, or if it ended before the
// retry window; then the conversation is valid as the client sent it. A problem is returned only if the client has left.
func (er *earlierRuns) interruptedRun(ctx context.Context, a *chat, at int) (*earlierRun, *problem) {
	record, found := er.resumed(ctx, a, store.RequestDigest(a.sumFirst(a.protocol.elements(a.req.Body, at))))
	if !found {
		return nil, nil
	}
	first := &tracked{caller: a.caller, messages: a.req.Messages[:at]}
	e, p := er.followEarlier(ctx, first, record.RunID)
	if p == nil && !e.over {
		e, p = er.awaitEarlier(ctx, first, e.id)
	}
	if p != nil || er.opts.Now().Sub(e.updated) > er.opts.Limits.RetryWindow {
		return nil, gone(ctx) // not p: without the earlier run, the request is run as it is
	}
	return e, nil
}

// elements returns the number of elements of the conversation in body that precede the message with the index at. That
// message is the last one of the assistant, and all messages after it are of the user. If pr is ordered, it may consist of
// several elements; else each message is one element.
func (pr *protocol) elements(body []byte, at int) int {
	if !pr.ordered {
		return at
	}
	var ofUser []bool
	for el := range rawjson.Elements(rawjson.At(body, pr.conversation)) {
		ofUser = append(ofUser, rawjson.TextAt(el, "role") == "user")
	}
	n := len(ofUser)
	for n > 0 && ofUser[n-1] {
		n--
	}
	for n > 0 && !ofUser[n-1] {
		n--
	}
	return n
}

// resumed returns the record of the request with the digest. found is false if there is no record or its answer was
// delivered.
func (er *earlierRuns) resumed(ctx context.Context, a *chat, digest store.RequestDigest) (record store.RequestRecord, found bool) {
	record, err := er.requests.FindRequest(ctx, digest)
	if err != nil && lathe.CodeOf(err) != lathe.CodeNotFound {
		er.opts.Log.Warn("the store could not say whether a request resumes a stream", "request_id", a.caller.requestID, "code", lathe.CodeOf(err))
	}
	return record, err == nil && !record.Delivered
}
