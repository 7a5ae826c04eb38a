-- Budgets and what model calls use: see store.Ledger.

CREATE TABLE ledger_balance ( -- what was booked on an account of a budget
  kind            text COLLATE "C" NOT NULL,
  name            text COLLATE "C" NOT NULL,
  period          text COLLATE "C" NOT NULL,
  spent_nanos     bigint NOT NULL DEFAULT 0,
  spent_tokens    bigint NOT NULL DEFAULT 0,
  reserved_nanos  bigint NOT NULL DEFAULT 0,
  reserved_tokens bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, name, period)
) WITH (fillfactor = 70);

CREATE TABLE ledger_reservation (
  id            text COLLATE "C" PRIMARY KEY,
  state         text NOT NULL, -- open, charged, recorded
  expires       timestamptz NOT NULL,
  day           text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL,
  team          text COLLATE "C" NOT NULL, -- the group
  model         text COLLATE "C" NOT NULL,
  input_tokens  bigint NOT NULL,
  output_tokens bigint NOT NULL,
  nanos         bigint NOT NULL
);
CREATE INDEX ledger_reservation_expires ON ledger_reservation (state, expires);

CREATE TABLE ledger_usage (
  day                text COLLATE "C" NOT NULL,
  key                text COLLATE "C" NOT NULL,
  team               text COLLATE "C" NOT NULL,
  model              text COLLATE "C" NOT NULL,
  calls              bigint NOT NULL,
  estimated          bigint NOT NULL,
  unpriced           bigint NOT NULL,
  input_tokens       bigint NOT NULL,
  cached_tokens      bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  output_tokens      bigint NOT NULL,
  tokens             bigint NOT NULL,
  nanos              bigint NOT NULL,
  PRIMARY KEY (day, key, team, model)
) WITH (fillfactor = 70);

-- Roles that may change runs may keep the ledger, without a further step of the operator.
DO $$
DECLARE grantee text;
BEGIN
  FOR grantee IN
    SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'run'::regclass AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner
  LOOP
    EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ledger_balance, ledger_reservation, ledger_usage TO ' || grantee;
  END LOOP;
END $$;
