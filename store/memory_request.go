package store

import (
	"container/list"
	"time"

	"github.com/lathe-run/lathe"
)

// maxRequests is the maximum number of request records in a [Memory]. Beyond it, the oldest is removed.
const maxRequests = 100_000

// memoryRequests contains the request records of a [Memory].
type memoryRequests struct {
	requests map[RequestDigest]*list.Element
	byAge    list.List // of *requestRow, oldest first
}

// A requestRow is the record of one request.
type requestRow struct {
	digest        RequestDigest
	runID         string
	at, delivered time.Time // delivered is zero until the response is delivered
}

func requestOf(e *list.Element) *requestRow { return e.Value.(*requestRow) }

func (m *memoryRequests) Request(digest RequestDigest) (runID string, at, delivered time.Time, err error) {
	e := m.requests[digest]
	if e == nil {
		return "", at, delivered, lathe.ErrNotFound
	}
	r := requestOf(e)
	return r.runID, r.at, r.delivered, nil
}

func (m *memoryRequests) PutRequest(digest RequestDigest, runID string, at, delivered time.Time) error {
	if e := m.requests[digest]; e != nil && requestOf(e).at.Equal(at) {
		*requestOf(e) = requestRow{digest, runID, at, delivered}
		return nil
	}
	m.forgetRequest(digest)
	m.requests[digest] = m.byAge.PushBack(&requestRow{digest, runID, at, delivered})
	if m.byAge.Len() > maxRequests {
		m.forgetRequest(requestOf(m.byAge.Front()).digest)
	}
	return nil
}

func (m *memoryRequests) ForgetRequests(before time.Time) error {
	for e := m.byAge.Front(); e != nil && requestOf(e).at.Before(before); e = m.byAge.Front() {
		m.forgetRequest(requestOf(e).digest)
	}
	return nil
}

func (m *memoryRequests) forgetRequest(digest RequestDigest) {
	if e := m.requests[digest]; e != nil {
		m.byAge.Remove(e)
		delete(m.requests, digest)
	}
}

// forgetRequestsOf removes the records of runs for which fits returns true.
func (m *memoryRequests) forgetRequestsOf(fits func(runID string) bool) {
	for digest, e := range m.requests {
		if fits(requestOf(e).runID) {
			m.forgetRequest(digest)
		}
	}
}
