-- What version 4 adds.
CREATE TABLE gone ( -- runs that were removed by their age or for their room
  run_id    TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  time      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX gone_time ON gone (time);
CREATE INDEX run_updated ON run (updated);
