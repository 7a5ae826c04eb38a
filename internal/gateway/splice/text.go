package splice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/store"
)

// An answer that consists of text alone has no call by which the turns behind it could be found. Clients of chat completions have no item
// for a carrier, and clients of the other wires may drop carriers. Such turns are therefore stored under a hash of the conversation before
// the answer and of the answer's text:
//
//	client:  user, assistant(text), user
//	model:   user, assistant(call s), tool(s), assistant(text), user
//
// White space in the text is ignored, since clients trim it and join pieces with it. If the client has changed the text, or anything before
// it, no turns are found, and the message remains as the client sent it.
//
// In memory, Limits.MaxKept, MaxKeptBytes and KeepFor bound such turns together with other hidden turns. The store records the run under
// the same hash (package store, RequestStore), so that another process can read the turns from the log of the run.

// maxTextLookups bounds the messages of one conversation whose turns are looked up in the store: the last ones of the conversation.
const maxTextLookups = 64

// isTextTurn reports whether a message is an answer that consists of text, without an item that this server wrote.
func isTextTurn(m *lathe.Message) bool {
	text := false
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			text = text || strings.TrimSpace(p.Text) != ""
		case lathe.Reasoning:
			if IsCarrier(p) {
				return false
			}
		case lathe.Opaque: // an item of the model's vendor, or of this server
			if IsOwn(p.JSON) {
				return false
			}
		case lathe.ToolCall, lathe.ToolResult, lathe.Blob, lathe.Refusal:
			return false
		}
	}
	return text && m.Role == lathe.RoleAssistant
}

// textTurns returns the text of the answer of text at the beginning of messages, and the number of its messages, since some clients store
// one answer in several. n is 0 if there is no such answer.
func textTurns(messages []lathe.Message) (n int, text string) {
	for n < len(messages) && isTextTurn(&messages[n]) {
		n++
	}
	if n == 1 {
		return 1, messages[0].Text()
	}
	var all strings.Builder
	for i := range n {
		all.WriteString(messages[i].Text())
	}
	return n, all.String()
}

// BehindText returns the messages of a run that replace an answer of text: all that it added, except for the tool results of its request.
// ok is false if the client has received all of them, or if a call has no result.
func BehindText(own []lathe.Message) (_ []lathe.Message, ok bool) {
	for len(own) > 0 && own[0].Role == lathe.RoleTool {
		own = own[1:]
	}
	isHidden := func(m lathe.Message) bool { return m.Role == lathe.RoleTool || m.Synthetic }
	return own, slices.ContainsFunc(own, isHidden) && pairs.Check(own) == nil
}

// KeepText stores the messages own, which a run added to the conversation sum, behind its answer of text. The store records the run in the
// background. If other processes use the store, KeepText waits for the record, at most recordGrace, since the next request may reach
// another process.
func (ht *Turns) KeepText(sum Sum, text string, own []lathe.Message, keeps *event.RunRetention, runID, requestID string) {
	key := sum.textKey(text)
	ht.store.put(key, link{}, "", own, keeps)
	ht.absent.Remove(key)
	requests, ok := ht.opts.Index.(store.RequestStore)
	if !ok {
		return
	}
	recorded := make(chan struct{})
	ht.opts.Background(func() {
		defer close(recorded)
		if err := ht.recordText(requests, key, runID); err != nil {
			ht.opts.Log.Warn("the run of an answer could not be recorded: another process cannot restore its calls", "request_id", requestID, "run_id", runID, "code", lathe.CodeOf(err))
		}
	})
	if !ht.opts.Shared {
		return
	}
	select {
	case <-recorded:
	case <-time.After(recordGrace):
	}
}

// recordGrace is the longest time for which an answer waits for the store.
const recordGrace = 250 * time.Millisecond

// recordTimeout is the time limit of one record.
const recordTimeout = 5 * time.Second

// recordText records the run whose messages belong to a text. It replaces an earlier run that gave the same text.
func (ht *Turns) recordText(requests store.RequestStore, key Key, runID string) (err error) {
	defer func() {
		if recover() != nil { // the value of the panic may contain content
			err = errors.New("the store panicked")
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := ht.opts.Flush(ctx, runID); err != nil {
		return err
	}
	digest := store.RequestDigest(key)
	err = requests.PutRequest(ctx, digest, runID, "")
	if lathe.CodeOf(err) == lathe.CodeConflict {
		var earlier store.RequestRecord
		if earlier, err = requests.FindRequest(ctx, digest); err == nil {
			err = requests.PutRequest(ctx, digest, runID, earlier.RunID)
		}
	}
	if lathe.CodeOf(err) == lathe.CodeConflict { // a third run gave the same text, and either may be used
		return nil
	}
	return err
}

// loadTexts reads the turns behind texts from the store, and reports whether it found any.
func (ht *Turns) loadTexts(ctx context.Context, c *Request, keys []Key) (found bool) {
	requests, ok := ht.opts.Index.(store.RequestStore)
	if !ok {
		return false
	}
	for _, key := range keys[max(0, len(keys)-maxTextLookups):] {
		if ctx.Err() != nil || ht.absent.Has(key, ht.opts.Now()) {
			continue
		}
		record, err := requests.FindRequest(ctx, store.RequestDigest(key))
		loaded, code := false, lathe.CodeOf(err)
		if err == nil {
			var p *problem.Problem
			if loaded, p = ht.loadText(ctx, c, key, record.RunID); p != nil {
				code = lathe.Code(p.Code)
			}
		}
		switch {
		case loaded:
			found = true
		case code == "", code == lathe.CodeNotFound:
			ht.absent.Add(key, ht.opts.Now())
		default:
			ht.opts.Log.Warn("the store could not say which calls belong to an answer", "request_id", c.ID, "code", code)
			return found
		}
	}
	return found
}

// loadText reads the turns behind a text from the log of the run. It returns a problem if the store did not answer.
func (ht *Turns) loadText(ctx context.Context, c *Request, key Key, runID string) (found bool, p *problem.Problem) {
	v, p := c.Runs.View(ctx, runID)
	switch {
	case p.Absent(), p == nil && v.State.Finished == nil:
		return false, nil
	case p != nil:
		return false, p
	}
	added := v.State.Messages[v.State.Start-v.State.TakenOver:]
	for i := range slices.Backward(added) { // an earlier answer of the run ended with calls of the client
		if v.Client[pairs.Answered(&added[i])] {
			added = added[i:]
			break
		}
	}
	messages, ok := BehindText(added)
	if ok {
		ht.store.put(key, link{}, "", messages, v.State.Retention)
	}
	return ok, nil
}

// A KeySet stores each key for one to two minutes (absentFor). If more than maxAbsent keys are added in that time, it stores only the
// latest. The zero value is empty. It may be used by several goroutines at once.
type KeySet struct {
	mu          sync.Mutex
	recent, old map[Key]struct{}
	began       time.Time // start time of recent
}

const (
	maxAbsent = 8192 // about 1 MiB of keys
	absentFor = time.Minute
)

// Add adds a key. now is the current time.
func (s *KeySet) Add(key Key, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	s.recent[key] = struct{}{}
}

// turn makes recent the old set, and starts a new one, if recent is full or older than absentFor. s.mu is held.
func (s *KeySet) turn(now time.Time) {
	age := now.Sub(s.began)
	if len(s.recent) < maxAbsent && age < absentFor && s.recent != nil {
		return
	}
	s.old = s.recent
	if age >= 2*absentFor {
		s.old = nil
	}
	s.recent, s.began = map[Key]struct{}{}, now
}

// Has reports whether the key was added within the last one to two minutes and is still stored.
func (s *KeySet) Has(key Key, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	_, recent := s.recent[key]
	_, old := s.old[key]
	return recent || old
}

// Remove removes a key.
func (s *KeySet) Remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.recent, key)
	delete(s.old, key)
}

// IsOwn reports whether this server wrote the item. Blocks of the Messages API are recognised by the prefix of their id, because other
// blocks of the same type are calls that the model's vendor made to MCP servers.
func IsOwn(item []byte) bool {
	switch rawjson.TextAt(item, "type") {
	case "mcp_call", "mcp_list_tools", "mcp_approval_request":
		return true
	}
	return messages.IsServerBlock(item)
}
