-- An index by time has only runs that have ended, so that no append of the others writes it.
DROP INDEX run_updated;
CREATE INDEX run_ended ON run (updated) WHERE status NOT IN ('running', 'parked');
