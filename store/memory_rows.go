package store

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// memoryRows implements [Rows] for a [Memory]. The caller of the methods holds its lock.
type memoryRows struct {
	memoryCalls
	memoryLedger
	memoryRequests
	memoryValues
	kept     *journals // contains the signals
	watchers *watchers[string]
}

// memoryValues contains the secrets and values of a [Memory].
type memoryValues map[string][]byte

func (m memoryValues) Value(name string) ([]byte, error) { return bytes.Clone(m[name]), nil }

func (m memoryValues) PutValue(name string, value []byte) error {
	m[name] = value
	if len(value) == 0 {
		delete(m, name)
	}
	return nil
}

func (m memoryValues) Values(prefix string, limit int) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if strings.HasPrefix(name, prefix) && len(out) < limit {
			out[name] = bytes.Clone(m[name])
		}
	}
	return out, nil
}

func (m *memoryRows) PutSignal(f *Signal) error {
	j, err := m.kept.going(f.RunID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(j.signals, func(has Signal) bool { return has.Kind == f.Kind && has.Key == f.Key }) {
		return lathe.ErrConflict
	}
	j.signals = append(j.signals, *f)
	m.watchers.notify(f.RunID)
	return nil
}

func (m *memoryRows) Signals(runID string) (out []Signal, err error) {
	if j := m.kept.runs[runID]; j != nil {
		out = slices.Clone(j.signals)
	}
	for i := range out {
		out[i].Body = bytes.Clone(out[i].Body)
	}
	return out, nil
}
