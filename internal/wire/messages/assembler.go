package messages

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// blockSize is the number of bytes that a block counts against MaxBytes in addition to its text.
const blockSize = 128

// An assembler assembles an answer from the events of a stream. It implements [wire.Assembler].
type assembler struct {
	wire.Assembly
	blocks  []*block
	calls   int    // number of blocks that are calls
	pending *block // a call whose block was closed with incomplete input; the stop reason shows whether it was truncated
	usage   usage
	stop    string // stop_reason

	started  bool // message_start was read
	repeated bool // message_start was read twice: the server sends the events another time
	stopSeen bool // a stop_reason was read
	done     bool // message_stop was read
}

// NewAssembler returns an Assembler for one answer. opts may be nil.
func (Codec) NewAssembler(opts *wire.AssemblerOptions) wire.Assembler {
	return &assembler{Assembly: wire.NewAssembly(opts)}
}

func (a *assembler) Done() bool { return a.done }

func (a *assembler) Finished() bool { return a.stopSeen }

// parseable are the faults after which every client can still parse the stream.
var parseable = []string{faultUnknownEvent, faultPaused, faultStopReason, faultArguments, faultDropped}

func (a *assembler) fault(kind string) {
	if !slices.Contains(parseable, kind) {
		a.Unsound = true
	}
	a.Fault(kind)
}

// An eventData contains the encoded values of the members of an event.
type eventData struct{ typ, index, message, block, delta, usage []byte }

func takeApart(data []byte) (e eventData, ok bool) {
	object, ok := rawjson.Object(data)
	for key, v := range rawjson.Members(object) {
		switch string(key) {
		case `"type"`:
			e.typ = v
		case `"index"`:
			e.index = v
		case `"message"`:
			e.message = v
		case `"content_block"`:
			e.block = v
		case `"delta"`:
			e.delta = v
		case `"usage"`:
			e.usage = v
		}
	}
	return e, ok
}

// Append implements [wire.Assembler].
func (a *assembler) Append(dst []lathe.Delta, event string, data []byte) ([]lathe.Delta, error) {
	a.Out = dst
	if a.Err == nil {
		a.take(event, data)
	}
	return a.Take(), a.Err
}

// take reads one event. data is its JSON text.
func (a *assembler) take(event string, data []byte) {
	e, ok := takeApart(data)
	typ := cmp.Or(rawjson.Text(e.typ), event)
	switch {
	case !ok:
		a.fault(faultBadEvent)
		return
	case typ == "ping":
		return
	case typ == "error":
		a.Err = Codec{}.ParseError(0, data)
		return
	case a.done:
		a.fault(faultAfterEnd)
		return
	}
	if !a.started && typ != "message_start" {
		a.Unsound = true
	}
	switch typ {
	case "message_start":
		a.takeMessage(e.message)
	case "content_block_start":
		a.startBlock(a.takeIndex(e.index, len(a.blocks)), e.block)
	case "content_block_delta":
		a.takeDelta(a.takeIndex(e.index, a.lastOpen()), e.delta)
	case "content_block_stop":
		if b := a.open(a.takeIndex(e.index, a.lastOpen())); b != nil {
			a.closeBlock(b)
		} else {
			a.fault(faultOrder)
		}
	case "message_delta":
		a.takeStop(e.delta)
		a.takeUsage(e.usage)
	case "message_stop":
		a.done = true
		a.closeAll()
	default:
		a.fault(faultUnknownEvent)
	}
}

// takeMessage reads the message in message_start, which may already contain content.
func (a *assembler) takeMessage(m []byte) {
	if a.started {
		a.repeated = true
		a.fault(faultOrder)
		return
	}
	a.started = true
	a.takeNames(m)
	a.takeUsage(get(m, "usage"))
	for el := range rawjson.Elements(get(m, "content")) {
		n := len(a.blocks)
		a.startBlock(n, el)
		if len(a.blocks) > n {
			a.closeBlock(a.blocks[n])
		}
	}
}

func (a *assembler) takeNames(m []byte) {
	a.ID, a.Model = text(m, "id"), text(m, "model")
	for change := range rawjson.Elements(get(m, "input_transformations")) {
		if text(change, "type") == faultDropped {
			a.fault(faultDropped)
		}
	}
	a.Grow(len(a.ID) + len(a.Model))
}

// takeIndex returns the index in v. If v is not an index, it counts a fault and returns the parameter otherwise: some servers send none.
func (a *assembler) takeIndex(v []byte, otherwise int) int {
	n, err := strconv.Atoi(string(v))
	if err == nil && n >= 0 {
		return n
	}
	a.fault(faultOrder)
	return otherwise
}

// lastOpen returns the index of the last block, or -1 without blocks or if the last one is closed.
func (a *assembler) lastOpen() int {
	if n := len(a.blocks) - 1; n >= 0 && !a.blocks[n].closed {
		return a.blocks[n].index
	}
	return -1
}

// isRepeated reports whether an event begins a block that has begun already: after a second message_start the one with its index, and always
// the same call at the same index.
func isRepeated(a *assembler, index int, v []byte) bool {
	return slices.ContainsFunc(a.blocks, func(b *block) bool {
		return b.index == index && (a.repeated || b.id != "" && b.id == text(v, "id"))
	})
}

// open returns the open block with the index, or nil. It searches the last maxOpen blocks.
func (a *assembler) open(index int) *block {
	for _, b := range slices.Backward(a.blocks[max(0, len(a.blocks)-maxOpen):]) {
		if b.index == index && !b.closed {
			return b
		}
	}
	return nil
}

// maxOpen bounds the blocks that may be open at the same time.
const maxOpen = 64

// takeStop reads the stop reason in the delta of message_delta.
func (a *assembler) takeStop(delta []byte) {
	reason := get(delta, "stop_reason")
	if rawjson.Kind(reason) != '"' {
		return
	}
	a.stop, a.stopSeen = rawjson.Text(reason), true
	a.settlePending(a.stop)
}

// closeAll closes the blocks that the server did not close, and ends the pending call.
func (a *assembler) closeAll() {
	for _, b := range a.blocks {
		if !b.closed {
			a.fault(faultOrder)
			a.closeBlock(b)
		}
	}
	a.settlePending(a.stop)
}

// Finish implements [wire.Assembler].
func (a *assembler) Finish(bool) (*lathe.Finish, error) {
	switch {
	case a.Err != nil:
		return nil, a.Err
	case !a.done:
		return nil, wire.ErrIncomplete
	}
	return a.assemble(), nil
}

// Complete implements [wire.Assembler].
func (a *assembler) Complete(dst []lathe.Delta, body []byte) ([]lathe.Delta, *lathe.Finish, error) {
	a.Out = dst
	if _, ok := takeApart(body); !ok {
		return dst, nil, wire.ErrNoAnswer
	}
	content := get(body, "content")
	switch {
	case text(body, "type") == "error":
		return dst, nil, Codec{}.ParseError(0, body)
	case rawjson.Kind(content) != '[':
		return dst, nil, wire.ErrNoAnswer
	}
	a.takeMessage(body)
	a.takeStop(body)
	a.done = true
	a.closeAll()
	dst = a.Take()
	f, err := a.Finish(true)
	return dst, f, err
}
