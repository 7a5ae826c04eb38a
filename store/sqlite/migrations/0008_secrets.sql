-- What version 8 adds.
CREATE TABLE secret ( -- random values that all processes share
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;
