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
// assistant, if it has only text and all messages after it are of the user. It returns 0 if none exists. If unasked is
// true, it may be the last message: Codex sends the text it has and no request for the rest.
func resumeText(messages []lathe.Message, unasked bool) int {
	k := len(messages) - 1
	for k > 0 && messages[k].Role == lathe.RoleUser {
		k--
	}
	if k <= 0 || k == len(messages)-1 && !unasked || messages[k].Role != lathe.RoleAssistant || len(messages[k].Calls()) > 0 || messages[k].Text() == "" {
		return 0
	}
	return k
}

// firstElements returns a JSON array of the first n elements of array, which has no white space between its elements.
func firstElements(array []byte, n int) []byte {
	all := slices.Collect(rawjson.Elements(array))
	return slices.Concat([]byte{'['}, bytes.Join(all[:min(n, len(all))], []byte{','}), []byte{']'})
}

// spliceResumed splices what an earlier run executed into the conversation of a request that resumes the stream of that
// run. The run is found by the digest of the request up to the text. If it is still active, spliceResumed waits for its
// end.
func (er *earlierRuns) spliceResumed(ctx context.Context, a *chat) *problem {
	k := resumeText(a.req.Messages, a.protocol.resent)
	if k == 0 || a.requiresNew || a.continuesResponse() || a.job.resume != "" || a.job.follow != "" || len(a.in.Messages) != len(a.req.Messages) ||
		er.opts.Limits.RetryWindow < 0 || !a.caller.offersWrites(&a.settings, a.in.Allow) {
		return nil
	}
	if _, _, waits := a.caller.setup.waiting.Split(a.req.Messages[k].Text()); waits {
		return nil // the text ends with the sentence of a suspended run, so the answer was complete
	}
	record, found := er.resumed(ctx, a, store.RequestDigest(a.sumFirst(a.protocol.elements(a.req.Body, k))))
	if !found {
		return nil // without an interrupted run the conversation is valid as the client sent it
	}
	first := &tracked{caller: a.caller, messages: a.req.Messages[:k]}
	e, p := er.followEarlier(ctx, first, record.RunID)
	if p == nil && !e.over {
		e, p = er.awaitEarlier(ctx, first, e.id)
	}
	if p != nil || er.opts.Now().Sub(e.updated) > er.opts.Limits.RetryWindow {
		return gone(ctx)
	}
	if all, _ := a.seen(afterMessages(e.res.History, e.base)); e.completed() && !strings.HasPrefix(all, a.req.Messages[k].Text()) {
		return nil // the client's text is not the beginning of that answer
	}
	taken := e.takenOver()
	if len(taken) == 0 {
		return nil
	}
	spliced := slices.Concat(a.in.Messages[:k], taken)
	text := a.req.Messages[k].Text()
	seen, _ := a.seen(taken)
	if rest := strings.TrimPrefix(strings.TrimPrefix(text, seen), between); rest != "" && !strings.HasPrefix(seen, text) {
		spliced = append(spliced, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: rest}}})
	}
	a.in.Messages = append(spliced, a.in.Messages[k+1:]...)
	a.base = len(a.in.Messages)
	return nil
}

// elements returns the number of elements of the conversation in body that precede message k. Message k is the last one of
// the assistant, and all messages after it are of the user.
func (pr *protocol) elements(body []byte, k int) int {
	if !pr.ordered {
		return k
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
