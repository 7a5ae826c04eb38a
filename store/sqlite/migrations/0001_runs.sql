-- Runs, their events and the model calls in them. Times are nanoseconds since 1970, in UTC.
CREATE TABLE run (
  run_id     TEXT PRIMARY KEY,
  last_id    INTEGER NOT NULL,
  started    INTEGER NOT NULL,
  updated    INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  principal  TEXT NOT NULL,
  status     TEXT NOT NULL,
  summary    BLOB NOT NULL -- JSON of lathe.RunSummary
) WITHOUT ROWID;
CREATE INDEX run_started ON run (started DESC, run_id DESC);
CREATE INDEX run_status ON run (status, started DESC);
CREATE INDEX run_session ON run (session_id, started DESC);

CREATE TABLE event (
  run_id TEXT NOT NULL,
  id     INTEGER NOT NULL,
  body   BLOB NOT NULL, -- JSON of lathe.Event, content included
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;

CREATE TABLE model_call (
  run_id   TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  summary  BLOB NOT NULL, -- JSON of lathe.CallSummary
  PRIMARY KEY (run_id, event_id)
) WITHOUT ROWID;
CREATE INDEX model_call_time ON model_call (time DESC, run_id DESC, event_id DESC);
