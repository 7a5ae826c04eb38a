package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Some clients resume a stream that broke off: they send the request again, with the text that they have received as a
// message of the assistant, and a message that asks for the rest. They have not seen the calls of the failed run, and the
// model would make them again. So these calls and their results take the place of the text before the request is run.

// resumeText returns the index of the message that may be the text of a stream that broke off: the last one of the
// assistant, which has text alone and is followed by messages of the user alone; 0 if there is none.
func resumeText(messages []lathe.Message) int {
	k := len(messages) - 1
	for k > 0 && messages[k].Role == lathe.RoleUser {
		k--
	}
	if k <= 0 || k == len(messages)-1 || messages[k].Role != lathe.RoleAssistant || len(messages[k].Calls()) > 0 || messages[k].Text() == "" {
		return 0
	}
	return k
}

// firstElements returns an array of the first n elements of a compact one.
func firstElements(array []byte, n int) []byte {
	first := []byte{'['}
	for e := range rawjson.Elements(array) {
		if n--; n < 0 {
			break
		}
		if len(first) > 1 {
			first = append(first, ',')
		}
		first = append(first, e...)
	}
	return append(first, ']')
}

// spliceResumed puts what a failed run executed into the conversation of a request that resumes the stream of that run. The
// run is found by the request up to the text. If it is still active, spliceResumed waits for its end.
func (g *Gateway) spliceResumed(ctx context.Context, a *chat) *problem {
	k := resumeText(a.req.Messages)
	if k == 0 || a.fresh || a.job.resume != "" || a.job.follow != "" || len(a.in.Messages) != len(a.req.Messages) ||
		g.opts.Limits.RetryWindow < 0 || !a.caller.offersWrites(&a.settings, a.in.Allow) {
		return nil
	}
	record, found := g.resumed(ctx, a, lathe.RequestDigest(sumFirst(a.caller.key.Name, a.body, k)))
	if !found {
		return nil // without it the conversation is valid as the client has it
	}
	first, req := *a, *a.req
	req.Messages = req.Messages[:k]
	first.req = &req
	e, p := g.followEarlier(ctx, &first, record.RunID)
	if p == nil && !e.over {
		e, p = g.awaitEarlier(ctx, &first, e.id)
	}
	if p != nil || e.completed() || g.opts.Now().Sub(e.updated) > g.opts.Limits.RetryWindow {
		return gone(ctx)
	}
	taken := e.takenOver()
	if len(taken) == 0 {
		return nil
	}
	spliced := slices.Concat(a.in.Messages[:k], taken)
	text, seen := a.req.Messages[k].Text(), textOf(a.shown(taken))
	if rest := strings.TrimPrefix(strings.TrimPrefix(text, seen), between); rest != "" && !strings.HasPrefix(seen, text) {
		spliced = append(spliced, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: rest}}})
	}
	a.in.Messages = append(spliced, a.in.Messages[k+1:]...)
	a.base = len(a.in.Messages)
	return nil
}

// resumed returns the record of the request whose stream another one resumes, if its answer was not delivered.
func (g *Gateway) resumed(ctx context.Context, a *chat, digest lathe.RequestDigest) (record lathe.RequestRecord, found bool) {
	record, err := g.requests.FindRequest(ctx, digest)
	if err != nil && lathe.CodeOf(err) != lathe.CodeNotFound {
		g.opts.Log.Warn("the store could not say whether a request resumes a stream", "request_id", a.caller.requestID, "code", lathe.CodeOf(err))
	}
	return record, err == nil && !record.Delivered
}

// textOf returns the text of parts.
func textOf(parts []lathe.Part) string {
	m := lathe.Message{Parts: parts}
	return m.Text()
}
