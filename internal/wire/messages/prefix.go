package messages

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A prefix computes the digest of everything that precedes each assistant turn of a request: the tools, the system text and the earlier
// turns. The zero value computes nothing.
type prefix struct {
	bound    *wire.BoundRequest // nil: the destination does not bind thinking
	hash     wire.PrefixHash
	added    int  // index in the body up to which turns are in hash
	turn     int  // index in the body at which the last turn begins
	answered bool // the last turn is an assistant turn
}

// beginTurns records the index in the body at which the first turn begins.
func (x *prefix) beginTurns(at int) { x.added, x.turn = at, at }

// beginTurn records the index in the body at which a turn of the role begins. The turn is then the last one.
func (x *prefix) beginTurn(at int, role string) { x.turn, x.answered = at, role == "assistant" }

// add adds a value that precedes the turns, such as the tools, in pieces.
func (x *prefix) add(pieces ...[]byte) {
	if x.bound != nil {
		x.hash.Add(pieces...)
	}
}

// hashUntil adds the turns of the body before the index end, which must be the end of a turn, and returns their prefix.
func (x *prefix) hashUntil(body []byte, end int) wire.Prefix {
	for x.added < end {
		at := x.added
		for at < end && body[at] == ',' {
			at++
		}
		last, err := rawjson.Scan(body, at)
		if err != nil {
			last = end
		}
		x.hash.Add(body[at:last])
		x.added = last
	}
	return x.hash.Sum()
}

// A verdict is how reasoning of the history is treated.
type verdict int

const (
	sent    verdict = iota
	changed         // what precedes it has changed; the server drops it if the request asks for that
	refused         // the server has refused it
)

// refuse records that reasoning in the last turn of the body is left out, because the server has refused it in this request.
func (x *prefix) refuse(body []byte, p *lathe.Reasoning) {
	b := x.bound
	if b == nil || p.Data == "" {
		return
	}
	if b.Left == nil {
		b.Left = map[string]wire.Prefix{}
	}
	b.Left[p.Data] = x.hashUntil(body, x.turn)
}

// judge returns the verdict about reasoning in the last turn of the body.
func (x *prefix) judge(body []byte, p *lathe.Reasoning) verdict {
	if x.bound == nil || p.Data == "" {
		return sent
	}
	valid, isRefused := x.bound.Valid(p.Data, x.hashUntil(body, x.turn))
	switch {
	case isRefused:
		return refused
	case !valid:
		return changed
	}
	return sent
}

// finish sets Before, the prefix of the answer to the request whose encoded body, up to the end of its turns, is body. If the last turn is
// the beginning of the answer, it is not included.
func (x *prefix) finish(body []byte) {
	if x.bound == nil {
		return
	}
	end := len(body) - 1
	if x.answered {
		end = x.turn
	}
	x.bound.Before = x.hashUntil(body, end)
}
