-- Budgets, and what model calls use.
CREATE TABLE ledger_balance ( -- what was booked on an account of a budget
  kind            TEXT NOT NULL,
  name            TEXT NOT NULL,
  period          TEXT NOT NULL,
  spent_nanos     INTEGER NOT NULL DEFAULT 0,
  spent_tokens    INTEGER NOT NULL DEFAULT 0,
  reserved_nanos  INTEGER NOT NULL DEFAULT 0,
  reserved_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, name, period)
) WITHOUT ROWID;

CREATE TABLE ledger_reservation (
  id            TEXT PRIMARY KEY,
  state         TEXT NOT NULL, -- open, charged, recorded
  expires       INTEGER NOT NULL,
  day           TEXT NOT NULL,
  key           TEXT NOT NULL,
  team          TEXT NOT NULL, -- the group
  model         TEXT NOT NULL,
  input_tokens  INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  nanos         INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ledger_reservation_expires ON ledger_reservation (state, expires);

CREATE TABLE ledger_usage (
  day                TEXT NOT NULL,
  key                TEXT NOT NULL,
  team               TEXT NOT NULL,
  model              TEXT NOT NULL,
  calls              INTEGER NOT NULL,
  estimated          INTEGER NOT NULL,
  unpriced           INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,
  cached_tokens      INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  tokens             INTEGER NOT NULL,
  nanos              INTEGER NOT NULL,
  PRIMARY KEY (day, key, team, model)
) WITHOUT ROWID;
