package tool

// Over returns a runner for another set, with the options, the cache and the secrets of r. It does not check the options for the new set:
// if Policy is nil, all calls are denied. The new runner counts its abandoned calls separately.
func (r *Runner) Over(set *Set) *Runner {
	return &Runner{set: set, opts: r.opts, hash: r.hash, cache: r.cache, secrets: r.secrets}
}
