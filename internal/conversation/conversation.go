// Package conversation encodes the events of runs without repetitions. A store then has each message of a conversation once, although every
// run of the conversation starts with all messages before it (this file), and has what all events of a run have in common once (see [Log]).
//
// A message is identified by a digest over itself and the message before it, so that equal beginnings of two conversations have equal
// digests. An event refers to the last of its messages, and each message to the one before it. Digests depend on the principal of the run:
// principals share no messages.
package conversation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// MinBytes is the size of the messages of a run, as [lathe.Message.Size] counts it, from which they are encoded apart from the event.
const MinBytes = 4096

// A Message is a message that is encoded apart from its event.
type Message struct {
	Digest []byte // 32 bytes
	Before []byte // the digest of the message before it; nil: it is the first
	Body   []byte // JSON of [lathe.Message]
}

// An Event is the encoded form of an event.
type Event struct {
	Body []byte // JSON, as [Log] describes it. If Messages is not empty, the digest of the last one stands in the place of the messages.
	// Messages are the messages of a RunStarted in their order; nil: the event has none, or Body contains them.
	Messages []Message
}

// Last returns the digest of the last message; nil if Messages is empty.
func (e *Event) Last() []byte {
	if len(e.Messages) == 0 {
		return nil
	}
	return e.Messages[len(e.Messages)-1].Digest
}

// Encode returns the encoded form of e, with its content. Unless e is the first event, l must have its row.
func (l *Log) Encode(e *event.Event) (out Event, err error) {
	l.begins(e)
	d, ok := e.Data.(*event.RunStarted)
	size := 0
	if ok {
		for i := range d.Messages {
			size += d.Messages[i].Size()
		}
	}
	if size >= MinBytes {
		out, err = separate(e, d)
	} else {
		out.Body, err = e.MarshalJSON()
	}
	if err == nil {
		out.Body, err = l.pack(e, out.Body)
	}
	return out, err
}

// separate returns the messages of e, whose data is d, and the JSON of e with a reference to the last of them.
func separate(e *event.Event, d *event.RunStarted) (out Event, err error) {
	if out.Messages, err = chain(d.Principal, d.Messages); err != nil {
		return out, err
	}
	apart, bare := *e, *d
	bare.Messages, apart.Data = nil, &bare
	body, err := apart.MarshalJSON()
	if err == nil {
		out.Body, err = replace(body, []byte("null"), reference(out.Last()))
	}
	return out, err
}

// EncodeAll returns the encoded forms of events that follow each other in the log of a run. run is the row of the run; for a new run, whose
// first event is events[0], only its RunID is used.
func EncodeAll(run *store.RunSummary, events []event.Event) ([]Event, error) {
	l := Log{Run: *run}
	out := make([]Event, len(events))
	for i := range events {
		var err error
		if out[i], err = l.Encode(&events[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// chain returns the messages with their digests.
func chain(principal string, messages []lathe.Message) ([]Message, error) {
	out := make([]Message, len(messages))
	seed := sha256.Sum256([]byte(principal))
	before := seed[:]
	for i := range messages {
		body, err := messages[i].MarshalJSON() // compact, as events have it
		if err != nil {
			return nil, err
		}
		m := &out[i]
		m.Body = body
		h := sha256.New()
		_, _ = h.Write(before) // a hash returns no error
		_, _ = h.Write(body)
		if i > 0 {
			m.Before = before
		}
		m.Digest = h.Sum(nil)
		before = m.Digest
	}
	return out, nil
}

// Decode returns the event with the id from its encoded form: its body, the digest of its last message (nil: the body contains the
// messages), and the bodies of its messages in their order. Unless l has the row of the run, the first event is decoded first.
func (l *Log) Decode(id int64, body, last []byte, messages [][]byte) (e event.Event, err error) {
	if last != nil {
		list := slices.Concat([]byte("["), bytes.Join(messages, []byte(",")), []byte("]"))
		if body, err = replace(body, reference(last), list); err != nil {
			return e, err
		}
	}
	if e, err = l.unpack(id, body); err == nil {
		l.begins(&e)
	}
	return e, err
}

// ErrMissing means that a message of a run is not stored.
var ErrMissing = errors.New("a message of the run is missing")

// Chain returns the bodies of messages that a store has read from the last one to the first, in their order. The error wraps [ErrMissing]
// unless the first read message is the one with the digest last, each further one is the one before the previous one, and the last one is
// the first of its conversation.
func Chain(last []byte, read []Message) ([][]byte, error) {
	out := make([][]byte, 0, len(read))
	for _, m := range read {
		if !bytes.Equal(m.Digest, last) {
			break
		}
		out, last = append(out, m.Body), m.Before
	}
	if last != nil || len(out) != len(read) {
		return nil, lathe.CodeInternal.Errorf("store: read", "%w: %x", ErrMissing, last)
	}
	slices.Reverse(out)
	return out, nil
}

// members is what precedes the messages in the JSON of a RunStarted. It occurs only there, since quotes in strings are escaped and what
// comes before has no JSON from outside.
const members = `"content":{"messages":`

// replace returns body with the value of its messages replaced.
func replace(body, old, value []byte) ([]byte, error) {
	head, tail, found := bytes.Cut(body, append([]byte(members), old...))
	if !found {
		return nil, errors.New("the event has no messages to replace")
	}
	return slices.Concat(head, []byte(members), value, tail), nil
}

// reference returns the JSON that stands for the messages.
func reference(digest []byte) []byte {
	return append(hex.AppendEncode([]byte{'"'}, digest), '"')
}
