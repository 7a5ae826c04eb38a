package enginetest

import (
	"context"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A killableStore is the store of one process. Once the process is killed, it refuses events and signals.
type killableStore struct {
	store.RunIndex
	signals store.SignalStore
	host    *Host
}

// checkAlive returns an error if the process is killed: it no longer reaches its store.
func (h *Host) checkAlive() error {
	if h.Killed() {
		return unreachable(errDead)
	}
	return nil
}

// Append implements [store.Store].
func (m *killableStore) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	if err := m.host.checkAlive(); err != nil {
		return 0, err
	}
	return m.RunIndex.Append(ctx, runID, last, events...)
}

// PutSignal implements [store.SignalStore].
func (m *killableStore) PutSignal(ctx context.Context, f store.Signal) error {
	if err := m.host.checkAlive(); err != nil {
		return err
	}
	return m.signals.PutSignal(ctx, f)
}

// Signals implements [store.SignalStore].
func (m *killableStore) Signals(ctx context.Context, runID string) ([]store.Signal, error) {
	return m.signals.Signals(ctx, runID)
}

// A killableShared is the store of one process which other processes use, too. Once the process is killed, it refuses what supervisors
// change: events of claimed runs, claims and signals.
type killableShared struct {
	store.Shared
	host *Host
}

var _ store.Shared = (*killableShared)(nil)

// AppendAs implements [store.Shared].
func (m *killableShared) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	if err := m.host.checkAlive(); err != nil {
		return 0, err
	}
	return m.Shared.AppendAs(ctx, c, last, events...)
}

// Claim implements [store.Shared].
func (m *killableShared) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]store.Claim, error) {
	if err := m.host.checkAlive(); err != nil {
		return nil, err
	}
	return m.Shared.Claim(ctx, node, lease, limit)
}

// ClaimRun implements [store.Shared].
func (m *killableShared) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (store.Claim, error) {
	if err := m.host.checkAlive(); err != nil {
		return store.Claim{}, err
	}
	return m.Shared.ClaimRun(ctx, node, runID, lease)
}

// Renew implements [store.Shared].
func (m *killableShared) Renew(ctx context.Context, node string, lease time.Duration) ([]store.Claim, error) {
	if err := m.host.checkAlive(); err != nil {
		return nil, err
	}
	return m.Shared.Renew(ctx, node, lease)
}

// Release implements [store.Shared].
func (m *killableShared) Release(ctx context.Context, c store.Claim, seen int64) error {
	if err := m.host.checkAlive(); err != nil {
		return err
	}
	return m.Shared.Release(ctx, c, seen)
}

// PutSignal implements [store.SignalStore].
func (m *killableShared) PutSignal(ctx context.Context, f store.Signal) error {
	if err := m.host.checkAlive(); err != nil {
		return err
	}
	return m.Shared.PutSignal(ctx, f)
}
