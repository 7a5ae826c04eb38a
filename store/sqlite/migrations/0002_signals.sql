-- External input of runs. Rows of parked runs get the time at which the run resumes by itself: a hook of migrate.go does that.
CREATE TABLE fact (
  run_id TEXT NOT NULL,
  seq    INTEGER NOT NULL, -- from 1, in the order in which they came
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  body   BLOB, -- JSON, content
  time   INTEGER NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX fact_once ON fact (run_id, kind, key);
