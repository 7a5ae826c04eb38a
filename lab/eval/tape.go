package eval

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/recording"
)

// ErrReplay is wrapped by the error for a request that is not in the recording. Such a run has no score.
var ErrReplay = errors.New("the recording does not hold this request")

// A tape records the exchanges of one run with its model and its tools, or replays them. If it does neither, it has no effect. One goroutine
// uses its model, several can use its tools. It records whole turns, not deltas. Its JSON is the recording.
type tape struct {
	inner      lathe.Model // the model of the run, which a replay does not call
	path       string      // file of the recording
	recording  bool
	playing    bool
	playsTools bool // only with playing: tools are not called either

	Exchanges []exchange     `json:"exchanges"`
	Tools     []toolExchange `json:"tools"`          // in the order in which the calls ended
	User      []string       `json:"user,omitempty"` // messages of a model that plays the user
	at        int            // index of the next exchange to replay
	nextUser  int            // index of the next message of User to replay

	mu     sync.Mutex
	played []bool          // Tools[i] has been replayed
	state  json.RawMessage // state of the workspace after the last call; nil: unchanged
	saved  bool            // later calls are not recorded
	broken error           // error that ends the replay
}

// maxTapeBytes is the largest size of the recording of a run.
const maxTapeBytes = 256 << 20

// An exchange is the hash of one request and its result.
type exchange struct {
	Request string `json:"request"`
	recording.Result
}

// tape returns the tape of a run, with its recording if it is replayed.
func (b *bench) tape(j *job) *tape {
	t := &tape{inner: j.target.model(j.scenario, j.run.Strategy), recording: b.opts.Record != "", playing: b.opts.Replay != "", playsTools: b.opts.ReplayTools}
	name := j.name + ".exchanges.json"
	switch {
	case t.recording:
		t.path = filepath.Join(b.opts.Record, name)
	case t.playing:
		t.path = filepath.Join(b.opts.Replay, name)
		raw, err := readAtMost(t.path, maxTapeBytes)
		if err == nil {
			err = json.Unmarshal(raw, t)
		}
		if err != nil {
			t.broken = fmt.Errorf("%w: %s cannot be read", ErrReplay, name)
		}
		t.played = make([]bool, len(t.Tools))
	}
	return t
}

// model returns the model that the run uses: the tape, or the model itself if nothing is recorded or replayed.
func (t *tape) model() lathe.Model {
	if t.recording || t.playing {
		return t
	}
	return t.inner
}

func (t *tape) save() error {
	if !t.recording {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = true
	return saveJSON(t.path, t)
}

// userSaid returns the next recorded message of a model that plays the user. ok is false if nothing is replayed.
func (t *tape) userSaid() (text string, ok bool, err error) {
	if !t.playing {
		return "", false, nil
	}
	if t.nextUser == len(t.User) {
		return "", false, t.fail(fmt.Errorf("%w: %s has no further message of the user", ErrReplay, filepath.Base(t.path)))
	}
	t.nextUser++
	return t.User[t.nextUser-1], true, nil
}

// fail ends the replay with err, unless another error did. It returns the error that did.
func (t *tape) fail(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		t.broken = err
	}
	return t.broken
}

// Describe returns the description of the recorded model.
func (t *tape) Describe() lathe.ModelInfo { return t.inner.Describe() }

// Unwrap returns the recorded model.
func (t *tape) Unwrap() lathe.Model { return t.inner }

// Generate replays the next exchange, or passes the request to the recorded model and records the exchange.
func (t *tape) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	if t.playing {
		return func(yield func(lathe.Delta, error) bool) { yield(t.replay(req)) }
	}
	return func(yield func(lathe.Delta, error) bool) {
		for d, err := range t.inner.Generate(ctx, req) {
			if r, ok := recording.Of(d, err); ok { // the turn has ended
				t.Exchanges = append(t.Exchanges, exchange{requestHash(req), r})
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// replay returns the result of the next exchange, which must be one of the same request.
func (t *tape) replay(req *lathe.Request) (lathe.Delta, error) {
	broken := t.missed()
	if broken == nil && (t.at >= len(t.Exchanges) || t.Exchanges[t.at].Request != requestHash(req)) {
		broken = t.fail(fmt.Errorf("%w: model call %d of %s is another one", ErrReplay, t.at+1, filepath.Base(t.path)))
	}
	if broken != nil {
		return lathe.Delta{}, lathe.CodeUpstream.Wrap("eval: replay", broken)
	}
	e := t.Exchanges[t.at]
	t.at++
	if d, err := e.Replay(); d.Finish != nil || err != nil {
		return d, err
	}
	return lathe.Delta{}, lathe.CodeUpstream.Wrap("eval: replay", ErrReplay)
}

// requestHash returns a hash of a request without its id.
func requestHash(req *lathe.Request) string {
	r := *req
	r.RequestID = ""
	raw, err := json.Marshal(&r)
	if err != nil {
		return "" // equals no recorded hash
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}
