-- The runs of a principal with a status, in the order in which runs are listed. Other processes append while the index is built.
CREATE INDEX CONCURRENTLY run_principal_status ON run (principal, status, started DESC, run_id DESC)
