package postgres_test

import (
	"testing"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
)

// The tables grow with the conversation, although each run of it begins with all messages, and have no message of a deleted run.
func TestMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	storetest.TestConversations(t, s)
	storetest.TestConversationsAtOnce(t, s)
	const turns = storetest.ConversationTurns
	if n := one[int](t, url, "SELECT count(*)::int FROM message"); n != 2*turns-1 {
		t.Errorf("there are %d messages, want those of the turns of one principal: %d", n, 2*turns-1)
	}
	if n := one[int](t, url, "SELECT (sum(bytes) - (SELECT sum(octet_length(body)) FROM event) - (SELECT sum(octet_length(body)) FROM message))::int FROM run"); n != 0 {
		t.Errorf("the sizes of the runs differ by %d from what the tables have", n)
	}
	if err := s.DeletePrincipal(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, url, "SELECT count(*)::int FROM message"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// The messages of tables that have them in the events are stored apart by a compaction, which leaves the events as they are.
func TestCompactionStoresMessagesOnce(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	url := pgtest.URL(t)
	s := open(t, url)
	for n := range 5 {
		storetest.AppendTurn(t, s, "ann", n)
	}
	execute(t, url, `UPDATE event SET body = convert_to(replace(convert_from(e.body, 'UTF8'), '"messages":"' || encode(c.last, 'hex') || '"', '"messages":' || (
			WITH RECURSIVE up (previous, body, n) AS (SELECT previous, body, 0 FROM message WHERE digest = c.last
				UNION ALL SELECT m.previous, m.body, n + 1 FROM up JOIN message m ON m.digest = up.previous)
			SELECT '[' || string_agg(convert_from(body, 'UTF8'), ',' ORDER BY n DESC) || ']' FROM up)), 'UTF8')
		FROM event e JOIN conversation c ON c.run_id = e.run_id AND c.event_id = e.id WHERE event.run_id = e.run_id AND event.id = e.id`)
	execute(t, url, "DELETE FROM conversation")
	execute(t, url, "UPDATE run SET bytes = (SELECT sum(octet_length(body)) FROM event WHERE event.run_id = run.run_id)")
	for n := range 5 {
		storetest.WantTurn(t, s, "ann", n)
	}
	for n := range 5 {
		if err := s.Compact(t.Context(), []string{"ann_0", "ann_1", "ann_2", "ann_3", "ann_4"}[n], func(e event.Event) event.Event { return e }); err != nil {
			t.Fatal(err)
		}
		storetest.WantTurn(t, s, "ann", n)
	}
	if n := one[int](t, url, "SELECT count(*)::int FROM message"); n != 9 {
		t.Errorf("there are %d messages, want 9", n)
	}
	if n := one[int](t, url, "SELECT (sum(bytes) - (SELECT sum(octet_length(body)) FROM event) - (SELECT sum(octet_length(body)) FROM message))::int FROM run"); n != 0 {
		t.Errorf("the sizes of the runs differ by %d from what the tables have", n)
	}
}
