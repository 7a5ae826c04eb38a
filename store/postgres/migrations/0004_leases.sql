-- Leases of nodes: a claim that was renewed holds as long as the lease it is under, so that whoever carries
-- many runs renews one row.

CREATE TABLE lease (
  id    bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  node  text COLLATE "C" NOT NULL,
  until timestamptz NOT NULL     -- one that has ended is never prolonged: its node begins another
);
CREATE INDEX lease_node ON lease (node);

-- The claim of a run whose lease_until is infinity holds as long as this lease; any other by itself.
ALTER TABLE run ADD COLUMN lease bigint;
DROP INDEX run_due;
CREATE INDEX run_due ON run (due_at, lease) WHERE due_at IS NOT NULL;

-- No index has a column that every append changes: then the others need not be written with each.
ALTER TABLE run ADD COLUMN ended_at bigint GENERATED ALWAYS AS (CASE WHEN ended THEN updated END) STORED;
DROP INDEX run_ended;
CREATE INDEX run_ended ON run (ended_at, run_id) WHERE ended_at IS NOT NULL;
