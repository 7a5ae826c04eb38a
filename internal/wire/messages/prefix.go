package messages

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A prefix computes what precedes each turn of the model in a request: the tools, the system text and the turns before it. The zero
// value computes nothing.
type prefix struct {
	bound    *wire.BoundRequest // nil: the destination does not bind thinking
	hash     wire.PrefixHash
	added    int  // up to where the turns in the body are in hash
	turn     int  // where the last turn begins
	answered bool // the last turn is one of the model
}

// add adds a value of the head, in pieces.
func (x *prefix) add(pieces ...[]byte) {
	if x.bound != nil {
		x.hash.Add(pieces...)
	}
}

// before returns what precedes the index end of the body, where a turn ends.
func (x *prefix) before(body []byte, end int) wire.Prefix {
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

// A verdict says what becomes of reasoning.
type verdict int

const (
	sent    verdict = iota
	changed         // what precedes it has changed: a server that is asked to drops it
	refused         // the server has refused it
)

// judge judges reasoning of the last turn of the body. isRefused is set if the server has refused such reasoning in this request.
func (x *prefix) judge(body []byte, p *lathe.Reasoning, isRefused bool) verdict {
	b := x.bound
	switch {
	case isRefused && (b == nil || p.Data == ""):
		return refused
	case b == nil || p.Data == "":
		return sent
	}
	before := x.before(body, x.turn)
	if isRefused {
		if b.Left == nil {
			b.Left = map[string]wire.Prefix{}
		}
		b.Left[p.Data] = before
		return refused
	}
	switch valid, isRefused := b.Valid(p.Data, before); {
	case isRefused:
		return refused
	case !valid:
		return changed
	}
	return sent
}

// finish sets what precedes the answer to a request with the body, up to the end of its turns. If the last turn is the beginning of the answer,
// it does not count.
func (x *prefix) finish(body []byte) {
	if x.bound == nil {
		return
	}
	end := len(body) - 1
	if x.answered {
		end = x.turn
	}
	x.bound.Before = x.before(body, end)
}
