-- Random values that all processes share.
CREATE TABLE secret ( -- random values that all processes share
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;
