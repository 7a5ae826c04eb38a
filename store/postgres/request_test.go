package postgres_test

import (
	"crypto/rand"
	"crypto/sha256"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/store"
)

// A schema without records of requests is brought forward while a process of the version before uses it: what
// that process does needs nothing of the new table.
func TestAddsRequestsToAnOldSchema(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	url := loadVersion(t, 5)
	old := newFormer(t, url)
	old.appends(t, "run_1")
	s := open(t, url)
	digest := store.RequestDigest(sha256.Sum256([]byte("a")))
	if err := s.PutRequest(t.Context(), digest, "run_1", ""); err != nil {
		t.Fatal(err)
	}
	old.appends(t, "run_2")
	execute(t, url, "UPDATE request SET at = at - interval '49 hours'")
	if err := s.PutRequest(t.Context(), sha256.Sum256([]byte("b")), "run_2", ""); err != nil {
		t.Fatal(err)
	}
	if r, err := s.FindRequest(t.Context(), digest); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("49 hours later: %+v, %v", r, err)
	}
}

// A role that may change runs, and not make tables, records requests after another role has brought the schema
// forward.
func TestGrantsRequestsToThoseWhoHaveRuns(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	source := loadVersion(t, 5)
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	app := "App_" + strings.ToLower(rand.Text()) // roles are of the whole server
	execute(t, source, `CREATE ROLE "`+app+`" LOGIN`)
	t.Cleanup(func() { execute(t, source, `DROP OWNED BY "`+app+`"; DROP ROLE "`+app+`"`) })
	execute(t, source, "GRANT USAGE ON SCHEMA "+u.Query().Get("search_path")+` TO "`+app+`"`)
	execute(t, source, `GRANT SELECT, INSERT, UPDATE, DELETE ON run, model_call, fact, lease, node, call, worker, gone TO "`+app+`"`)
	execute(t, source, `GRANT SELECT ON lathe_schema TO "`+app+`"`)
	accepted(t, source, nil)
	u.User = url.User(app)
	s := open(t, u.String())
	digest := store.RequestDigest(sha256.Sum256([]byte("a")))
	if _, err := s.SharedSecret(t.Context(), "one", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := s.PutRequest(t.Context(), digest, "run_1", ""); err != nil {
		t.Error(err)
	}
	if err := s.DeliverRequest(t.Context(), digest, "run_1", time.Now()); err != nil {
		t.Error(err)
	}
	if err := s.SetValue(t.Context(), "one", []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := s.Sweep(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
}
