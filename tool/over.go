package tool

// Over returns a runner over another set that shares everything else with r: policy, approver, limits, journal, secrets and cache.
func (r *Runner) Over(set *Set) *Runner {
	return &Runner{set: set, opts: r.opts, hash: r.hash, cache: r.cache, secrets: r.secrets}
}
