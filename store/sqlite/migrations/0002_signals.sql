-- What version 2 adds.
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
